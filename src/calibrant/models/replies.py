"""What a reply holds: token log-probs in columns, and the texts of answers of an odd form."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol, overload

import orjson
from msgspec import Struct

from calibrant.data.formats import limit


class TokenLogprob(NamedTuple):
    """One token, its natural log-probability at temperature 1, and the alternatives shown."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Shown(Protocol):
    """An alternative as a parser makes it."""

    token: str
    logprob: float


class Alternatives(Struct, eq=False):
    """The alternatives of all tokens of an answer, end to end.

    Parameters
    ----------
    counts
        How many of them belong to each token.
    tokens, values
        Texts and log-probs, as many as the counts add up to.

    Examples
    --------
    >>> Alternatives([1, 2], ["a", "b", "c"], [-0.1, -0.2, -2.0]).of(1)
    (('b', -0.2), ('c', -2.0))
    """

    counts: Sequence[int]
    tokens: Sequence[str]
    values: Sequence[float]
    _ends: list[int] | None = None

    @classmethod
    def joined(cls, shown: Sequence[Sequence[Shown] | None]) -> Alternatives | None:
        """Return what a parser made of each token, end to end; None where nothing is shown."""
        counts = [len(subset) if subset else 0 for subset in shown]
        if not any(counts):
            return None
        flat = list(chain.from_iterable(filter(None, shown)))
        return cls(counts, [item.token for item in flat], [item.logprob for item in flat])

    def of(self, index: int) -> tuple[tuple[str, float], ...]:
        """Return the alternatives of one token."""
        place = self.place(index)
        return tuple(zip(self.tokens[place], self.values[place], strict=True))

    def place(self, index: int) -> slice:
        """Return where the alternatives of one token stand."""
        if self._ends is None:
            self._ends = list(accumulate(self.counts))
        return slice(self._ends[index] - self.counts[index], self._ends[index])

    def part(self, start: int, stop: int) -> Alternatives:
        """Return the alternatives of the tokens from `start` to before `stop`."""
        first = sum(self.counts[:start])
        here = slice(first, first + sum(self.counts[start:stop]))
        return Alternatives(self.counts[start:stop], self.tokens[here], self.values[here])


@dataclass(slots=True, eq=False, repr=False)
class TokenLogprobs(Sequence[TokenLogprob]):
    """A sequence of TokenLogprob that makes its entries when they are looked at.

    Most answers are kept, and few are looked at token by token. A tuple per token and per
    alternative would be made for nothing, and the garbage collector would visit all of them
    as long as the answer lives.

    Parameters
    ----------
    tokens, values
        Texts and log-probs, equally many.
    tops
        Alternatives of every token; None where there are none.

    Examples
    --------
    >>> TokenLogprobs(["Par", "is"], [-0.2, -0.1], None)[1]
    TokenLogprob(token='is', logprob=-0.1, top=())
    """

    tokens: Sequence[str]
    values: Sequence[float]
    tops: Alternatives | None

    @classmethod
    def of(cls, entries: Sequence[TokenLogprob]) -> TokenLogprobs:
        """Return the entries as columns."""
        if isinstance(entries, TokenLogprobs):
            return entries
        flat = [item for entry in entries for item in entry.top]
        counts = [len(entry.top) for entry in entries]
        tops = Alternatives(counts, [token for token, _ in flat], [value for _, value in flat])
        tokens, values = [e.token for e in entries], [e.logprob for e in entries]
        return cls(tokens, values, tops if flat else None)

    def part(self, start: int, stop: int) -> TokenLogprobs:
        """Return the entries from `start` to before `stop`, as columns."""
        tops = None if self.tops is None else self.tops.part(start, stop)
        return TokenLogprobs(self.tokens[start:stop], self.values[start:stop], tops)

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[TokenLogprob]:
        return map(self.__getitem__, range(len(self.tokens)))

    @overload
    def __getitem__(self, index: int) -> TokenLogprob: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[TokenLogprob, ...]: ...

    def __getitem__(self, index: int | slice) -> TokenLogprob | tuple[TokenLogprob, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        top = () if self.tops is None else self.tops.of(index)
        return TokenLogprob(self.tokens[index], self.values[index], top)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | TokenLogprobs) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


PLACEHOLDER = -9000.0
"""Endpoints write -9999 where they do not know a log-probability."""
ROUNDING = 1e-4
"""Some endpoints compute in half precision: a hair above 0 is rounding."""
EXCESS = 0.02
"""The same for the sum of the alternatives' probabilities."""


def refusal(logprobs: Sequence[TokenLogprob]) -> str | None:
    """Return why these log-probs cannot be believed, or None.

    Refused are values above 0, placeholders (-9999), values that are not finite, alternatives
    whose probabilities add up to more than 1, and 0 everywhere where no alternative shows that
    the model was indeed certain.

    Examples
    --------
    >>> refusal([TokenLogprob("Par", -0.2), TokenLogprob("is", 0.0)])
    >>> refusal([TokenLogprob("Par", -0.2), TokenLogprob("is", -9999.0)])
    'token 2 of 2 has log-prob -9999: a placeholder, not a log-probability'
    >>> refusal([TokenLogprob("Par", 0.0), TokenLogprob("is", 0.0)])
    'all 2 log-probs are 0: the endpoint does not compute them'
    """
    # Almost every answer is sound: one quick pass decides, the words are found afterwards.
    columns = TokenLogprobs.of(logprobs)
    values = columns.values
    if not values:
        return None
    lowest, highest = min(values), max(values)
    if not (lowest > PLACEHOLDER and highest <= ROUNDING and not math.isnan(sum(values))):
        for position, value in enumerate(values, start=1):
            place = f"token {position} of {len(values)} has log-prob {value:g}"
            if math.isnan(value):
                return f"{place}: not a number"
            if value > ROUNDING:
                return f"{place}: a log-probability is never above 0"
            if value <= PLACEHOLDER:
                return f"{place}: a placeholder, not a log-probability"
    tops = columns.tops
    if lowest == highest == 0.0 and (tops is None or min(tops.values) >= -1.0):
        # No alternative far below 0 shows that the model was indeed certain.
        return f"all {len(values)} log-probs are 0: the endpoint does not compute them"
    if tops is None:
        return None
    # An endpoint that does not compute alternatives shows it at once: a few tokens are enough.
    for index in range(min(4, len(tops.counts))):
        peers = tops.values[tops.place(index)]
        total = sum(map(math.exp, peers))
        if len(peers) > 1 and total > 1.0 + EXCESS:
            return (
                f"the alternatives of token {index + 1} of {len(tops.counts)} have "
                f"probabilities that add up to {total:.3g}"
            )
    return None


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
