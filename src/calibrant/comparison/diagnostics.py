"""Why two models differ: shared blind spots, self-preference, what the weights assume."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.comparison.aligned import Aligned, Candidates
from calibrant.comparison.resampled import Resamples
from calibrant.core.estimate import Estimate

__all__ = ["blind_spots", "exchangeability", "interval", "self_preference"]

Floats: TypeAlias = npt.NDArray[np.float64]
_HISTOGRAM_BINS = 20


def interval(replicates: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the value (entry 0) with the percentile interval of the resamples.

    Parameters
    ----------
    replicates
        Value in the data, then in every resample; undefined resamples are left out.
    n
        Units behind the value.
    level
        Coverage.
    """
    value = float(replicates[0])
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    if drawn.size < 2 or not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"), n, level, interval="none")
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), n, level, interval="bootstrap-percentile")


def blind_spots(
    aligned: Aligned, a: int, b: int, resamples: Resamples, *, level: float = 0.95
) -> dict[str, Any]:
    """Return each model's confidence where both are right and where both are wrong.

    The mean confidence on questions that both get wrong is over-confidence that neither can be
    excused for by the other's success.
    """
    right, wrong = aligned.correct[[a, b]] == 1, aligned.correct[[a, b]] == 0
    halves = {"both_right": right.all(axis=0), "both_wrong": wrong.all(axis=0)}
    found: dict[str, Any] = {}
    for name, mask in halves.items():
        entry: dict[str, Any] = {"n": int(mask.sum())}
        for key, model in (("a", a), ("b", b)):
            confidence = aligned.confidence[model, mask]
            entry[key] = _mean_confidence(confidence, mask, resamples, level)
            counts, _ = np.histogram(confidence, bins=_HISTOGRAM_BINS, range=(0, 1))
            entry[f"histogram_{key}"] = counts.tolist()
        found[name] = entry
    return found


def _mean_confidence(
    confidence: Floats, mask: npt.NDArray[np.bool_], resamples: Resamples, level: float
) -> Estimate | None:
    if not mask.any():
        return None
    counts = resamples.counts[mask].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (confidence @ counts) / counts.sum(axis=0)
    return interval(means, int(mask.sum()), level=level)


def self_preference(
    aligned: Aligned, pool: Candidates, resamples: Resamples, *, level: float = 0.95
) -> list[dict[str, Any]]:
    """Return, per judge, confidence in its own answers minus that in others', at equal grade.

    Means are taken among right and among wrong answers separately and then averaged, so that a
    judge that answers better is not called biased for saying so. Answers that the judge gave
    itself do not count as another's.
    """
    counts = resamples.counts.astype(np.float64)
    size = int(aligned.questions.size)
    rows = []
    for judge, name in enumerate(aligned.models):
        # One product for both grades: the counts are read once per judge.
        sums = np.vstack([_own_and_others(pool, judge, grade) for grade in (1.0, 0.0)]) @ counts
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums[0::2] / sums[1::2]
        parts = (means[0] - means[1], means[2] - means[3])
        rows.append(
            {
                "judge": name,
                "bias": interval((parts[0] + parts[1]) / 2, size, level=level),
                "on_right": interval(parts[0], size, level=level),
                "on_wrong": interval(parts[1], size, level=level),
            }
        )
    return rows


def _own_and_others(pool: Candidates, judge: int, grade: float) -> Floats:
    """Return per question a judge's confidence and count: own answers, then others'."""
    graded = pool.correct == grade
    own = graded[judge].astype(np.float64)
    foreign = graded & (pool.identity != pool.identity[judge])
    return np.vstack(
        [
            own * pool.confidence[judge, judge],
            own,
            np.where(foreign, pool.confidence[judge], 0.0).sum(axis=0),
            foreign.sum(axis=0, dtype=np.float64),
        ]
    )


def exchangeability(aligned: Aligned, a: int, b: int) -> list[dict[str, Any]]:
    """Check what the distribution-aligned view assumes, per model and outcome.

    The weights treat confidence given the outcome as the same on all questions. Here the
    questions where the other model shares the outcome are held against those where it does not:
    a large Kolmogorov-Smirnov distance means that DA and IA may disagree.
    """
    # Loaded here: only this test needs it, and it takes half a second.
    from scipy.stats import ks_2samp

    rows = []
    for model, other in ((a, b), (b, a)):
        for grade, name in ((1.0, "right"), (0.0, "wrong")):
            own = aligned.correct[model] == grade
            shared = own & (aligned.correct[other] == grade)
            alone = own & ~shared
            entry: dict[str, Any] = {
                "model": aligned.models[model],
                "outcome": name,
                "shared": int(shared.sum()),
                "alone": int(alone.sum()),
                "distance": None,
                "p_value": None,
            }
            if shared.any() and alone.any():
                confidence = aligned.confidence[model]
                test = ks_2samp(confidence[shared], confidence[alone], method="asymp")
                entry["distance"] = float(test.statistic)
                entry["p_value"] = float(test.pvalue)
            rows.append(entry)
    return rows
