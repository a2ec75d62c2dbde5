"""Requests and completions as bytes: the canonical form that the ledger keeps."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from calibrant.clients.answers.odd import short_name
from calibrant.clients.answers.tokens import Alternatives, TokenLogprobs
from calibrant.clients.protocol import Completion, Request, Usage


def canonical_request(request: Request) -> bytes:
    """Return the request without `n` as bytes: equal requests give equal bytes.

    Defaults are left out, so that a setting added later does not change the keys of old draws.

    Examples
    --------
    >>> from calibrant.clients.protocol import Message
    >>> a = Request("m", (Message("user", "Hello"),), n=1, sampler={"top_p": 1, "min_p": 0})
    >>> b = Request("m", (Message("user", "Hello"),), n=9, sampler={"min_p": 0.0, "top_p": 1.0})
    >>> canonical_request(a) == canonical_request(b)
    True
    """
    if request.body is not None:
        passed = {"model": request.model, "body": request.body}
        return orjson.dumps(passed, option=orjson.OPT_SORT_KEYS)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [[message.role, message.content] for message in request.messages],
        "temperature": float(request.temperature),
        "max_tokens": request.max_tokens,
    }
    if request.logprobs:
        body["logprobs"] = True
    if request.top_logprobs:
        body["top_logprobs"] = request.top_logprobs
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["schema"] = request.schema
    if request.sampler:
        body["sampler"] = {name: float(value) for name, value in request.sampler.items()}
    if request.thinking_tokens:
        body["thinking_tokens"] = request.thinking_tokens
    if request.extra:
        body["extra"] = request.extra
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)


def encode_completion(completion: Completion) -> bytes:
    """Return a completion as JSON; token log-probs are stored as columns.

    Examples
    --------
    >>> from calibrant.clients.answers.tokens import TokenLogprob
    >>> one = Completion("Paris", "stop", Usage(9, 1), (TokenLogprob("Paris", -0.1),))
    >>> decode_completion(encode_completion(one)) == one
    True
    """
    body: dict[str, Any] = {
        "text": completion.text,
        "finish": completion.finish_reason,
        "usage": [completion.usage.prompt_tokens, completion.usage.completion_tokens],
        "model": completion.model,
        "request_id": completion.request_id,
        "seed": completion.seed,
        "native_n": completion.native_n,
        "latency_s": completion.latency_s,
        "sampler": completion.sampler,
    }
    if completion.logprobs is not None:
        columns = TokenLogprobs.of(completion.logprobs)
        body["tokens"], body["logprobs"] = columns.tokens, columns.values
        if (tops := columns.tops) is not None:
            body["tops"] = {
                "counts": tops.counts,
                "tokens": tops.tokens,
                "logprobs": tops.values,
            }
    if completion.end_logprob is not None:
        body["end"] = completion.end_logprob
    if completion.logprobs_refused is not None:
        body["refused"] = completion.logprobs_refused
    if completion.served_by is not None:
        body["served_by"] = completion.served_by
    for name in ("usage_estimated", "odd", "raw", "response", "thinking", "thinking_tokens"):
        if (value := getattr(completion, name)) is not None:
            body[name] = value
    if completion.not_sent:
        body["not_sent"] = completion.not_sent
    return orjson.dumps(body)


class StoredAlternative(msgspec.Struct, array_like=True, gc=False):
    """An alternative as the ledger kept it before."""

    token: str
    logprob: float


class StoredTops(msgspec.Struct):
    """The alternatives of all tokens as the ledger keeps them."""

    counts: list[int]
    tokens: list[str]
    logprobs: list[float]


class StoredCompletion(msgspec.Struct):
    """A completion as the ledger keeps it; `top` is how `tops` was written before."""

    text: str
    finish: str
    usage: tuple[int, int]
    model: str | None
    request_id: Any
    seed: int | None
    native_n: bool
    latency_s: float
    sampler: dict[str, float]
    tokens: list[str] | None = None
    logprobs: list[float] | None = None
    tops: StoredTops | None = None
    top: list[list[StoredAlternative]] | None = None
    refused: str | None = None
    served_by: str | None = None
    end: float | None = None
    usage_estimated: str | None = None
    odd: str | None = None
    raw: str | None = None
    response: dict[str, Any] | None = None
    thinking: str | None = None
    thinking_tokens: int | None = None
    not_sent: tuple[str, ...] = ()


_decoder = msgspec.json.Decoder(StoredCompletion)


def decode_completion(payload: bytes) -> Completion:
    """Return the completion that `encode_completion` wrote."""
    body = _decoder.decode(payload)
    logprobs = None
    if body.tokens is not None:
        logprobs = TokenLogprobs(body.tokens, body.logprobs or [], _alternatives(body))
    return Completion(
        text=body.text,
        finish_reason=body.finish,
        usage=Usage(*body.usage),
        logprobs=logprobs,
        model=body.model,
        # Ledgers of before hold ids of any form.
        request_id=short_name(body.request_id),
        seed=body.seed,
        native_n=body.native_n,
        latency_s=body.latency_s,
        sampler=body.sampler,
        logprobs_refused=body.refused,
        served_by=body.served_by,
        end_logprob=body.end,
        usage_estimated=body.usage_estimated,
        odd=body.odd,
        raw=body.raw,
        response=body.response,
        thinking=body.thinking,
        thinking_tokens=body.thinking_tokens,
        not_sent=body.not_sent,
    )


def _alternatives(body: StoredCompletion) -> Alternatives | None:
    if body.tops is not None:
        return Alternatives(body.tops.counts, body.tops.tokens, body.tops.logprobs)
    return None if body.top is None else Alternatives.joined(body.top)
