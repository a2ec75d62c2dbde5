"""Token log-probs in columns (there may be thousands), and whether they can be believed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple, Protocol, overload

from msgspec import Struct


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
        return _bad_value(values)
    tops = columns.tops
    if lowest == highest == 0.0 and (tops is None or min(tops.values) >= -1.0):
        # No alternative far below 0 shows that the model was indeed certain.
        return f"all {len(values)} log-probs are 0: the endpoint does not compute them"
    return None if tops is None else _bad_alternatives(tops)


def _bad_value(values: Sequence[float]) -> str:
    for position, value in enumerate(values, start=1):
        place = f"token {position} of {len(values)} has log-prob {value:g}"
        if math.isnan(value):
            return f"{place}: not a number"
        if value > ROUNDING:
            return f"{place}: a log-probability is never above 0"
        if value <= PLACEHOLDER:
            return f"{place}: a placeholder, not a log-probability"
    raise AssertionError("a sound sequence was called bad")


def _bad_alternatives(tops: Alternatives) -> str | None:
    # An endpoint that does not compute alternatives shows it at once: a few tokens are enough.
    for index in range(min(4, len(tops.counts))):
        values = tops.values[tops.place(index)]
        if len(values) > 1 and sum(map(math.exp, values)) > 1.0 + EXCESS:
            return (
                f"the alternatives of token {index + 1} of {len(tops.counts)} have "
                f"probabilities that add up to {sum(map(math.exp, values)):.3g}"
            )
    return None
