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
    timeout_s, extra_headers, extra_body, most_bytes
        See `HttpClient`.
    reasoning_effort
        How long a model thinks, in the provider's own words; see `effort`.
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
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        most_bytes: int | None = None,
        reasoning_effort: str | None = None,
    ) -> None:
        extra = {**self.effort(reasoning_effort), **(extra_body or {})}
        super().__init__(
            base_url or self.address,
            key=key,
            capabilities=adjusted(self.able, capabilities),
            timeout_s=timeout_s,
            extra_headers={**self.own_headers, **(extra_headers or {})},
            extra_body=extra,
            most_bytes=most_bytes,
        )

    @classmethod
    def effort(cls, effort: str | None) -> dict[str, Any]:
        """Return the fields that say how long a model is to think."""
        return {} if effort is None else {"reasoning_effort": effort}
