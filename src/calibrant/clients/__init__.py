"""Endpoints that answer questions: HTTP, embedded model, replay."""

from calibrant.clients.answers.tokens import TokenLogprob
from calibrant.clients.asks import (
    Ask,
    Finding,
    LedgeredDraw,
    Outcome,
    Plan,
    Price,
    Problem,
    Progress,
)
from calibrant.clients.dispatch.dispatcher import Dispatcher
from calibrant.clients.endpoints.embeddings import Embedder, open_embedder
from calibrant.clients.endpoints.factory import open_client
from calibrant.clients.protocol import (
    Capabilities,
    Client,
    Completion,
    EndpointRefusedError,
    Message,
    Request,
    Usage,
)
from calibrant.records.ledger import Caps

__all__ = [
    "Ask",
    "Capabilities",
    "Caps",
    "Client",
    "Completion",
    "Dispatcher",
    "Embedder",
    "EndpointRefusedError",
    "Finding",
    "LedgeredDraw",
    "Message",
    "Outcome",
    "Plan",
    "Price",
    "Problem",
    "Progress",
    "Request",
    "TokenLogprob",
    "Usage",
    "open_client",
    "open_embedder",
]
