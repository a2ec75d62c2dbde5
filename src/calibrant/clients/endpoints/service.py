"""A service with an interface of its own: its address, what it can give, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from calibrant.clients.capabilities import adjusted
from calibrant.clients.endpoints.http import HttpClient
from calibrant.clients.protocol import Capabilities


class ServiceClient(HttpClient):
    """A service whose class says where it is and what it can give.

    Parameters
    ----------
    base_url
        Where the service is, if not at its `address`.
    key
        API key, or None.
    capabilities
        Changes to what the service is known to give.
    timeout_s, headers, most_bytes
        See `HttpClient`.
    """

    address: ClassVar[str]
    able: ClassVar[Capabilities]
    own_headers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    key_prefix = ""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        key: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
        headers: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        super().__init__(
            base_url or self.address,
            key=key,
            capabilities=adjusted(self.able, capabilities),
            timeout_s=timeout_s,
            headers={**self.own_headers, **(headers or {})},
            most_bytes=most_bytes,
        )
