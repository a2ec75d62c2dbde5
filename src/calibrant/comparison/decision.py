"""The verdict on a pair: better calibrated or only more accurate, and why they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from calibrant.comparison.ece_interval import REACH, Gap
from calibrant.comparison.evidence import NEAR, SHIFTED, SIX, SQUARED, PairEvidence, normal_interval
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import Floats
from calibrant.findings.documents.entries import SharedAnswers
from calibrant.metrics.stats.multiplicity import holm

# Two calibration errors closer than this are of no practical difference.
MARGIN = 0.05
# Error of 'better' over all pairs of a family, and of 'more accurate': three standard errors.
ALPHA = 0.02
ACCURACY_ALPHA = 0.0027
_FOOTINGS = ("raw", *SHIFTED, "sda")

# In the order in which a reader looks for them.
Word: TypeAlias = Literal[
    "better",
    "reversal",
    "only more accurate",
    "more accurate, alike",
    "depends",
    "undecided",
    "equivalent",
]
VERDICTS: tuple[Word, ...] = get_args(Word)


class PairVerdict(Struct, frozen=True):
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


_FEWEST_EVENTS = 2
_STRICTER = 0.8


def blind_spots(pair: PairViews, means: Sequence[Gap], level: float) -> dict[str, SharedAnswers]:
    """Return each model's confidence where both are right and where both are wrong.

    The mean confidence on questions that both get wrong is over-confidence that neither can be
    excused for by the other's success. `means` are those of the first model where both are wrong
    and right, then of the second.
    """
    shared = {}
    for name, outcome in (("both_right", 1), ("both_wrong", 0)):
        n = round(float(pair.first.halves_n[outcome]))
        observed: list[Any] = []
        for place, views in ((0, pair.first), (2, pair.second)):
            mean = means[place + outcome]
            how = "bootstrap-normal"
            observed.append(normal_interval(mean.value, mean.sd, n, level, how) if n else None)
            observed.append(views.histogram[2 * outcome + 1].astype(int).tolist())
        shared[name] = SharedAnswers(n, *observed)
    return shared


class Exchangeable(Struct, frozen=True):
    """How one model's confidence differs where the other shares its outcome and where not."""

    model: str
    outcome: str
    shared: int
    alone: int
    distance: float | None
    p_value: float | None


def exchangeability(pair: PairViews, models: Sequence[str]) -> list[Exchangeable]:
    """Check what the distribution-aligned view assumes, per model and outcome.

    The weights treat confidence given the outcome as the same on all questions. Here the
    questions where the other model shares the outcome are held against those where it does not:
    a large Kolmogorov-Smirnov distance means that DA and IA may disagree.
    """
    rows = []
    for model, views in ((pair.a, pair.first), (pair.b, pair.second)):
        for outcome, name in ((1, "right"), (0, "wrong")):
            (shared, alone), distance = views.sharing[outcome]
            distance_test: tuple[float | None, float | None] = None, None
            if not math.isnan(distance):
                # Of two samples, with Stephens' correction.
                root = math.sqrt(shared * alone / (shared + alone))
                p_value = float(special.kolmogorov(distance * (root + 0.12 + 0.11 / root)))
                distance_test = distance, p_value
            rows.append(Exchangeable(models[model], name, shared, alone, *distance_test))
    return rows


class MissingRow(Struct):
    """Questions that a model lacks, and how often the others are right there and elsewhere."""

    model: str
    n: int
    missing: int
    others_right_here: float | None
    others_right_missing: float | None
    p_adjusted: float | None = None
    related: bool = False


def missing_questions(
    survey: AnswerCounts, models: Sequence[str], *, level: float = 0.95
) -> list[MissingRow]:
    """Return, per model, the questions that it lacks and whether the others find them harder.

    `p_adjusted` is that of a t-test with one spread for both (questions that are missing by chance
    have the spread of all), by Holm's rule over models, with clusters of questions as units.
    `related` asks for 0.8 of the level: the t law is a little short where few lack.
    """
    rows, p_values = [], []
    for model, name in enumerate(models):
        n, sums = round(float(survey.moments[model, 0])), survey.absent[model]
        here, lacking = (float(part[1] / part[0]) if part[0] else None for part in sums)
        rows.append(MissingRow(name, n, survey.questions - n, here, lacking))
        p_values.append(_equal_means_p(*(sums * survey.unit_share)))
    for row, p in zip(rows, adjusted(p_values), strict=True):
        if not math.isnan(p):
            row.p_adjusted, row.related = p, p <= _STRICTER * (1 - level)
    return rows


def _equal_means_p(has: Floats, lacks: Floats) -> float:
    """Return the two-sided p-value of equal means, from numbers, sums and sums of squares.

    NaN where the smaller part would hold fewer than `_FEWEST_EVENTS` answers of the rarer kind:
    there the law of the mean is far from normal. A spread of each part's own would be 0 where a
    few missing questions happen to be all right, and would prove anything.
    """
    n = has[0] + lacks[0]
    if min(has[0], lacks[0]) < 2:
        return math.nan
    mean, square = (has[1] + lacks[1]) / n, (has[2] + lacks[2]) / n
    if min(has[0], lacks[0]) * min(mean, 1 - mean) < _FEWEST_EVENTS:
        return math.nan
    variance = max(square - mean**2, 0.0) * n / (n - 1)
    if variance == 0:
        return 1.0
    error = math.sqrt(variance * (1 / has[0] + 1 / lacks[0]))
    return float(2 * special.stdtr(n - 2, -abs(has[1] / has[0] - lacks[1] / lacks[0]) / error))
