"""Is one model better calibrated than the other, or only more accurate? The verdict on a pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from calibrant.comparison.ece_interval import REACH
from calibrant.comparison.evidence import NEAR, SHIFTED, SIX, SQUARED, PairEvidence
from calibrant.metrics.stats.multiplicity import holm

# Two calibration errors closer than this are of no practical difference.
MARGIN = 0.05
# Error of 'better' over all pairs of a family, and of 'more accurate': three standard errors.
ALPHA = 0.02
ACCURACY_ALPHA = 0.0027
_FOOTINGS = ("raw", *SHIFTED, "sda")

Word: TypeAlias = Literal[
    "better",
    "more accurate, alike",
    "only more accurate",
    "reversal",
    "equivalent",
    "depends",
    "undecided",
]


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What is known of a pair.

    `winner` is -1 for the first model and 1 for the second: the better one, the more accurate one,
    of a reversal the one that looks better on its own answers. `depends_on` is ``footing``,
    ``size of errors``, ``near-certain`` or ``missing``; `by` says what shows that both are alike
    within the margin, ``laws`` or ``errors``. `missing` names the footings that an undecided pair
    lacks, and `alone` says that it would be decided if it were the only pair.
    """

    word: Word
    winner: int = 0
    depends_on: str | None = None
    by: str | None = None
    missing: tuple[str, ...] = ()
    alone: bool = False
    p_adjusted: float = math.nan
    p_accuracy_adjusted: float = math.nan


def decide_pairs(pairs: Sequence[PairEvidence], *, margin: float = MARGIN) -> list[PairVerdict]:
    """Decide all pairs of one family together.

    'Better' and 'more accurate' stand Holm's correction for the number of pairs; the other
    verdicts are of each pair by itself.

    Parameters
    ----------
    pairs
        Evidence of every pair.
    margin
        Largest difference of calibration errors that does not matter.
    """
    better = adjusted([pair.p_value for pair in pairs])
    accurate = adjusted([pair.p_accuracy for pair in pairs])
    return [
        _decided(pair, p_better, p_accurate, margin, several=len(pairs) > 1)
        for pair, p_better, p_accurate in zip(pairs, better, accurate, strict=True)
    ]


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's rule; NaN where there is none.

    Examples
    --------
    >>> adjusted([0.01, float("nan"), 0.2])
    [0.02, nan, 0.2]
    """
    corrected = iter(holm([p for p in p_values if not math.isnan(p)]).tolist())
    return [math.nan if math.isnan(p) else next(corrected) for p in p_values]


def _decided(
    pair: PairEvidence, p_better: float, p_accurate: float, margin: float, *, several: bool
) -> PairVerdict:
    stands = not several or p_better <= ALPHA
    leads = p_accurate <= ACCURACY_ALPHA
    decision = decide(pair, margin=margin, stands=stands, leads=leads)
    if decision.word != "undecided" and pair.slack > 0:
        worst = decide(pair.worst_case(), margin=margin, stands=stands, leads=leads)
        if (worst.word, worst.winner) != (decision.word, decision.winner):
            decision = PairVerdict("depends", decision.winner, "missing", decision.word)
    return replace(decision, p_adjusted=p_better, p_accuracy_adjusted=p_accurate)


def decide(pair: PairEvidence, *, margin: float, stands: bool, leads: bool) -> PairVerdict:
    """Decide one pair.

    Three claims have one order. 'Better' comes first: all footings show it. A model that is more
    accurate and alike is called 'only more accurate' where a footing shows the other one ahead.

    Parameters
    ----------
    pair
        Its evidence; a pair without intervals stays undecided.
    margin
        Largest difference of calibration errors that does not matter.
    stands
        Whether 'better' stands the number of pairs.
    leads
        Whether one model is shown to be more accurate.
    """
    half = margin / 2
    more = (-1 if pair.lead > 0 else 1) if leads and pair.lead else 0
    alike, equal = max(pair.laws_high) < margin, pair.bound < margin
    key = "laws" if alike else "errors" if equal else None
    gaps = pair.gaps
    raw, mixed, odds = gaps["raw"].side(), gaps["sda"].side(), _same(pair, (*SHIFTED, *NEAR))
    lead = raw if raw == mixed == odds else 0
    # The one that is closer on average may have the larger large errors somewhere.
    large = any(
        pair.squares[part] * raw < -REACH and pair.rms[part] * raw < -half for part in SQUARED
    )
    if lead and stands and not large:
        return PairVerdict("better", lead, by=key)
    if more and key:
        against = any(gaps[name].side() == -more for name in SIX)
        return PairVerdict(
            "only more accurate" if against else "more accurate, alike", more, by=key
        )
    if equal:
        return PairVerdict("equivalent")
    if lead and large:
        return PairVerdict("depends", lead, "size of errors")
    low, high = _same(pair, SHIFTED), _same(pair, NEAR)
    if pair.clip > half and raw and mixed and low != high and mixed in (low, high):
        return PairVerdict("depends", 0, "near-certain")
    beyond = {name: gaps[name].side(half) for name in (*_FOOTINGS, "sos")}
    if beyond["raw"] and odds == beyond["sda"] == beyond["sos"] == -raw:
        return PairVerdict("reversal", raw)
    if _footings_differ(pair, margin):
        return PairVerdict("depends", 0, "footing")
    lacking = tuple(name for name in SIX if not gaps[name].side())
    return PairVerdict("undecided", missing=lacking, alone=bool(lead))


def _same(pair: PairEvidence, names: Sequence[str]) -> int:
    """Return the model that all of these footings say is better, or 0."""
    sides = {pair.gaps[name].side() for name in names}
    return sides.pop() if len(sides) == 1 else 0


def _footings_differ(pair: PairEvidence, margin: float) -> bool:
    """Return whether one footing shows what another denies."""
    half = margin / 2
    gaps = [pair.gaps[name] for name in _FOOTINGS]
    display = {gap.side(margin) for gap in gaps}
    return (
        {-1, 1} <= {gap.side(half) for gap in gaps}
        or (1 in display and any(gap.high < half for gap in gaps))
        or (-1 in display and any(gap.low > -half for gap in gaps))
    )
