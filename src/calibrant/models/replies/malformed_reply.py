"""Answers of an odd form are paid for: what can be read is kept, and thinking is kept apart."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from calibrant.data.limits import limit
from calibrant.models.replies.tokens import TokenLogprobs

MOST_RAW = 200_000
"""Characters of an odd answer that are kept as they came."""
MOST_NAME = 200
MOST_TOKENS = 1_000_000_000
"""No call has more tokens: a larger count is a mistake of the endpoint."""
# A text that never ends is one piece: the time grows with the length, whatever comes.
_PIECES = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking"})


def loose_json(raw: bytes) -> Any:
    """Return JSON whatever its depth and the size of its numbers; raise ValueError if it is none.

    Examples
    --------
    >>> loose_json(b'{"text": "Paris", "more": ' + b"[" * 999 + b"]" * 999 + b"}")["text"]
    'Paris'
    >>> loose_json(b'{"id": ' + b"9" * 5000 + b"}")["id"]
    inf
    """
    text = _without_depth(raw).decode("utf-8", "replace")
    return json.loads(text, parse_int=_number)


def any_json(raw: bytes) -> Any:
    """Return JSON, also where it is too deep or its numbers too large for the quick reader."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return loose_json(raw)


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


def _without_depth(raw: bytes) -> bytes:
    """Return the JSON with null in place of what is nested too deeply."""
    selection, depth, start, most = [], 0, 0, limit("json_levels")
    for piece in _PIECES.finditer(raw):
        sign = piece.group()
        if sign in b"[{":
            depth += 1
            if depth == most + 1:
                selection.append(raw[start : piece.start()] + b"null")
        elif sign in b"]}":
            depth -= 1
            if depth == most:
                start = piece.end()
    return b"".join(selection) + raw[start:] if selection else raw


def text_of(content: Any) -> str | None:
    """Return the text of a message in any of the usual forms, None where there is none.

    Examples
    --------
    >>> text_of([{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}])
    'Paris'
    >>> text_of({"city": "Paris"})
    '{"city": "Paris"}'
    """
    if isinstance(content, list):
        return "".join(filter(None, map(_part, content)))
    return _part(content)


def _part(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        if part.get("thought") or str(part.get("type")) in _THOUGHTS:
            return None
        for name in ("text", "content", "value"):
            if isinstance(part.get(name), str):
                return str(part[name])
    return None if part is None else json.dumps(part, ensure_ascii=False)


def bounded_text(text: str, most: int | None = None) -> str:
    """Return the text as far as it is kept, without halves of characters."""
    text = text[: limit("draw_characters") if most is None else most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8", "replace")


def first_text(raw: bytes) -> str | None:
    """Return an odd answer as it came, as far as it is kept."""
    return bounded_text(raw[: 4 * MOST_RAW].decode("utf-8", "replace"), MOST_RAW) or None


def short_name(value: Any) -> str | None:
    """Return an id or a model's name as a short text, however the endpoint writes it.

    Examples
    --------
    >>> short_name("call-1"), short_name(["a", 1]), short_name(None)
    ('call-1', '["a", 1]', None)
    >>> len(short_name("x" * 1_000_000))
    141
    """
    if value is None:
        return None
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            value = type(value).__name__
    if len(value) <= MOST_NAME:
        return bounded_text(value)
    # Two long names that begin alike stay two names.
    digest = hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=10).hexdigest()
    return bounded_text(value[:118]) + "..." + digest


def token_count(value: Any) -> int | None:
    """Return a number of tokens; None where it is missing, negative or beyond any call.

    Examples
    --------
    >>> [token_count(value) for value in (12, 12.0, "12", None, -3, 1e30, True)]
    [12, 12, None, None, None, None, None]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS else None


MOST_THINKING = 100_000
"""Characters of thinking that are kept."""
BEGIN, END = "<think>", "</think>"
INSEPARABLE = "the tokens of the answer cannot be told from those of the thinking before it"


def split_thinking(text: str) -> tuple[str | None, str]:
    r"""Return the thinking at the beginning of a text, None where there is none, and the rest.

    Some servers put the opening mark into the prompt, so that only the closing one is seen. Without
    a closing mark everything is thinking: the answer was cut off before it began.

    Examples
    --------
    >>> split_thinking("<think>Peru: Lima.</think>\n\nLima")
    ('Peru: Lima.', 'Lima')
    >>> split_thinking("Peru: Lima.</think>Lima")
    ('Peru: Lima.', 'Lima')
    >>> split_thinking("<think>Peru")
    ('Peru', '')
    >>> split_thinking("Write <think>..</think> around it.")
    (None, 'Write <think>..</think> around it.')
    """
    if BEGIN not in text and END not in text:
        return None, text
    source = text.lstrip().startswith(BEGIN)
    if not source and not (END in text and BEGIN not in text.partition(END)[0]):
        return None, text
    thought, _, tail = text.partition(END)
    return thought.replace(BEGIN, "", 1).strip(), tail.lstrip()


def tokens_of_answer(logprobs: TokenLogprobs) -> TokenLogprobs | None:
    """Return the tokens behind the closing mark; None where a token lies across it."""
    joined = ""
    for place, token in enumerate(logprobs.tokens):
        before, joined = joined, joined + token
        if END in joined:
            if joined.partition(END)[2].strip() or END in before:
                return None
            return logprobs.part(place + 1, len(logprobs))
    return logprobs.part(len(logprobs), len(logprobs))


def kept_thinking(*given: Any) -> str | None:
    """Return the first text among what an endpoint calls thinking, as far as it is kept.

    Examples
    --------
    >>> kept_thinking(None, "", "Peru: Lima.")
    'Peru: Lima.'
    """
    thinking = next((item for item in given if isinstance(item, str) and item), None)
    return None if thinking is None else bounded_text(thinking, MOST_THINKING)
