"""Requests and completions as bytes: the canonical form that the ledger keeps."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import orjson

from calibrant.models.protocol import Completion, Json, Message, Request, image_address
from calibrant.models.replies import Alternatives, TokenLogprobs


def canonical_request(request: Request) -> bytes:
    """Return the request without `n` as bytes: equal requests give equal bytes.

    Defaults are left out, so that a setting added later does not change the keys of old draws.

    Examples
    --------
    >>> from calibrant.models.protocol import Message
    >>> a = Request("m", (Message("user", "Hello"),), n=1, sampler={"top_p": 1, "min_p": 0})
    >>> b = Request("m", (Message("user", "Hello"),), n=9, sampler={"min_p": 0.0, "top_p": 1.0})
    >>> canonical_request(a) == canonical_request(b)
    True
    """
    if request.body is not None:
        passing = {"model": request.model, "body": request.body}
        return orjson.dumps(passing, option=orjson.OPT_SORT_KEYS)
    body: dict[str, Json] = {
        "model": request.model,
        "messages": [[message.role, _content(message)] for message in request.messages],
        "temperature": float(request.temperature),
        "max_tokens": request.max_tokens,
    }
    for name in ("logprobs", "top_logprobs", "stop", "thinking_tokens", "extra"):
        if value := getattr(request, name):
            body[name] = value
    for name in ("seed", "schema"):
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.sampler:
        body["sampler"] = {name: float(value) for name, value in request.sampler.items()}
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)


def _content(message: Message) -> Any:
    """Return a turn as the ledger knows it: an image that was sent along by its SHA-256 alone."""
    if isinstance(message.content, str):
        return message.content
    selection = []
    for part in message.content:
        url = image_address(part)
        digest = hashlib.sha256(url.encode()).hexdigest()
        selection.append({"type": "image", "sha256": digest} if url.startswith("data:") else part)
    return selection


def encode_completion(completion: Completion) -> bytes:
    """Return a completion as JSON; token log-probs are stored as columns.

    Examples
    --------
    >>> from calibrant.models.replies import TokenLogprob
    >>> from calibrant.models.protocol import Usage
    >>> one = Completion("Paris", "stop", Usage(9, 1), (TokenLogprob("Paris", -0.1),))
    >>> decode_completion(encode_completion(one)) == one
    True
    """
    body = {
        field.encode_name: value
        for field in _FIELDS
        if (value := getattr(completion, field.name)) is not None and value != ()
    }
    if completion.logprobs is not None:
        columns = TokenLogprobs.of(completion.logprobs)
        body["tokens"], body["logprobs"] = columns.tokens, columns.values
        if (tops := columns.tops) is not None:
            body["tops"] = {"counts": tops.counts, "tokens": tops.tokens, "logprobs": tops.values}
    return msgspec.json.encode(body)


_FIELDS = [field for field in msgspec.structs.fields(Completion) if field.name != "logprobs"]


class StoredAlternative(msgspec.Struct, array_like=True, gc=False):
    """An alternative as the ledger kept it before."""

    token: str
    logprob: float


class StoredTops(msgspec.Struct):
    """The alternatives of all tokens as the ledger keeps them."""

    counts: list[int]
    tokens: list[str]
    logprobs: list[float]


class StoredCompletion(Completion, frozen=True, kw_only=True, rename={"values": "logprobs"}):
    """A completion as the ledger keeps it; `top` is how `tops` was written before."""

    tokens: list[str] | None = None
    values: list[float] | None = None
    tops: StoredTops | None = None
    top: list[list[StoredAlternative]] | None = None


_decoder = msgspec.json.Decoder(StoredCompletion)


def decode_completion(payload: bytes) -> Completion:
    """Return the completion that `encode_completion` wrote."""
    body = _decoder.decode(payload)
    logprobs = None
    if body.tokens is not None:
        tops = Alternatives.joined(body.top or ())
        if body.tops is not None:
            tops = Alternatives(body.tops.counts, body.tops.tokens, body.tops.logprobs)
        logprobs = TokenLogprobs(body.tokens, body.values or [], tops)
    equal = {field.name: getattr(body, field.name) for field in _FIELDS}
    return Completion(logprobs=logprobs, **equal)
