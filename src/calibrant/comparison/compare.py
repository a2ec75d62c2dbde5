"""The comparison document: every model, every pair, every view, with ties and reversals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.comparison.aligned import Candidates, align_candidates, align_models
from calibrant.comparison.diagnostics import (
    blind_spots,
    exchangeability,
    interval,
    self_preference,
)
from calibrant.comparison.ece_interval import ece_estimate, gap_estimate
from calibrant.comparison.engine import Comparer, PairScores, ViewScores
from calibrant.comparison.multiplicity import correct_pairs, gap_p_value
from calibrant.comparison.resampled import resample_counts
from calibrant.comparison.reversal import (
    accuracy_gap_bins,
    gap_correlation,
    gap_quadrants,
    reversal_pattern,
    reversal_summary,
    reverses,
)
from calibrant.comparison.views import METRICS
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike
from calibrant.stats.floors import passive_floor
from calibrant.stats.intervals import logit_interval, wilson_interval

__all__ = ["compare_models", "comparison_entries"]

Floats: TypeAlias = npt.NDArray[np.float64]
_DETAILED_PAIRS = 60
_CURVE_TARGETS = np.linspace(0.05, 0.95, 19)


def compare_models(
    scores: pl.DataFrame,
    *,
    models: Sequence[str] | None = None,
    candidates: pl.DataFrame | None = None,
    bins: int = 15,
    target: str | float = "weakest",
    level: float = 0.95,
    resamples: int = 1000,
    lipschitz: float = 1.0,
    rng: RngLike = 0,
) -> dict[str, Any]:
    """Compare models that answered the same questions, for one confidence method.

    Parameters
    ----------
    scores
        Columns question_id, model, confidence, correct.
    models
        Which models; None takes all.
    candidates
        Columns question_id, judge, author, confidence (and answer), for the candidate-aligned
        view; None leaves that view out.
    bins
        Equal-width bins of the ECE.
    target
        Common accuracy of the distribution-aligned view: ``"weakest"``, ``"strongest"``,
        ``"mean"`` or a number.
    level, resamples, rng
        Paired bootstrap over questions.
    lipschitz
        Lipschitz constant behind the verification floor.

    Returns
    -------
    dict
        ``questions``, ``left_out``, ``results`` per model, ``pairs``, ``summary``,
        ``multiplicity``, ``self_preference``.
    """
    aligned = align_models(scores, models)
    pool: Candidates | None = None
    if candidates is not None:
        pool, aligned = align_candidates(candidates, aligned)
    counts = resample_counts(aligned.questions.size, resamples, rng)
    comparer = Comparer(aligned, counts, bins=bins, target=target, candidates=pool)
    found = comparison_entries(comparer, level=level, lipschitz=lipschitz)
    if len(found["pairs"]) <= _DETAILED_PAIRS:
        numbers = combinations(range(len(aligned.models)), 2)
        for (a, b), entry in zip(numbers, found["pairs"], strict=True):
            entry["shared"] = blind_spots(aligned, a, b, counts, level=level)
            entry["exchangeability"] = exchangeability(aligned, a, b)
    preference = self_preference(aligned, pool, counts, level=level) if pool is not None else []
    return {**found, "left_out": aligned.left_out, "self_preference": preference}


def comparison_entries(comparer: Comparer, *, level: float, lipschitz: float) -> dict[str, Any]:
    """Return what follows from weighted sums alone: models, pairs and their summary."""
    pairs = [
        _pair_entry(pair, comparer, level=level, lipschitz=lipschitz) for pair in comparer.pairs()
    ]
    found = {
        "questions": comparer.questions,
        "results": _results(comparer, level),
        "pairs": pairs,
        "summary": _summary(pairs),
    }
    return {**found, "multiplicity": correct_pairs([found], level)}


def _results(comparer: Comparer, level: float) -> list[dict[str, Any]]:
    n = comparer.questions
    entries = []
    for number, views in enumerate(comparer.league()):
        entries.append(
            {
                "model": comparer.models[number],
                "accuracy": _rate(float(comparer.accuracy(number)[0]), n, level),
                "mean_confidence": _plain_mean(*comparer.confidence_moments(number), n, level),
                "views": {
                    view: {
                        "brier": interval(found.brier, n, level=level),
                        "ece": ece_estimate(found.residuals, n, level=level),
                    }
                    for view, found in views.items()
                },
                "target_curve": {
                    "target": _CURVE_TARGETS.tolist(),
                    "ece": comparer.target_curve(number, _CURVE_TARGETS).tolist(),
                },
            }
        )
    return entries


def _rate(value: float, n: int, level: float) -> Estimate:
    """Return Wilson's interval, as in an audit: of 1 in 20 the resamples say [0, 0.15].

    Outcomes with grades between 0 and 1 vary less, and theirs is too long rather than too short.
    """
    low, high = wilson_interval(value, n, level)
    return Estimate(value, float(low), float(high), n, level, interval="wilson")


def _plain_mean(mean: float, spread: float, n: int, level: float) -> Estimate:
    low, high = logit_interval(mean, spread / n**0.5, level, units=n)
    return Estimate(mean, low, high, n, level, interval="student-logit")


def _pair_entry(
    pair: PairScores, comparer: Comparer, *, level: float, lipschitz: float
) -> dict[str, Any]:
    n = comparer.questions
    gaps = {view: _gaps(first, second, n, level) for view, (first, second) in pair.views.items()}
    accuracy_gap = comparer.accuracy(pair.a) - comparer.accuracy(pair.b)
    floor = passive_floor(
        error_rate=1 - float(comparer.accuracy(pair.a)[0] + comparer.accuracy(pair.b)[0]) / 2,
        labels=n,
        lipschitz=lipschitz,
    )
    tied = {
        view: {metric: _is_tie(gap[metric], floor, metric) for metric in METRICS}
        for view, gap in gaps.items()
    }
    values = {view: gap["ece"].value for view, gap in gaps.items()}
    return {
        "a": comparer.models[pair.a],
        "b": comparer.models[pair.b],
        "accuracy_gap": interval(accuracy_gap, n, level=level),
        "gaps": gaps,
        "floor": floor,
        "ties": tied,
        "p_value": _p_values(pair, n),
        "tie": tied["raw"]["ece"],
        "reversal": {v: reverses(values["raw"], values[v]) for v in gaps if v != "raw"},
        "reversal_brier": {
            v: reverses(gaps["raw"]["brier"].value, gaps[v]["brier"].value)
            for v in gaps
            if v != "raw"
        },
        "pattern": reversal_pattern(values),
        "retention": pair.retention,
        "target": pair.target,
        "effective_size": {"a": pair.effective[0], "b": pair.effective[1]},
    }


def _p_values(pair: PairScores, n: int) -> dict[str, float]:
    """Return the p-value of each view's ECE gap, from the questions that the view leaves."""
    left = {"da": min(pair.effective), "ia": n * pair.retention}
    return {
        view: gap_p_value(first.ece - second.ece, left.get(view, n))
        for view, (first, second) in pair.views.items()
    }


def _gaps(first: ViewScores, second: ViewScores, n: int, level: float) -> dict[str, Estimate]:
    return {
        "brier": interval(first.brier - second.brier, n, level=level),
        "ece": gap_estimate(first.ece - second.ece, n, level=level),
    }


def _is_tie(gap: Estimate, floor: float, metric: str) -> bool:
    """Return whether these labels cannot tell the models apart.

    The interval holds zero, or (for the ECE, which the floor speaks of) the gap is below it. An
    undefined gap is a tie: nothing was shown.
    """
    if not np.isfinite([gap.value, gap.low, gap.high]).all():
        return True
    inside = gap.low <= 0 <= gap.high
    return bool(inside or (metric == "ece" and abs(gap.value) < floor))


def _summary(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Put all pairs together: with every gap counted, and with resolved gaps alone."""
    views = list(pairs[0]["gaps"])
    gaps = {view: np.array([p["gaps"][view]["ece"].value for p in pairs]) for view in views}
    accuracy = np.array([p["accuracy_gap"].value for p in pairs])
    defined = np.all([np.isfinite(g) for g in gaps.values()], axis=0)
    gaps = {view: values[defined] for view, values in gaps.items()}
    accuracy = accuracy[defined]
    if not defined.any():
        return {"cases": 0}
    return {
        **reversal_summary(gaps),
        "undefined": int((~defined).sum()),
        # Counted once all pairs are known, see `correct_pairs`.
        "resolved_reversals": dict.fromkeys(views[1:], 0),
        "ties": {view: int(sum(p["ties"][view]["ece"] for p in pairs)) for view in views},
        "by_accuracy_gap": accuracy_gap_bins(accuracy, gaps),
        "quadrants": {view: gap_quadrants(gaps["raw"], gaps[view]) for view in views[1:]},
        "correlation": {view: gap_correlation(accuracy, gaps[view]) for view in views},
    }
