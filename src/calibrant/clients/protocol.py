"""The small protocol that every model endpoint speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Capabilities", "Client", "Completion", "Message", "Request", "TokenLogprob", "Usage"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides the distribution of the answer, and nothing else.

    `n` asks for n independent draws of the same request. `schema` is a JSON schema for
    structured output. `sampler` holds further sampling settings (top_p, top_k, min_p).
    """

    model: str
    messages: tuple[Message, ...]
    n: int = 1
    temperature: float = 1.0
    max_tokens: int = 256
    logprobs: bool = False
    top_logprobs: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    sampler: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token, its natural log-probability at temperature 1, and the alternatives shown."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one completion cost."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One independent draw. `logprobs` is None where none were asked for or given."""

    text: str
    finish_reason: str
    usage: Usage
    logprobs: tuple[TokenLogprob, ...] | None = None
    model: str | None = None
    request_id: str | None = None
    seed: int | None = None
    native_n: bool = True
    latency_s: float = 0.0
    sampler: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint can give; asking for more is an error before anything is sent."""

    native_n: int = 1
    logprobs: bool = False
    top_logprobs: int = 0
    seed: bool = False
    temperature: bool = True
    json_schema: bool = False


class Client(Protocol):
    """An endpoint that answers requests."""

    @property
    def endpoint(self) -> str:
        """Stable name of the endpoint, part of the ledger key; carries no secret."""

    @property
    def capabilities(self) -> Capabilities:
        """What this endpoint can give."""

    async def ask(self, request: Request) -> list[Completion]:
        """Return exactly `request.n` independent completions or raise a ClientError."""

    async def close(self) -> None:
        """Release connections and memory."""
