"""What is told of one question, in the shapes that callers know, and the row kept of it."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, convert

from calibrant.apps.serving.measure import Asked
from calibrant.core.errors import InputError
from calibrant.core.places import AppendOnly
from calibrant.trust.policy import Cell
from calibrant.trust.traffic_shift import CALLER

UNPROMISED = "none for this answer"
UNRECORDED = "none: it could not be recorded"


class Served(Struct, frozen=True):
    """A policy as it is served: its name, its method, what it promises and how long.

    `labelled_as` is the name of the method among its labels. After `expires` nothing is promised
    any more.
    """

    id: str
    method: str
    promise: str
    labelled_as: str = "confidence"
    ends_when: str | None = None
    expires: dt.date | None = None

    @property
    def days_left(self) -> int | None:
        """Days for which the promise holds; None where it names no end."""
        if self.expires is None:
            return None
        return max(0, (self.expires - dt.datetime.now(dt.UTC).date()).days)


class ServedReply(Struct, frozen=True, kw_only=True):
    """What became of a question: what its caller is told, then what that rests on.

    `decision` is ``answer``, ``defer`` or ``degraded``: a stronger model was wanted and failed, and
    the answer at hand is given without the promise. `why` says how sure the model is; what it would
    have said stands there only where the answer is given.
    """

    id: str
    decision: str
    answered_by: str | None
    asked: tuple[str, ...]
    probability: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    why: str
    risk: float | None
    cost: float
    policy: str
    method: str
    promise: str
    days_left: int | None
    ends_when: str | None
    shift: str | None
    degraded: str | None
    answer: str | None
    model: str | None
    response: Mapping[str, object] | None

    @property
    def said(self) -> dict[str, object]:
        """What a caller is told about an answer, beside the answer."""
        return {name: getattr(self, name) for name in self.__struct_fields__[:-3]}


KEPT_BACK = 10_000
"""Rows that wait for room at most."""


def row_of(
    reply: ServedReply, request: Asked, *, time: str, seconds: float, method: str
) -> dict[str, object]:
    """Return the row of a question; what its caller says of it has columns of its own."""
    plain = {k: v for k, v in request.known.items() if isinstance(v, str | int | float | bool)}
    return {
        **{f"{CALLER}{name}": value for name, value in plain.items() if name != "question_id"},
        "id": reply.id,
        "question_id": request.question_id,
        "question": request.text,
        "model": reply.model,
        "method": method,
        "answer": reply.answer,
        "confidence": reply.confidence,
        "probability": reply.probability,
        "decision": reply.decision,
        "policy": reply.policy,
        "cost": reply.cost,
        "seconds": seconds,
        "promised": not reply.promise.startswith("none"),
        "shift": reply.shift,
        "time": time,
    }


class RowFile:
    """Rows on their way to the disk; those for which there is no room wait in memory.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = AppendOnly(path)
        self._waiting: deque[bytes] = deque(maxlen=KEPT_BACK)
        self.problem: str | None = None
        """Why the last row could not be written."""

    @property
    def waiting(self) -> int:
        """Rows that are not on the disk yet."""
        return len(self._waiting)

    def write(self, row: Mapping[str, object]) -> bool:
        """Write a row and what waits before it; return whether they are there."""
        self._waiting.append(orjson.dumps(row, default=str))
        return self.catch_up()

    def catch_up(self) -> bool:
        """Write what waits; return whether nothing waits any more."""
        if self.problem is None and not self._waiting:
            return True
        try:
            self._file.append(*self._waiting)
        except OSError as error:
            if self.problem is None:
                where = self._file.path
                sys.stderr.write(f"calibrant serve: {where} cannot be written: {error.strerror}\n")
            self.problem = error.strerror or "it cannot be written"
            return False
        self._waiting.clear()
        self.problem = None
        return True


_PIECE = 24
"""Characters of a stream that go together."""


class _Choice(Struct):
    message: dict[str, object]
    finish_reason: object = None


class _Choices(Struct):
    """What is read of a chat completion; the rest is passed on."""

    choices: list[_Choice]


class Answer:
    """A chat completion with the field ``calibrant``; an endpoint's own answer is kept.

    Parameters
    ----------
    reply
        What became of the question.
    text
        The answer.
    response
        The endpoint's own answer, where there is one.
    number
        Counts the answers.
    """

    def __init__(
        self, reply: ServedReply, text: str, response: Mapping[str, object] | None, number: int
    ) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        completion = {
            "id": f"calibrant-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "choices": [choice],
        }
        verdict = {"model": reply.model, "calibrant": reply.said}
        self.body: dict[str, object] = {**(response or completion), **verdict}

    @property
    def _choice(self) -> _Choice:
        return convert(self.body, _Choices).choices[0]

    def as_chat(self) -> dict[str, object]:
        """Return it as it is."""
        return self.body

    def chat_events(self) -> Iterator[bytes]:
        """Yield it as the events of a stream."""
        head = {k: self.body.get(k) for k in ("id", "created", "model")}
        head["object"] = "chat.completion.chunk"
        choice = self._choice
        yield _chunk(head, {**choice.message, "role": "assistant", "content": ""})
        for piece in _pieces(_content(choice)):
            yield _chunk(head, {"content": piece})
        last = {"calibrant": self.body["calibrant"], "usage": self.body.get("usage")}
        yield _chunk({**head, **last}, {}, choice.finish_reason or "stop")
        yield b"data: [DONE]\n\n"

    def as_response(self) -> dict[str, object]:
        """Return it in the shape of the Responses interface."""
        return self._response(self._item(_part(_content(self._choice))))

    def _item(self, part: Mapping[str, object]) -> dict[str, object]:
        return {
            "id": f"msg_{self.body.get('id')}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }

    def _response(self, item: Mapping[str, object]) -> dict[str, object]:
        used = convert(self.body.get("usage") or {}, dict[str, object])
        names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        return {
            "id": self.body.get("id"),
            "object": "response",
            "created_at": self.body.get("created"),
            "status": "completed",
            "model": self.body.get("model"),
            "output": [item],
            "usage": {new: used.get(old, 0) for new, old in names.items()},
            "calibrant": self.body["calibrant"],
        }

    def response_events(self) -> Iterator[bytes]:
        """Yield it as the events of a stream of the Responses interface."""
        text = _content(self._choice)
        part = _part(text)
        item = self._item(part)
        whole = self._response(item)
        begun = {**whole, "status": "in_progress", "output": []}
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        events: list[tuple[str, dict[str, object]]] = [
            ("response.created", {"response": begun}),
            ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
            ("response.content_part.added", {**place, "part": _part("")}),
            *(("response.output_text.delta", {**place, "delta": piece}) for piece in _pieces(text)),
            ("response.output_text.done", {**place, "text": text}),
            ("response.content_part.done", {**place, "part": part}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": whole}),
        ]
        for number, (name, event) in enumerate(events):
            data = orjson.dumps({"type": name, "sequence_number": number, **event})
            yield b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def _content(choice: _Choice) -> str:
    return str(choice.message.get("content") or "")


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": []}


def _chunk(head: Mapping[str, object], delta: Mapping[str, object], finish: object = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({**head, "choices": [choice]}) + b"\n\n"


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def as_chat(body: Mapping[str, object]) -> dict[str, object]:
    """Return a request of the Responses interface as a chat request."""
    value = body.get("input")
    if isinstance(value, str):
        messages: list[dict[str, object]] = [{"role": "user", "content": value}]
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        messages = [{"role": i.get("role"), "content": _texts(i.get("content"))} for i in value]
    else:
        raise InputError("input is a text or a list of messages")
    if isinstance(instructions := body.get("instructions"), str):
        messages.insert(0, {"role": "system", "content": instructions})
    selection = {k: body[k] for k in ("temperature", "top_p", "metadata", "calibrant") if k in body}
    most = body.get("max_output_tokens")
    return {**selection, **({} if most is None else {"max_tokens": most}), "messages": messages}


def _texts(content: object) -> object:
    """Return the texts of a content that has parts; another one as it is."""
    if not isinstance(content, list):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def text_of(body: Mapping[str, object]) -> str:
    """Return the question: what the user said last."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise InputError("a request needs a list of messages")
    request = [
        m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user"
    ]
    if not request:
        raise InputError("a question needs a message of the role 'user'")
    text = _texts(request[-1])
    return text if isinstance(text, str) else ""


def asked_of(body: Mapping[str, Any]) -> Asked:
    """Return the question that a request asks, with what the caller says about it."""
    about: dict[str, Cell] = {}
    for name in ("metadata", "calibrant"):
        confidence = body.get(name) or {}
        if not isinstance(confidence, dict):
            raise InputError(f"{name} is an object, got {type(confidence).__name__}")
        about |= confidence
    if body.get("n") not in (None, 1):
        raise InputError("one answer is judged at a time, so n is 1")
    stripped = ("calibrant", "stream", "stream_options", "model")
    return Asked({k: v for k, v in body.items() if k not in stripped}, text_of(body), about)
