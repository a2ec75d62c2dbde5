"""The Sem-ECE block of an audit: numbers, regimes, convergence, hardest questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.binned import reliability_bins
from calibrant.metrics.semantic.bounds import density_bound, ece_bound, near_an_edge
from calibrant.metrics.semantic.chance import NoiseFloor, noise_floor
from calibrant.metrics.semantic.convergence import convergence_curve, gap_slope
from calibrant.metrics.semantic.estimators import QuestionScores, SemEce, Splits, sem_ece_of_pool
from calibrant.metrics.semantic.pool import DrawPool, pool_draws
from calibrant.metrics.semantic.strata import (
    boundary_alignment,
    hardest_questions,
    leading_answer,
    margin_strata,
    regime_plane,
    regime_summary,
)
from calibrant.metrics.semantic.theory import (
    JENSEN_BOUNDARY,
    confidence_error_bound,
    oracle_advantage,
    pointwise_bias_bound,
    pool_gap,
    selection_error_bound,
)
from calibrant.metrics.semantic.unlimited import unlimited_draws_ece

_SMALLEST_CURVE = 20


def sem_ece_block(
    question_id: npt.ArrayLike,
    class_id: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    bins: int = 10,
    splits: Splits = 200,
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
    found = sem_ece_of_pool(
        pool,
        bins=bins,
        splits=splits,
        label=label,
        level=level,
        resamples=resamples,
        rng=generator,
    )
    scores = found.questions
    return {
        "questions": int(scores.ids.size),
        "draws": int(np.median(scores.n)),
        "left_out": found.left_out,
        "bins": bins,
        "splits": splits,
        "label": label,
        "accuracy": found.accuracy,
        "sem1": found.sem1,
        "sem2": found.sem2,
        "gap": {
            "confidence": found.gaps.confidence,
            "ece": found.gaps.ece,
            "ece_close": found.gaps.ece_close,
        },
        "predicted_gap": pool_gap(pool, scores.selection_n),
        "tied_splits": float(scores.tied.mean()),
        "bounds": _bounds(found, bins),
        "boundaries": {
            "jensen": 2 * JENSEN_BOUNDARY / float(np.sqrt(np.median(scores.n))),
            "large_margin": float(
                np.sqrt(np.log(max(np.median(scores.classes), 2)) / np.median(scores.n))
            ),
        },
        "regimes": regime_summary(scores, level=level),
        "regime_plane": regime_plane(scores),
        "strata": [_plain(row) for row in margin_strata(scores, bins=bins, rng=generator)],
        "reliability": {
            "sem1": reliability_bins(scores.sem1, scores.label1, bins=bins).to_dict(),
            "sem2": reliability_bins(scores.sem2, scores.label2, bins=bins).to_dict(),
        },
        "convergence": _convergence(pool, found, bins, generator),
        "hardest": hardest_questions(scores),
        "boundary_alignment": boundary_alignment(
            scores, bins=bins, level=level, resamples=resamples, rng=generator
        ),
        "oracle_advantage": _oracle(scores),
        "leading": leading_answer(scores, level=level),
        "noise_floor": _floor(noise_floor(pool, bins=bins, rng=generator)),
        "unlimited_draws": (
            _plain(unlimited_draws_ece(pool, bins=bins, level=level, rng=generator))
            if unlimited_draws
            else None
        ),
    }


def _bounds(found: SemEce, bins: int) -> dict[str, float]:
    """Return plug-in bounds, each cut at 1 per question and then averaged; condition (8)."""
    s = found.questions
    held_out = s.n - s.selection_n
    race = (s.margin, s.mass, s.classes)
    selection = float(selection_error_bound(*race, s.selection_n).mean())
    errors = {
        "sem1": float(confidence_error_bound(s.top, *race, s.n).mean()),
        "sem2": float(
            confidence_error_bound(s.top, *race, s.selection_n, evaluation_n=held_out).mean()
        ),
    }
    bounds = {
        "selection_error": selection,
        "sem1_confidence_error": errors["sem1"],
        "sem2_confidence_error": errors["sem2"],
        "sem1_bias": float(pointwise_bias_bound(*race, s.n).mean()),
        "sem2_bias": float(pointwise_bias_bound(*race, s.selection_n, held_out=True).mean()),
    }
    for name, error in errors.items():
        for key, form in (("ece", ece_bound), ("ece_density", density_bound)):
            bounds[f"{name}_{key}"] = form(
                s.sem2, confidence_error=error, selection_error=selection, bins=bins
            )
    bounds["near_an_edge"] = near_an_edge(s.sem2, s.n, bins=bins)
    bounds["near_an_edge_allowed"] = float(1 / np.sqrt(np.median(s.n)))
    return bounds


def _oracle(scores: QuestionScores) -> dict[str, Any]:
    """Theorem 5.7 on the questions that it is about: how much closer Sem2 is to unlimited draws."""
    close = scores.regime == "jensen"
    advantage = oracle_advantage(
        scores.margin, scores.mass, scores.n, selection_n=scores.selection_n
    )
    return {"n": int(close.sum()), "value": float(advantage[close].mean()) if close.any() else None}


def _floor(found: NoiseFloor) -> dict[str, Any]:
    tests = {"sem1": found.sem1, "sem2": found.sem2}
    return {
        **{name: None if test is None else _plain(test) for name, test in tests.items()},
        "questions": found.questions,
        "several_right": found.several_right,
        "refused": found.refused,
    }


def _convergence(
    pool: DrawPool, found: SemEce, bins: int, rng: np.random.Generator
) -> dict[str, Any] | None:
    if int(np.median(pool.size)) < _SMALLEST_CURVE:
        return None
    points = convergence_curve(pool, bins=bins, subsamples=5, resamples=50, rng=rng)
    slope = gap_slope(points)
    last = points[-1]
    if (pool.size == last.n).all() and last.sem1.n == pool.ids.size:
        # The whole pool has been measured already, with more splits: one quantity, one number.
        points[-1] = replace(last, sem1=found.sem1, sem2=found.sem2, gap=found.gaps.confidence)
    return {"points": [_plain(point) for point in points], "slope": slope}


def _plain(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}
