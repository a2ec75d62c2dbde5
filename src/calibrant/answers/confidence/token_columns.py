"""Tokens of each draw with their texts and alternatives, in flat columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from calibrant.answers.confidence.segments import count_by
from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.errors import InputError

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

    def rows_with_text(self, n_rows: int) -> Mask:
        """Return which draws have the texts of all their tokens."""
        has_text = self.text.is_not_null().to_numpy()
        return self._all(has_text, n_rows)

    def rows_with_alternatives(self, n_rows: int) -> Mask:
        """Return which draws have alternatives of all their tokens."""
        return self._all(count_by(self.of, self.row.size) > 0, n_rows)

    def _all(self, known_values: Mask, n_rows: int) -> Mask:
        total = count_by(self.row, n_rows)
        return np.asarray((total > 0) & (count_by(self.row[known_values], n_rows) == total))


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
