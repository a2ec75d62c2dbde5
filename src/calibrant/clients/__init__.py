"""Endpoints that answer questions: HTTP, embedded model, replay."""

from calibrant.clients.dispatch.dispatcher import (
    Ask,
    Caps,
    Dispatcher,
    Finding,
    LedgeredDraw,
    Outcome,
    Plan,
    Price,
    Problem,
    Progress,
)
from calibrant.clients.endpoints.embeddings import Embedder, open_embedder
from calibrant.clients.endpoints.factory import open_client
from calibrant.clients.protocol import (
    Capabilities,
    Client,
    Completion,
    EndpointRefusedError,
    Message,
    Request,
    TokenLogprob,
    Usage,
)

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
