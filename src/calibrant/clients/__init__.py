"""Endpoints that answer questions: HTTP, embedded model, replay."""

from typing import TYPE_CHECKING

from calibrant.core.imports import lazy_exports

if TYPE_CHECKING:
    from calibrant.clients.asks import Ask as Ask
    from calibrant.clients.asks import Price as Price
    from calibrant.clients.dispatch.dispatcher import Dispatcher as Dispatcher
    from calibrant.clients.endpoints.embeddings import open_embedder as open_embedder
    from calibrant.clients.endpoints.factory import open_client as open_client
    from calibrant.clients.protocol import EndpointRefusedError as EndpointRefusedError
    from calibrant.clients.protocol import Message as Message
    from calibrant.clients.protocol import Request as Request
    from calibrant.records.ledger.schema import Caps as Caps
else:
    # Loaded when asked for: whoever embeds texts needs no dispatcher.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
