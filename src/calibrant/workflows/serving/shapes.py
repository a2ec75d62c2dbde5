"""Questions and answers in the shapes that callers know: chats, responses, and their streams."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from calibrant.core.errors import InputError
from calibrant.workflows.serving.engine import Told
from calibrant.workflows.serving.measure import Asked

_PIECE = 24
"""Characters of a stream that go together."""


def as_completion(
    told: Told, text: str, response: Mapping[str, Any] | None, number: int
) -> dict[str, Any]:
    """Return a chat completion with the field ``calibrant``; an endpoint's own answer is kept."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    made = {
        "id": f"calibrant-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "choices": [choice],
    }
    return {**(response or made), "model": told.model, "calibrant": told.said}


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of the Responses interface as a chat request."""
    given = body.get("input")
    if isinstance(given, str):
        messages = [{"role": "user", "content": given}]
    elif isinstance(given, list) and all(isinstance(item, dict) for item in given):
        messages = [{"role": i.get("role"), "content": _texts(i.get("content"))} for i in given]
    else:
        raise InputError("input is a text or a list of messages")
    if isinstance(body.get("instructions"), str):
        messages.insert(0, {"role": "system", "content": body["instructions"]})
    kept = {k: body[k] for k in ("temperature", "top_p", "metadata", "calibrant") if k in body}
    most = body.get("max_output_tokens")
    return {**kept, **({} if most is None else {"max_tokens": most}), "messages": messages}


def _texts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def as_response(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat completion in the shape of the Responses interface."""
    part = {"type": "output_text", "text": _text(answer), "annotations": []}
    message = {
        "id": f"msg_{answer.get('id')}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    used = answer.get("usage") or {}
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    return {
        "id": answer.get("id"),
        "object": "response",
        "created_at": answer.get("created"),
        "status": "completed",
        "model": answer.get("model"),
        "output": [message],
        "usage": {new: used.get(old, 0) for new, old in names.items()},
        "calibrant": answer["calibrant"],
    }


def _text(answer: Mapping[str, Any]) -> str:
    return str(_message(answer).get("content") or "")


def _message(answer: Mapping[str, Any]) -> dict[str, Any]:
    return dict((answer.get("choices") or [{}])[0].get("message") or {})


def chat_events(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a chat completion as the events of a stream."""
    head = {k: answer.get(k) for k in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    message, text = _message(answer), _text(answer)
    finish = (answer.get("choices") or [{}])[0].get("finish_reason") or "stop"
    yield _chunk(head, {**message, "role": "assistant", "content": ""})
    for piece in _pieces(text):
        yield _chunk(head, {"content": piece})
    last = {"calibrant": answer["calibrant"], "usage": answer.get("usage")}
    yield _chunk({**head, **last}, {}, finish)
    yield b"data: [DONE]\n\n"


def _chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({**head, "choices": [choice]}) + b"\n\n"


def response_events(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield an answer as the events of a stream of the Responses interface."""
    whole = as_response(answer)
    begun = {**whole, "status": "in_progress", "output": []}
    item, part = whole["output"][0], whole["output"][0]["content"][0]
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    empty = {**part, "text": ""}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
        ("response.content_part.added", {**place, "part": empty}),
        *(
            ("response.output_text.delta", {**place, "delta": piece})
            for piece in _pieces(part["text"])
        ),
        ("response.output_text.done", {**place, "text": part["text"]}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    for number, (name, event) in enumerate(events):
        data = orjson.dumps({"type": name, "sequence_number": number, **event})
        yield b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def text_of(body: Mapping[str, Any]) -> str:
    """Return the question: what the user said last."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise InputError("a request needs a list of messages")
    texts = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    if not texts:
        raise InputError("a question needs a message of the role 'user'")
    last = texts[-1]
    if isinstance(last, str):
        return last
    parts = last if isinstance(last, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def asked_of(body: Mapping[str, Any]) -> Asked:
    """Return the question that a request asks, with what the caller says about it."""
    known: dict[str, Any] = {}
    for name in ("metadata", "calibrant"):
        told = body.get(name) or {}
        if not isinstance(told, dict):
            raise InputError(f"{name} is an object, got {type(told).__name__}")
        known |= told
    if body.get("n") not in (None, 1):
        raise InputError("one answer is judged at a time, so n is 1")
    own = ("calibrant", "stream", "stream_options", "model")
    return Asked({k: v for k, v in body.items() if k not in own}, text_of(body), known)
