"""Rows in order of their score, a piece at a time: a sort that needs little more than its index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calibrant.core.arrays import Array, Floats

PIECE = 65_536


class ScoreSums(NamedTuple):
    """Weight and summed outcome at distinct scores."""

    score: Floats
    weight: Floats
    outcome: Floats


def sums_in_order(
    score: Array, correct: Array, weights: Array | None, *, falling: bool = False
) -> Iterator[ScoreSums]:
    """Yield the sums at distinct scores in rising (or falling) order, piece by piece.

    A score never appears in two pieces. Only the order of the rows is held as a whole.

    Examples
    --------
    >>> pieces = sums_in_order(np.array([0.5, 0.2, 0.5]), np.array([1, 0, 0]), None)
    >>> [(p.score.tolist(), p.weight.tolist(), p.outcome.tolist()) for p in pieces]
    [([0.2], [1.0], [0.0]), ([0.5], [2.0], [1.0])]
    """
    order = np.argsort(score)
    if falling:
        order = order[::-1]
    held: ScoreSums | None = None
    for start in range(0, order.size, PIECE):
        rows = order[start : start + PIECE]
        found = _sums(score[rows], correct[rows], None if weights is None else weights[rows])
        if held is not None:
            found = _joined(held, found)
        # The next piece may go on with the last score.
        if found.score.size > 1:
            yield ScoreSums(*(column[:-1] for column in found))
        held = ScoreSums(*(column[-1:] for column in found))
    if held is not None:
        yield held


def _sums(ordered: Array, correct: Array, weights: Array | None) -> ScoreSums:
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    outcome = correct.astype(np.float64)
    if weights is None:
        mass = np.diff(starts, append=ordered.size).astype(np.float64)
    else:
        heavy = weights.astype(np.float64)
        outcome *= heavy
        mass = np.add.reduceat(heavy, starts)
    return ScoreSums(ordered[starts].astype(np.float64), mass, np.add.reduceat(outcome, starts))


def _joined(held: ScoreSums, found: ScoreSums) -> ScoreSums:
    if held.score[0] == found.score[0]:
        found.weight[0] += held.weight[0]
        found.outcome[0] += held.outcome[0]
        return found
    return ScoreSums(*(np.concatenate(pair) for pair in zip(held, found, strict=True)))
