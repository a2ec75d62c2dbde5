"""The league: every model's confidence on one scale, tiers that chance does not explain.

Every model is brought to accuracy 0.5 by the odds shift, and its Brier score there becomes a skill
score: 1 - Brier / 0.25. A constant confidence scores 0, calibrated models of any accuracy score
alike, and no other model enters. The score rewards calibration and the power to separate right
from wrong answers; it can be gained by deliberately wrong answers stated at 1 %, so the accuracy
belongs beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calibrant.comparison.odds import CLIP, log_odds
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats
from calibrant.metrics.corp import corp_from_sums
from calibrant.stats.isotonic import DistinctSums
from calibrant.stats.multiplicity import holm

EVEN = 0.5
# Resamples are summed in single precision.
_NO_SEPARATION = 1e-6


@dataclass(frozen=True, slots=True)
class Standing:
    """Place of a model: tier 1 is beaten by nobody; ranks run over what chance leaves open."""

    tier: int
    rank_low: int
    rank_high: int
    beats: tuple[int, ...]
    beaten_by: tuple[int, ...]


def score_z(first: Floats, second: Floats) -> float:
    """Return the difference of two scores in units of its paired standard error; NaN if undefined.

    Parameters
    ----------
    first, second
        Score in the data, then in every resample.
    """
    gaps = first - second
    drawn = gaps[1:][np.isfinite(gaps[1:])]
    if drawn.size < 2 or not math.isfinite(gaps[0]):
        return math.nan
    spread = float(drawn.std(ddof=1))
    return float(gaps[0]) / max(spread, 1e-12) if gaps[0] else 0.0


def standings(
    models: int, z_scores: Mapping[tuple[int, int], float], *, alpha: float = 0.05
) -> list[Standing]:
    """Return tiers and rank intervals from the z-scores of pairs, corrected by Holm's rule.

    Parameters
    ----------
    models
        Number of models.
    z_scores
        By pair (a, b): positive where a has the higher score.

    Examples
    --------
    >>> [place.tier for place in standings(3, {(0, 1): 9.0, (0, 2): 9.0, (1, 2): 0.3})]
    [1, 2, 2]
    """
    tested = {pair: z for pair, z in z_scores.items() if not math.isnan(z)}
    adjusted = holm([float(2 * special.ndtr(-abs(z))) for z in tested.values()])
    beats: list[set[int]] = [set() for _ in range(models)]
    for (pair, z), p in zip(tested.items(), adjusted, strict=True):
        if p <= alpha:
            winner, loser = pair if z > 0 else pair[::-1]
            beats[winner].add(loser)
    beaten = [{w for w in range(models) if m in beats[w]} for m in range(models)]
    tiers = _tiers(beaten)
    return [
        Standing(
            tiers[m],
            1 + len(beaten[m]),
            models - len(beats[m]),
            tuple(sorted(beats[m])),
            tuple(sorted(beaten[m])),
        )
        for m in range(models)
    ]


def _tiers(beaten: Sequence[set[int]]) -> list[int]:
    """Return tiers: those that no remaining model beats form the next one."""
    left, tiers, tier = set(range(len(beaten))), [0] * len(beaten), 1
    while left:
        free = {m for m in left if not beaten[m] & left}
        # Each pair has questions of its own, so three models may beat each other in a circle.
        for m in free or left:
            tiers[m] = tier
        left -= free or set(left)
        tier += 1
    return tiers


def is_uninformative(right: Floats, wrong: Floats) -> bool:
    """Return whether confidence is not shown to be higher on right than on wrong answers.

    Parameters
    ----------
    right, wrong
        Mean confidence there, in the data and in every resample.
    """
    drawn = (right - wrong)[1:]
    drawn = drawn[np.isfinite(drawn)]
    return bool(drawn.size < 2 or np.quantile(drawn, 0.025) <= _NO_SEPARATION)


def corp_parts(survey: Survey, model: int, *, even: bool) -> dict[str, float]:
    """Return miscalibration, discrimination and uncertainty of the Brier score by isotonic fit.

    Parameters
    ----------
    even
        At accuracy 0.5, confidences shifted along; otherwise as stated.
    """
    cells = survey.cells[model]
    held = cells.sum(axis=0) > 0
    wrong, right = cells[:, held]
    said = survey.stated[model, held] / (wrong + right)
    accuracy = float(right.sum() / (right.sum() + wrong.sum()))
    if even:
        if not 0 < accuracy < 1:
            return dict.fromkeys(("mcb", "dsc", "unc"), math.nan)
        odds = log_odds(np.clip(said, CLIP, 1 - CLIP)) - log_odds(accuracy)
        said = np.asarray(special.expit(odds))
        right, wrong = right * EVEN / accuracy, wrong * (1 - EVEN) / (1 - accuracy)
    parts = corp_from_sums(DistinctSums(said, right + wrong, right), float(right.sum()))
    return {"mcb": parts.mcb, "dsc": parts.dsc, "unc": parts.unc}


def win_matrix(models: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """Return what each model (row) is against each other (column): better, worse, equivalent, ..

    Examples
    --------
    >>> pair = {"a": "x", "b": "y", "outcome": "shown", "winner": "y"}
    >>> win_matrix(["x", "y"], [pair])
    [[None, 'worse'], ['better', None]]
    """
    place = {name: number for number, name in enumerate(models)}
    table: list[list[str | None]] = [[None] * len(models) for _ in models]
    for pair in pairs:
        a, b = place[pair["a"]], place[pair["b"]]
        first = second = pair["outcome"]
        if pair["outcome"] == "shown":
            first, second = (
                ("better", "worse") if pair["winner"] == pair["a"] else ("worse", "better")
            )
        table[a][b], table[b][a] = first, second
    return table
