"""Endpoints that answer questions, asked once, and remembered.

Start with `endpoints.factory.open_client`, `dispatch.dispatcher.Dispatcher` (who is asked what, how
often, for how much) and `ledger.store.Ledger` (every answer that was paid for).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.models.asks import Ask as Ask
    from calibrant.models.asks import Price as Price
    from calibrant.models.dispatch.dispatcher import Dispatcher as Dispatcher
    from calibrant.models.endpoints.embedded import open_embedder as open_embedder
    from calibrant.models.endpoints.factory import open_client as open_client
    from calibrant.models.ledger.schema import Caps as Caps
    from calibrant.models.protocol import EndpointRefusedError as EndpointRefusedError
    from calibrant.models.protocol import Message as Message
    from calibrant.models.protocol import Request as Request
else:
    # Loaded when asked for: whoever embeds texts needs no dispatcher.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
