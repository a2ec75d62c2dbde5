"""Everything a report shows about Sem-ECE, with its strata by margin."""

from functools import partial
from typing import Any

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import stdtr

from calibrant.core.arrays import Estimate, RngLike, as_generator
from calibrant.findings.documents.audits import PlaneCell
from calibrant.metrics.binned import reliability_bins
from calibrant.metrics.semantic import estimators, theory
from calibrant.metrics.semantic.draws import ConvergencePoint, convergence_curve, gap_slope
from calibrant.metrics.semantic.pool import DrawPool, noise_floor, pool_draws
from calibrant.metrics.semantic.theory import density_bound, ece_bound, near_an_edge
from calibrant.metrics.semantic.unlimited import unlimited_draws_ece
from calibrant.metrics.stats.intervals import wald_interval


class MarginStratum(Struct, frozen=True):
    """Questions whose margin lies in [low, high).

    `over_confidence` is mean Sem1 confidence minus accuracy of the mode: the theory says
    Sem2-ECE <= Sem1-ECE where it is positive, and the other way round where it is negative.
    `sem1_band` and `sem2_band` are the two errors with their intervals.
    """

    low: float
    high: float
    n: int
    sem1: float
    sem2: float
    ece_gap: Estimate
    over_confidence: Estimate
    sem1_band: Estimate
    sem2_band: Estimate


def margin_strata(
    scores: estimators.QuestionScores, how: estimators.Bootstrap, *, strata: int = 10
) -> list[MarginStratum]:
    """Return both calibration errors by top-two margin, in equal-width strata of [0, 1]."""
    place = np.minimum((scores.margin * strata).astype(np.int64), strata - 1)
    measurements = []
    for number in range(strata):
        rows = np.flatnonzero(place == number)
        if rows.size == 0:
            continue
        first, second = scores.scored(rows)
        gap = how.gaps(first, second).ece
        sem1, sem2 = how.ece(first), how.ece(second)
        over = _mean(first[0] - first[1], how.level)
        low, high, n = number / strata, (number + 1) / strata, int(rows.size)
        values = sem1.value, sem2.value
        measurements.append(MarginStratum(low, high, n, *values, gap, over, sem1, sem2))
    return measurements


class RegimeRow(Struct, frozen=True):
    """Questions of one regime, their over-confidence and mean gap of the two confidences."""

    regime: str
    n: int
    over_confidence: Estimate | None = None
    gap: Estimate | None = None


def regime_summary(scores: estimators.QuestionScores, *, level: float = 0.95) -> list[RegimeRow]:
    """Return what is seen of each regime."""
    rows = []
    for name in ("jensen", "low-margin", "large-margin"):
        inside = scores.regime == name
        values = (scores.sem1 - scores.label1)[inside], scores.gap[inside]
        means = [_mean(part, level) for part in values] if inside.any() else []
        rows.append(RegimeRow(name, int(inside.sum()), *means))
    return rows


def regime_plane(scores: estimators.QuestionScores, *, step: float = 0.25) -> list[PlaneCell]:
    """Return where the questions lie: standardised margin, in steps, and classes (Figure 1a)."""
    place = np.floor(theory.standardised_margin(scores.margin, scores.mass, scores.n) / step)
    cells, count = np.unique(np.column_stack([scores.classes, place]), axis=0, return_counts=True)
    return [
        PlaneCell(classes=int(classes), margin=float((position + 0.5) * step), n=int(n))
        for (classes, position), n in zip(cells, count, strict=True)
    ]


class BoundaryRow(Struct, frozen=True):
    """Measured and predicted gap around a boundary; without questions there is neither."""

    boundary: str
    n: int
    gap: Estimate | None = None
    predicted: float | UnsetType = UNSET
    ratio: float | UnsetType = UNSET


def boundary_alignment(
    scores: estimators.QuestionScores, how: estimators.Bootstrap, *, window: float = 0.1
) -> list[BoundaryRow]:
    """Return measured and predicted gap around both regime boundaries (Table 2 of the paper).

    The measured gap is Sem1-ECE minus Sem2-ECE of the questions whose margin lies within
    `window` (a share) of the boundary; the predicted one is phi(m) / sqrt(n) there, without any
    fitted constant and with p = 1. Questions with one class have no boundary of large margin.
    """
    root = np.sqrt(scores.n)
    standards = {
        "jensen": np.full(scores.n.size, 2 * theory.JENSEN_BOUNDARY),
        "large_margin": np.sqrt(np.log(scores.classes)),
    }
    rows = []
    for name, standard in standards.items():
        deviation = np.abs(scores.margin * root / np.where(standard > 0, standard, np.nan) - 1)
        near = np.flatnonzero(deviation <= window + 1e-9)
        if not near.size:
            rows.append(BoundaryRow(name, 0))
            continue
        gap = how.gaps(*scores.scored(near)).ece
        height = np.exp(-(standard[near] ** 2) / 2) / np.sqrt(2 * np.pi)
        predicted = float((height / root[near]).mean())
        rows.append(BoundaryRow(name, int(near.size), gap, predicted, gap.value / predicted))
    return rows


class LeadingAnswer(Struct, frozen=True):
    """Mean held-out confidence and accuracy of the answer that leads a half of the draws.

    `gap` is their difference with Student's interval between questions, `within` the 90 %
    interval that two one-sided tests look at.
    """

    confidence: float
    accuracy: float
    gap: Estimate
    p_value: float | None
    within: tuple[float, float]


def leading_answer(scores: estimators.QuestionScores, *, level: float = 0.95) -> LeadingAnswer:
    """Return how sure and how right the answer is that leads a half of the draws.

    The variance is at least that of calibrated answers: few wrong answers that happen to be absent
    must not look like certainty.
    """
    gap = scores.sem2 - scores.label2
    n, mean = gap.size, float(gap.mean())
    means = float(scores.sem2.mean()), float(scores.label2.mean())
    if n < 2:
        none = Estimate(mean, float("nan"), float("nan"), n, level, interval="none")
        return LeadingAnswer(*means, none, None, (-1.0, 1.0))
    variance = max(float(gap.var(ddof=1)), float((scores.sem2 * (1 - scores.sem2)).mean()), 1e-12)
    error = (variance / n) ** 0.5
    gap_ends = wald_interval(mean, error, level, units=n)
    p_value = float(2 * stdtr(n - 1, -abs(mean) / error))
    estimate = Estimate(mean, *gap_ends, n, level, interval="student")
    return LeadingAnswer(*means, estimate, p_value, wald_interval(mean, error, 0.9, units=n))


def hardest_questions(scores: estimators.QuestionScores) -> list[dict[str, object]]:
    """Return the questions with the largest gap between Sem1 and Sem2, hardest first."""
    order = np.argsort(-scores.gap, kind="stable")[:_HARDEST]
    names = ("sem1", "sem2", "gap", "margin")
    return [
        {
            "question_id": str(scores.ids[row]),
            "n": int(scores.n[row]),
            "classes": int(scores.classes[row]),
            **{name: float(getattr(scores, name)[row]) for name in names},
            "correct": float(scores.label1[row]),
            "regime": str(scores.regime[row]),
        }
        for row in order
    ]


def _mean(values: Any, level: float) -> Estimate:
    """Mean of differences of shares with Student's interval inside [-1, 1]; one value has none."""
    n, mean = values.size, float(values.mean())
    if n < 2:
        return Estimate(mean, float("nan"), float("nan"), n, level, interval="none")
    error = float(values.std(ddof=1)) / n**0.5
    low, high = wald_interval(mean, error, level, units=n)
    return Estimate(mean, max(low, -1.0), min(high, 1.0), n, level, interval="student")


_SMALLEST_CURVE, _HARDEST = 20, 20


def sem_ece_block(
    question_id: ArrayLike,
    class_id: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 10,
    splits: estimators.Splits = 200,
    label: str = "split",
    conflicts: str = "error",
    level: float = 0.95,
    resamples: int = 1000,
    unlimited_draws: bool = False,
    rng: RngLike = 0,
) -> dict[str, Any]:
    """Return everything a report shows about Sem-ECE, as plain data.

    Parameters are those of `sem_ece`; `unlimited_draws` adds the model-based estimate of
    `unlimited_draws_ece`.
    """
    generator = as_generator(rng)
    pool = pool_draws(question_id, class_id, correct, conflicts=conflicts)
    how: dict[str, Any] = {"bins": bins, "level": level, "resamples": resamples, "rng": generator}
    ece = estimators.sem_ece_of_pool(pool, splits=splits, label=label, **how)
    bootstrap = estimators.Bootstrap(**how)
    scores = ece.questions
    draws, classes = np.median(scores.n), np.median(scores.classes)
    # The margins at which the regimes of a question of the middle meet.
    boundaries = {
        "jensen": 2 * theory.JENSEN_BOUNDARY / float(np.sqrt(draws)),
        "large_margin": float(np.sqrt(np.log(max(classes, 2)) / draws)),
    }
    unlimited = partial(unlimited_draws_ece, pool, bins=bins, level=level, rng=generator)
    return {
        "questions": int(scores.ids.size),
        "draws": int(draws),
        "left_out": ece.left_out,
        "bins": bins,
        "splits": splits,
        "label": label,
        "accuracy": ece.accuracy,
        "sem1": ece.sem1,
        "sem2": ece.sem2,
        "gap": ece.gaps,
        "predicted_gap": theory.pool_gap(pool, scores.selection_n),
        "tied_splits": float(scores.tied.mean()),
        "bounds": _bounds(ece, bins),
        "boundaries": boundaries,
        "regimes": regime_summary(scores, level=level),
        "regime_plane": regime_plane(scores),
        "strata": margin_strata(scores, estimators.Bootstrap(bins, 0.95, 500, generator)),
        "reliability": {
            "sem1": reliability_bins(scores.sem1, scores.label1, bins=bins).to_dict(),
            "sem2": reliability_bins(scores.sem2, scores.label2, bins=bins).to_dict(),
        },
        "convergence": _convergence(pool, ece, bins, generator),
        "hardest": hardest_questions(scores),
        "boundary_alignment": boundary_alignment(scores, bootstrap),
        "oracle_advantage": _oracle(scores),
        "leading": leading_answer(scores, level=level),
        "noise_floor": noise_floor(pool, bins=bins, rng=generator),
        "unlimited_draws": unlimited() if unlimited_draws else None,
    }


def _bounds(ece: estimators.SemEce, bins: int) -> dict[str, float]:
    """Return plug-in bounds, each cut at 1 per question and then averaged; condition (8)."""
    s = ece.questions
    held_out = s.n - s.selection_n
    race = (s.margin, s.mass, s.classes)
    selection = float(theory.selection_error_bound(*race, s.selection_n).mean())
    of_error = partial(theory.confidence_error_bound, s.top, *race)
    sem1 = float(of_error(s.n).mean())
    sem2 = float(of_error(s.selection_n, evaluation_n=held_out).mean())
    bounds = {
        "selection_error": selection,
        "sem1_confidence_error": sem1,
        "sem2_confidence_error": sem2,
        "sem1_bias": float(theory.pointwise_bias_bound(*race, s.n).mean()),
        "sem2_bias": float(theory.pointwise_bias_bound(*race, s.selection_n, held_out=True).mean()),
    }
    for name, error in (("sem1", sem1), ("sem2", sem2)):
        for key, form in (("ece", ece_bound), ("ece_density", density_bound)):
            bounds[f"{name}_{key}"] = form(
                s.sem2, confidence_error=error, selection_error=selection, bins=bins
            )
    bounds["near_an_edge"] = near_an_edge(s.sem2, s.n, bins=bins)
    bounds["near_an_edge_allowed"] = float(1 / np.sqrt(np.median(s.n)))
    return bounds


def _oracle(scores: estimators.QuestionScores) -> dict[str, float | None]:
    """Theorem 5.7 on the questions that it is about: how much closer Sem2 is to unlimited draws."""
    close = scores.regime == "jensen"
    race = scores.margin, scores.mass, scores.n
    advantage = theory.oracle_advantage(*race, selection_n=scores.selection_n)
    return {"n": int(close.sum()), "value": float(advantage[close].mean()) if close.any() else None}


class ConvergenceCurve(Struct, frozen=True):
    """Both errors by number of draws, and how fast their difference falls."""

    points: list[ConvergencePoint]
    slope: float


def _convergence(
    pool: DrawPool, ece: estimators.SemEce, bins: int, rng: np.random.Generator
) -> ConvergenceCurve | None:
    if int(np.median(pool.size)) < _SMALLEST_CURVE:
        return None
    points = convergence_curve(pool, bins=bins, subsamples=5, resamples=50, rng=rng)
    slope = gap_slope(points)
    last = points[-1]
    if (pool.size == last.n).all() and last.sem1.n == pool.ids.size:
        # The whole pool has been measured already, with more splits: one quantity, one number.
        points[-1] = replace(last, sem1=ece.sem1, sem2=ece.sem2, gap=ece.gaps.confidence)
    return ConvergenceCurve(points, slope)
