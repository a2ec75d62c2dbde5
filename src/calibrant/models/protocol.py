"""The small protocol that every model endpoint speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, structs

from calibrant.core.errors import PermanentClientError, TransientClientError
from calibrant.models.replies import TokenLogprob

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of JSON: what a call to an endpoint is made of."""


# Requests are made by the million when a rerun is planned: a structure of msgspec is made ten
# times as fast as a frozen dataclass, and the garbage collector does not visit it.
class Message(Struct, frozen=True, gc=False):
    """One turn of a conversation; `role` is ``system``, ``user`` or ``assistant``.

    The content is a text, or parts as OpenAI's chat interface has them: texts and images.
    """

    role: str
    content: str | list[dict[str, Any]]

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The content as parts."""
        if isinstance(self.content, list):
            return self.content
        return [{"type": "text", "text": self.content}]

    @property
    def text(self) -> str:
        """The texts of the content."""
        return "\n".join(str(part.get("text", "")) for part in self.parts if "text" in part)


def image_address(part: Mapping[str, object]) -> str:
    """Return where an image of a message is, or the image itself; nothing of a text."""
    image = part.get("image_url")
    return str(image.get("url", "")) if isinstance(image, Mapping) else ""


class Request(Struct, frozen=True, gc=False):
    """Everything that decides the distribution of the answer, and nothing else.

    Parameters
    ----------
    model
        Name of the model as the endpoint knows it.
    messages
        The conversation so far.
    n
        Number of independent draws of the same request.
    temperature
        0 is greedy; 1 is the model's own distribution.
    max_tokens
        Longest answer.
    logprobs, top_logprobs
        Whether to return the log-probability of each token, and of how many alternatives.
    seed
        Seed of the first draw; draw i of the request uses ``seed + i``. None where the
        endpoint takes no seed (see `Capabilities.seed`) or none is wanted.
    stop
        Texts that end the answer.
    schema
        JSON schema of a structured answer.
    sampler
        Further sampling settings: ``top_p``, ``top_k``, ``min_p``.
    thinking_tokens
        Room for thinking, on top of `max_tokens`.
    extra
        Further fields of the call, as the endpoint names them.
    body
        A caller's own request, passed on as it is but for the model's name: messages with images,
        tools, fields that nobody here knows. Only for OpenAI-style endpoints.
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
    schema: Mapping[str, Json] | None = None
    sampler: Mapping[str, float] = {}
    thinking_tokens: int = 0
    extra: Mapping[str, Json] | None = None
    body: Mapping[str, Json] | None = None

    @property
    def most_tokens(self) -> int:
        """The most tokens that one draw can take."""
        return self.max_tokens + self.thinking_tokens

    def with_sampler(self, base: Mapping[str, float]) -> Request:
        """Return the request with `base` under its own sampling settings.

        Examples
        --------
        >>> Request("m", (), sampler={"top_p": 0.9}).with_sampler({"top_p": 1, "top_k": 0}).sampler
        {'top_p': 0.9, 'top_k': 0}
        """
        if not self.sampler:
            return structs.replace(self, sampler=base)
        if base.keys() <= self.sampler.keys():
            return self
        return structs.replace(self, sampler={**base, **self.sampler})


class Usage(Struct, frozen=True, gc=False, array_like=True):
    """Tokens that one completion cost.

    Where one call makes several draws, the prompt is paid once: its tokens stand with the
    first draw of the call and are 0 for the others, so that sums over draws are what was paid.
    """

    prompt_tokens: int
    completion_tokens: int


# What the ledger calls these fields; it keeps log-probs as columns, see `codec`.
_STORED = {
    "finish_reason": "finish",
    "logprobs_refused": "refused",
    "end_logprob": "end",
    "logprobs": "-",
}


class Completion(Struct, frozen=True, rename=_STORED):
    """One independent draw.

    Parameters
    ----------
    text
        The answer.
    finish_reason
        ``stop``, ``length``, ``content_filter`` or what else the endpoint said.
    usage
        Tokens paid for this draw.
    logprobs
        One entry per token of the text, without an end token; of an empty text the end token
        alone, where the endpoint shows it. None where none were asked for or given.
    model
        Name of the model that the endpoint says has answered.
    request_id
        The endpoint's own name of the call.
    seed
        Seed that was sent for this very draw.
    native_n
        True where the endpoint made several draws in one call (its own `n`); False where the
        draw had a call of its own.
    latency_s
        Seconds from sending to the whole answer.
    sampler
        Sampling settings that were in force.
    logprobs_refused
        Why returned log-probs were not believed (``logprobs`` is then None).
    served_by
        Which of several equal endpoints answered; None where there is only one.
    end_logprob
        Log-probability of the end token, where the endpoint shows it. Without it the product of
        the others is the probability of a prefix.
    usage_estimated
        Why `usage` is an estimate from the text; None where the endpoint counted.
    odd, raw
        What is odd about the form of the answer, and the answer as it came, shortened.
    response
        The endpoint's whole answer, where a caller's own request was passed on.
    thinking, thinking_tokens
        What the model thought before it answered, where the endpoint shows it, and the tokens of
        that, which `usage` counts too.
    not_sent
        Settings of the request that the endpoint refuses, so that they were left out.
    fingerprint
        The endpoint's name of the version that has answered.
    """

    text: str
    finish_reason: str
    usage: Usage
    logprobs: Sequence[TokenLogprob] | None = None
    model: str | None = None
    request_id: str | None = None
    seed: int | None = None
    native_n: bool = True
    latency_s: float = 0.0
    sampler: Mapping[str, float] = {}
    logprobs_refused: str | None = None
    served_by: str | None = None
    end_logprob: float | None = None
    usage_estimated: str | None = None
    odd: str | None = None
    raw: str | None = None
    response: Mapping[str, object] | None = None
    thinking: str | None = None
    thinking_tokens: int | None = None
    not_sent: tuple[str, ...] = ()
    fingerprint: str | None = None


class Capabilities(Struct, frozen=True):
    """What an endpoint can give; asking for more is an error before anything is sent.

    Parameters
    ----------
    native_n
        Most draws in one call; 1 means that every draw needs a call of its own.
    logprobs, top_logprobs
        Whether token log-probs are returned, and of how many alternatives at most.
    seed, json_schema
        Whether a seed and a JSON schema are taken.
    temperature
        Whether a temperature may be set at all; without, draws vary as the model's own setting has
        it, and a single answer is one of them.
    thinking_tokens
        Room for thinking that every request gets on top of its longest answer.
    max_temperature
        The highest temperature taken.
    samplers
        Further sampling settings that the endpoint understands.
    concurrency
        Most calls at the same time that make sense; None where the dispatcher finds out.
    """

    native_n: int = 1
    logprobs: bool = False
    top_logprobs: int = 0
    seed: bool = False
    temperature: bool = True
    json_schema: bool = False
    max_temperature: float = 2.0
    samplers: tuple[str, ...] = ("top_p",)
    concurrency: int | None = None
    thinking_tokens: int = 0


class EndpointRefusedError(PermanentClientError):
    """The endpoint refuses every request (wrong key, no such model, no credit left).

    Unlike another permanent error it is no property of one question: the run stops.
    """

    retry_after: float | None = None


class OverloadError(TransientClientError):
    """The endpoint has too much to do (429, 503, time-out, lost connection): ask more slowly.

    Parameters
    ----------
    message, retry_after
        See `TransientClientError`.
    rate_limited
        Whether the endpoint said so itself; such a refusal costs no try.
    """

    def __init__(
        self, message: str, *, retry_after: float | None = None, rate_limited: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.rate_limited = rate_limited


class UnreachableError(OverloadError):
    """Nothing answers at the address: no such host, or nobody listens there."""


class ElsewhereError(TransientClientError):
    """One of several equal endpoints failed: another one can be asked at once.

    Where this failure is the one for which an endpoint is left out, `left_out` is its name and
    `notice` a sentence for the user.

    Parameters
    ----------
    message
        What happened.
    rate_limited
        Whether the endpoint is alive and asks for patience; then there is a pause all the same.
    """

    left_out: str | None = None
    notice: str | None = None

    def __init__(self, message: str, *, rate_limited: bool) -> None:
        super().__init__(message)
        self.rate_limited = rate_limited


@runtime_checkable
class Client(Protocol):
    """An endpoint that answers requests."""

    @property
    def endpoint(self) -> str:
        """Stable name of the endpoint, part of the ledger key; carries no secret."""

    @property
    def capabilities(self) -> Capabilities:
        """What this endpoint can give."""

    async def ask(self, request: Request) -> list[Completion]:
        """Return at least one and at most `request.n` independent completions.

        Fewer than n come back where the endpoint gives fewer; the dispatcher, which knows what
        is in the ledger already, asks for the rest. Where `request.n` is above
        `capabilities.native_n` the call is fanned out.
        """

    async def close(self) -> None:
        """Release connections and memory."""


@runtime_checkable
class PreparingClient(Client, Protocol):
    """A client that fills in what its endpoint needs before a request becomes a ledger key."""

    def prepare(self, request: Request) -> Request:
        """Return the request as it will be sent, or raise CapabilityError."""

    def resolve(self, model: str) -> str:
        """Return the exact model behind the name (for a file: with its hash)."""


@runtime_checkable
class ReplayingClient(Client, Protocol):
    """A client that has no distribution to draw from, only the draws of another ledger."""

    async def replay(
        self, request: Request, *, purpose: str, first_draw: int, n: int
    ) -> list[Completion]:
        """Return draws ``first_draw`` to ``first_draw + n - 1`` of the request, or raise."""
