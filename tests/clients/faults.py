"""The faults of the test endpoint: what goes wrong, and how a run must take it.

Each fault has one of four ends. ``same``: the tables are those of a good endpoint. ``kept``: the
answer is odd but paid for, stored, and never asked for again. ``named``: the draw is given up and
its question named, with the reason. ``stops``: the run ends with one message.
"""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from aiohttp import web

from clients.server import (
    cut_chunks,
    error,
    half_json,
    half_written,
    reset,
    silence,
    trickle,
    web_page,
)

KEY = "sk-Very/Secret+Key-0123456789"
SAME, KEPT, NAMED, STOPS = "same", "kept", "named", "stops"


class Fault(NamedTuple):
    """A fault: `call` in place of an answer, or `spoil` of a good one by adapter.

    `anthropic` is the end there where it is another one, `timeout_s` what the client waits.
    """

    end: str
    call: Callable[[], Any] | None = None
    spoil: Callable[[str, dict[str, Any]], Any] | None = None
    anthropic: str | None = None
    timeout_s: float = 20.0

    def end_for(self, adapter: str) -> str:
        """Return how a run with this adapter must end."""
        return self.anthropic or self.end if adapter == "anthropic" else self.end


class Form(NamedTuple):
    """Where an adapter's answers have their parts."""

    draws: str
    usage: str
    tokens: tuple[str, str]
    model: str
    id: str


FORMS = {
    "openai": Form(
        "choices", "usage", ("prompt_tokens", "completion_tokens"), "model", "id"
    ),
    "anthropic": Form("content", "usage", ("input_tokens", "output_tokens"), "model", "id"),
    "gemini": Form(
        "candidates",
        "usageMetadata",
        ("promptTokenCount", "candidatesTokenCount"),
        "modelVersion",
        "responseId",
    ),
}  # fmt: skip


def _status(number: int, headers: dict[str, str] | None = None) -> Callable[[], Any]:
    return lambda: error(number, "no such luck", headers=headers)


def _wait(value: str, name: str = "Retry-After") -> Callable[[], Any]:
    return _status(429, {name: value})


def _moved(status: int, place: str) -> Callable[[], Any]:
    return lambda: web.Response(status=status, headers={"Location": place})


def _raw(make: Callable[[bytes], bytes]) -> Callable[[str, dict[str, Any]], Any]:
    """Spoil the bytes of a good answer."""
    return lambda adapter, answer: make(json.dumps(answer).encode())


def _packed(make: Callable[[bytes], bytes], encoding: str) -> Callable[[str, dict[str, Any]], Any]:
    def spoil(adapter: str, answer: dict[str, Any]) -> web.Response:
        body = make(json.dumps(answer).encode())
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        return web.Response(body=body, headers=headers)

    return spoil


def _part(name: str, value: Any) -> Callable[[str, dict[str, Any]], Any]:
    """Put a value in the place of a part of the answer."""

    def spoil(adapter: str, answer: dict[str, Any]) -> Any:
        return {**answer, getattr(FORMS[adapter], name): value}

    return spoil


def _without(name: str) -> Callable[[str, dict[str, Any]], Any]:
    def spoil(adapter: str, answer: dict[str, Any]) -> Any:
        gone = getattr(FORMS[adapter], name)
        return {key: value for key, value in answer.items() if key != gone}

    return spoil


def _tokens(first: Any, second: Any) -> Callable[[str, dict[str, Any]], Any]:
    def spoil(adapter: str, answer: dict[str, Any]) -> Any:
        form = FORMS[adapter]
        return {**answer, form.usage: dict(zip(form.tokens, (first, second), strict=True))}

    return spoil


def _content(change: Callable[[str], Any]) -> Callable[[str, dict[str, Any]], Any]:
    """Change the text of the first draw."""

    def spoil(adapter: str, answer: dict[str, Any]) -> Any:
        if adapter == "openai":
            message = answer["choices"][0]["message"]
            message["content"] = change(message["content"])
        elif adapter == "anthropic":
            block = answer["content"][0]
            block["text"] = change(block["text"])
        else:
            part = answer["candidates"][0]["content"]["parts"][0]
            part["text"] = change(part["text"])
        return answer

    return spoil


def _extra(value: bytes) -> Callable[[str, dict[str, Any]], Any]:
    """Add a field that nobody reads."""
    return _raw(lambda raw: raw[:-1] + b', "extra": ' + value + b"}")


def _more_draws(adapter: str, answer: dict[str, Any]) -> Any:
    name = FORMS[adapter].draws
    if adapter == "anthropic":
        thought = {"type": "thinking", "thinking": "Hm."}
        return {**answer, name: [thought, *answer[name], {"type": "tool_use", "input": {}}]}
    return {**answer, name: [*answer[name], *answer[name]]}


def _in_parts(adapter: str, answer: dict[str, Any]) -> Any:
    """Give the text in two parts, as some endpoints do."""
    text = json.dumps(_text_of(adapter, answer))
    half = len(text) // 2
    both = [json.loads(text[:half] + '"'), json.loads('"' + text[half:])]
    if adapter == "openai":
        answer["choices"][0]["message"]["content"] = [
            {"type": "text", "text": part} for part in both
        ]
    elif adapter == "anthropic":
        answer["content"] = [{"type": "text", "text": part} for part in both]
    else:
        answer["candidates"][0]["content"]["parts"] = [{"text": part} for part in both]
    return answer


def _text_of(adapter: str, answer: dict[str, Any]) -> str:
    if adapter == "openai":
        return answer["choices"][0]["message"]["content"]
    if adapter == "anthropic":
        return answer["content"][0]["text"]
    return answer["candidates"][0]["content"]["parts"][0]["text"]


FAULTS: dict[str, Fault] = {
    # Statuses that pass.
    **{
        f"status {number}": Fault(SAME, _status(number))
        for number in (408, 409, 421, 425, 429, 500, 501, 502, 503, 504, 507, 520, 522, 524, 529)
    },
    # Statuses that are the question's fault, and those that are the run's.
    **{f"status {number}": Fault(NAMED, _status(number)) for number in (400, 410, 413, 415, 422)},
    "status 418": Fault(NAMED, _status(418)),
    "status 451": Fault(NAMED, _status(451)),
    "status 204": Fault(NAMED, lambda: web.Response(status=204)),
    **{
        f"status {number}": Fault(STOPS, _status(number))
        for number in (401, 402, 403, 404, 405, 407)
    },
    "no credit left": Fault(STOPS, lambda: error(429, "insufficient_quota")),
    # Waits.
    "wait 0": Fault(SAME, _wait("0")),
    "wait a moment": Fault(SAME, _wait("0.05")),
    "wait some ms": Fault(SAME, _wait("20", "Retry-After-Ms")),
    "wait -5": Fault(SAME, _wait("-5")),
    "wait nan": Fault(SAME, _wait("nan")),
    "wait 1e400": Fault(SAME, _wait("1e400")),
    "wait nothing": Fault(SAME, _wait("")),
    "wait in words": Fault(SAME, _wait("a little while")),
    "wait until 1970": Fault(SAME, _wait("Thu, 01 Jan 1970 00:00:00 GMT")),
    "wait until an impossible date": Fault(SAME, _wait("Fri, 99 Foo 99999 99:99:99 GMT")),
    "wait squared": Fault(SAME, _wait("\u00b2")),
    "wait a day": Fault(STOPS, _wait("86400")),
    "wait 400 digits": Fault(STOPS, _wait("9" * 400)),
    "wait until 9999": Fault(STOPS, _wait("Fri, 31 Dec 9999 23:59:59 GMT")),
    "wait a day in ms": Fault(STOPS, _wait("86400000", "Retry-After-Ms")),
    # Redirects.
    **{
        f"redirect {number}": Fault(STOPS, _moved(number, "http://127.0.0.1:9/v1"))
        for number in (301, 302, 303, 307, 308)
    },
    "redirect to a file": Fault(STOPS, _moved(302, "file:///etc/passwd")),
    # Connections.
    "reset": Fault(SAME, lambda: reset),
    "half written": Fault(SAME, lambda: half_written),
    "cut between pieces": Fault(SAME, lambda: cut_chunks),
    "silence": Fault(SAME, lambda: silence, timeout_s=2.0),
    "a byte at a time": Fault(SAME, lambda: trickle, timeout_s=2.0),
    "many headers": Fault(
        SAME, lambda: error(500, "no", headers={f"X-{i}": "y" * 500 for i in range(60)})
    ),
    "a long header": Fault(SAME, lambda: error(500, "no", headers={"X-Long": "y" * 100_000})),
    # Bodies that are no answer.
    "half JSON": Fault(SAME, lambda: half_json),
    "a web page": Fault(SAME, lambda: web_page),
    "empty body": Fault(SAME, lambda: web.Response()),
    "null": Fault(SAME, spoil=lambda adapter, answer: b"null"),
    "a number": Fault(SAME, spoil=lambda adapter, answer: b"7"),
    "a list": Fault(SAME, spoil=lambda adapter, answer: b"[]"),
    "an empty object": Fault(SAME, spoil=lambda adapter, answer: {}),
    "two documents": Fault(SAME, spoil=_raw(lambda raw: raw + raw)),
    "UTF-16": Fault(SAME, spoil=_raw(lambda raw: raw.decode().encode("utf-16"))),
    "an error with status 200": Fault(
        SAME, spoil=lambda adapter, answer: {"error": {"message": "busy", "code": 503}}
    ),
    "no draws": Fault(SAME, spoil=_part("draws", None)),
    # What Anthropic calls the content is the text itself: read as far as it can be.
    "draws are a number": Fault(SAME, spoil=_part("draws", 3), anthropic=KEPT),
    "draws are null": Fault(SAME, spoil=_part("draws", [None])),
    # Compression.
    "gzip": Fault(SAME, spoil=_packed(gzip.compress, "gzip")),
    "deflate": Fault(SAME, spoil=_packed(zlib.compress, "deflate")),
    "broken gzip": Fault(SAME, spoil=_packed(lambda raw: gzip.compress(raw)[:40], "gzip")),
    "gzip that is none": Fault(SAME, spoil=_packed(lambda raw: raw, "gzip")),
    "a bomb": Fault(NAMED, spoil=_packed(lambda raw: gzip.compress(b" " * 9 * 1024**2, 1), "gzip")),
    # Answers that are odd and paid for.
    "deep JSON": Fault(SAME, spoil=_extra(b"[" * 50_000 + b"]" * 50_000)),
    "a number of 5,000 digits": Fault(SAME, spoil=_extra(b"9" * 5_000)),
    "NaN": Fault(SAME, spoil=_extra(b"NaN")),
    "a key twice": Fault(SAME, spoil=_extra(b'1, "extra": 2')),
    "bytes that are no UTF-8": Fault(SAME, spoil=_extra(b'"\xff\xfe\x80"')),
    "text in parts": Fault(SAME, spoil=_in_parts),
    "more draws than asked for": Fault(SAME, spoil=_more_draws),
    "an id of a megabyte": Fault(SAME, spoil=_part("id", "x" * 1_000_000)),
    "an id with parts": Fault(SAME, spoil=_part("id", {"a": [1, 2]})),
    "a model that is a number": Fault(SAME, spoil=_part("model", 4.1)),
    "no model": Fault(SAME, spoil=_without("model")),
    "no usage": Fault(SAME, spoil=_without("usage")),
    "usage in words": Fault(SAME, spoil=_tokens("ten", "six")),
    "negative usage": Fault(SAME, spoil=_tokens(-10, -6)),
    "absurd usage": Fault(SAME, spoil=_tokens(10**30, 1e300)),
    "text that is a number": Fault(KEPT, spoil=_content(lambda text: 3.5)),
    "text with zero bytes": Fault(KEPT, spoil=_content(lambda text: text + "\x00\x1b[2J")),
    "half a character": Fault(KEPT, spoil=_content(lambda text: text + "\ud800")),
    "text of 3,000,000 letters": Fault(KEPT, spoil=_content(lambda text: "x" * 3_000_000)),
    "the key": Fault(STOPS, spoil=_content(lambda text: text + KEY)),
}
