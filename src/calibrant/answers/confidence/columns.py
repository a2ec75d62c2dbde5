"""Flat columns: reductions over runs of one unit, and the tokens of draws with alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.arrays import Array, Floats, Ints, Mask
from calibrant.core.errors import InputError


def count_by(group: Ints, size: int) -> Ints:
    """Return how many rows each group has."""
    return np.bincount(group, minlength=size).astype(np.int64, copy=False)


def sum_by(group: Ints, values: npt.NDArray[np.floating] | Mask, size: int) -> Floats:
    """Return the sum of `values` per group; a NaN makes its group NaN."""
    return np.bincount(group, weights=values, minlength=size).astype(np.float64, copy=False)


def mean_by(group: Ints, values: Floats, size: int) -> Floats:
    """Return the mean per group over values that are known; NaN where none is.

    Examples
    --------
    >>> mean_by(np.array([0, 0, 1]), np.array([0.2, 0.4, np.nan]), 2).round(1).tolist()
    [0.3, nan]
    """
    finite = ~np.isnan(values)
    return ratio(sum_by(group, np.where(finite, values, 0.0), size), sum_by(group, finite, size))


def ratio(above: Array, below: Array) -> Floats:
    """Return the quotient; NaN or infinite, without a warning, where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Floats = above / below
    return quotient


def weighted_mean(group: Ints, values: Floats, weight: Floats, size: int) -> Floats:
    """Return the weighted mean per group; NaN where there is no weight."""
    return ratio(sum_by(group, weight * values, size), sum_by(group, weight, size))


def first_index(group: Ints, mask: Mask, size: int) -> Ints:
    """Return the first row of each group where `mask` holds, -1 where it never does.

    Examples
    --------
    >>> first_index(np.array([0, 0, 1]), np.array([False, True, False]), 2).tolist()
    [1, -1]
    """
    first = np.full(size, -1, dtype=np.int64)
    rows = np.flatnonzero(mask)[::-1]  # written backwards, so the first row is written last
    first[group[rows]] = rows
    return first


def first_argmax(
    values: npt.NDArray[np.floating] | Ints, group: Ints, mask: Mask, size: int
) -> Ints:
    """Return the row of the largest value per group, the first one among equals; -1 for none.

    Examples
    --------
    >>> group = np.array([0, 0, 0, 1])
    >>> first_argmax(np.array([1.0, 3.0, 3.0, 5.0]), group, np.ones(4, bool), 2).tolist()
    [1, 3]
    """
    usable = mask & ~np.isnan(values)
    best = np.full(size, -np.inf)
    np.maximum.at(best, group[usable], values[usable])
    return first_index(group, usable & (values == best[group]), size)


def gather(values: npt.NDArray[np.floating], rows: Ints) -> Floats:
    """Return ``values[rows]`` with NaN where the row is -1.

    Examples
    --------
    >>> gather(np.array([0.5, 1.0]), np.array([1, -1])).tolist()
    [1.0, nan]
    """
    return np.append(values, np.nan)[rows]


Alternatives = Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class TokenColumns:
    """All tokens of a block, end to end.

    Parameters
    ----------
    row
        Draw of each token, not decreasing.
    logprob
        Log-probability of each token.
    text
        Text of each token; null where it is not known.
    of
        Token that each alternative belongs to, an index into the columns above.
    alternative, alternative_logprob
        Text and log-prob of the most probable tokens at that place, the chosen one included.
    """

    row: Ints
    logprob: Floats
    text: pl.Series
    of: Ints
    alternative: pl.Series
    alternative_logprob: Floats

    def rows_with_all(self, what: str, n_rows: int) -> Mask:
        """Return which draws have the ``text``, or alternatives, of all their tokens."""
        mask = self.text.is_not_null().to_numpy()
        if what != "text":
            mask = count_by(self.of, self.row.size) > 0
        total = count_by(self.row, n_rows)
        return np.asarray((total > 0) & (count_by(self.row[mask], n_rows) == total))


def no_tokens() -> TokenColumns:
    """Return the columns of draws without tokens."""
    return tokens_from_lists([], [], [])


def tokens_from_frame(frame: pl.DataFrame) -> TokenColumns:
    """Return the tokens of a block of draws; none where neither texts nor alternatives are kept."""
    has_text = "token_texts" in frame.columns
    has_top = "token_alternatives" in frame.columns
    if not has_text and not has_top:
        return no_tokens()
    logprobs = frame["token_logprobs"].to_list()
    texts = frame["token_texts"].to_list() if has_text else [None] * frame.height
    tops = frame["token_alternatives"].to_list() if has_top else [None] * frame.height
    listed = [
        None
        if top is None
        else [{item["token"]: item["logprob"] for item in place or ()} for place in top]
        for top in tops
    ]
    return tokens_from_lists(logprobs, texts, listed)


def tokens_from_lists(
    logprobs: Sequence[Sequence[float] | None],
    texts: Sequence[Sequence[str] | None],
    alternatives: Sequence[Alternatives | None],
) -> TokenColumns:
    """Return the columns of draws given as lists, one entry per draw.

    Examples
    --------
    >>> columns = tokens_from_lists([[-0.1, -0.2]], [["Li", "ma"]], [None])
    >>> columns.text.to_list(), columns.row.tolist()
    (['Li', 'ma'], [0, 0])
    """
    row: list[int] = []
    values: list[float] = []
    names: list[str | None] = []
    of: list[int] = []
    peers: list[str] = []
    other_values: list[float] = []
    for place, (logs, words, tops) in enumerate(zip(logprobs, texts, alternatives, strict=True)):
        size = len(logs or ())
        for name, value in (("texts", words), ("alternatives", tops)):
            if value is not None and len(value) != size:
                raise InputError(
                    f"{name} of tokens are as many as their log-probs: {size}, got {len(value)}"
                )
        for position in range(size):
            for token, logprob in (tops[position] if tops is not None else {}).items():
                of.append(len(row))
                peers.append(token)
                other_values.append(logprob)
            row.append(place)
            values.append((logs or ())[position])
            names.append(None if words is None else words[position])
    return TokenColumns(
        row=np.array(row, dtype=np.int64),
        logprob=np.array(values, dtype=np.float64),
        text=pl.Series("text", names, dtype=pl.String),
        of=np.array(of, dtype=np.int64),
        alternative=pl.Series("alternative", peers, dtype=pl.String),
        alternative_logprob=np.array(other_values, dtype=np.float64),
    )
