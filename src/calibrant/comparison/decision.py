"""Which of two models is better calibrated: better, equivalent, depends on the view, undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.comparison.evidence import PairEvidence
from calibrant.stats.multiplicity import holm

# Two calibration errors closer than this are of no practical difference.
MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known of a pair.

    `outcome` is ``equivalent``, ``better``, ``depends`` or ``undecided``; `winner` is -1 for the
    first model and 1 for the second where one is better; `p_adjusted` is the p-value of 'neither
    is better in all views', corrected for the number of pairs.
    """

    outcome: str
    winner: int
    p_adjusted: float


def decide_pairs(
    pairs: Sequence[PairEvidence], *, level: float = 0.95, margin: float = MARGIN
) -> list[Decision]:
    """Decide all pairs of one family together.

    Equivalent: the errors differ by less than `margin` in the raw view and after the odds shift to
    both accuracies. Better: all four views and both tests agree, and the largest of the eight
    p-values stands Holm's correction for the number of pairs. Depends: two views show opposite
    orders. Undecided: anything else.

    Parameters
    ----------
    pairs
        Evidence of every pair.
    level
        Claims are held to an error of 1 - level.
    margin
        Largest difference of calibration errors that does not matter.
    """
    alpha = 1 - level
    p_values = [pair.p_value for pair in pairs]
    tested = [place for place, p in enumerate(p_values) if not math.isnan(p)]
    adjusted = dict.fromkeys(range(len(pairs)), math.nan)
    corrected = holm([p_values[place] for place in tested])
    adjusted |= dict(zip(tested, map(float, corrected), strict=True))
    return [
        _decide(pair, adjusted[place], len(pairs), level, alpha, margin)
        for place, pair in enumerate(pairs)
    ]


def _decide(
    pair: PairEvidence, p_adjusted: float, pairs: int, level: float, alpha: float, margin: float
) -> Decision:
    if pair.bound < margin:
        return Decision("equivalent", 0, p_adjusted)
    winner = pair.better(level)
    # A pair that stands alone is judged by its intervals, of which p is a close relative.
    if winner and (pairs == 1 or p_adjusted <= alpha):
        return Decision("better", winner, p_adjusted)
    if pair.alike is not None:
        return Decision("undecided", 0, p_adjusted)
    outcome = "depends" if _contradicts(pair, pairs, alpha) else "undecided"
    return Decision(outcome, 0, p_adjusted)


def _contradicts(pair: PairEvidence, pairs: int, alpha: float) -> bool:
    """Return whether two views show opposite orders, each beyond the chance of all views."""
    if pairs == 1:
        sides = {view.interval_side() for view in pair.views.values()}
    else:
        limit = alpha / (len(pair.views) * pairs)
        sides = {
            int(math.copysign(1, view.gap.value))
            for view in pair.views.values()
            if view.p_gap <= limit
        }
    return {-1, 1} <= sides
