"""Token log-probs in columns: an answer may have thousands of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, overload

from msgspec.structs import astuple

__all__ = ["Shown", "TokenLogprob", "TokenLogprobs", "logprob_values"]


class TokenLogprob(NamedTuple):
    """One token, its natural log-probability at temperature 1, and the alternatives shown."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Shown(Protocol):
    """An alternative as a parser makes it: a structure of a token and its log-prob."""

    token: str
    logprob: float


class TokenLogprobs(Sequence[TokenLogprob]):
    """A sequence of TokenLogprob that makes its entries when they are looked at.

    Most answers are kept, and few are looked at token by token. A tuple per token and per
    alternative would be made for nothing, and the garbage collector would visit all of them
    as long as the answer lives.

    Parameters
    ----------
    tokens, values
        Texts and log-probs, equally many.
    shown
        Alternatives of every token, as structures of the parser; None where there are none.

    Examples
    --------
    >>> TokenLogprobs(["Par", "is"], [-0.2, -0.1], None)[1]
    TokenLogprob(token='is', logprob=-0.1, top=())
    """

    __slots__ = ("shown", "tokens", "values")

    def __init__(
        self,
        tokens: Sequence[str],
        values: Sequence[float],
        shown: Sequence[Sequence[Shown] | None] | None,
    ) -> None:
        self.tokens = tokens
        self.values = values
        self.shown = shown

    def top(self, index: int) -> tuple[tuple[str, float], ...]:
        """Return the alternatives of one token."""
        shown = None if self.shown is None else self.shown[index]
        return tuple(map(astuple, shown)) if shown else ()  # type: ignore[arg-type]

    def tops(self) -> list[list[tuple[Any, ...]]]:
        """Return the alternatives of all tokens, empty where none were shown."""
        if self.shown is None:
            return []
        return [list(map(astuple, shown)) if shown else [] for shown in self.shown]  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[TokenLogprob]:
        for index, (token, value) in enumerate(zip(self.tokens, self.values, strict=True)):
            yield TokenLogprob(token, value, self.top(index))

    @overload
    def __getitem__(self, index: int) -> TokenLogprob: ...

    @overload
    def __getitem__(self, index: slice) -> TokenLogprobs: ...

    def __getitem__(self, index: int | slice) -> TokenLogprob | TokenLogprobs:
        if isinstance(index, slice):
            shown = None if self.shown is None else self.shown[index]
            return TokenLogprobs(self.tokens[index], self.values[index], shown)
        return TokenLogprob(self.tokens[index], self.values[index], self.top(index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | TokenLogprobs) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


def logprob_values(logprobs: Sequence[TokenLogprob]) -> Sequence[float]:
    """Return the column of log-probs.

    Examples
    --------
    >>> logprob_values((TokenLogprob("Par", -0.2), TokenLogprob("is", -0.1)))
    [-0.2, -0.1]
    """
    if isinstance(logprobs, TokenLogprobs):
        return logprobs.values
    return [entry.logprob for entry in logprobs]
