"""Do two labellers agree, what do their mistakes do, and what do judges add?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from calibrant.core.arrays import Estimate, Floats, Mask
from calibrant.core.errors import InputError
from calibrant.findings.documents.entries import Part
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.pools import LabelPool
from calibrant.metrics.stats.intervals import wilson_interval
from calibrant.metrics.stats.judges import quadratic_kappa


def cohen_kappa(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Return Cohen's kappa of two people's labels of the same items.

    The interval is Fleiss' large-sample one; half an item is added to each cell, so that a few
    items on which everybody agrees are no proof of perfection.

    Parameters
    ----------
    first, second
        Labels 0 or 1 of the same items, in the same order; who is first does not matter.

    Examples
    --------
    >>> print(cohen_kappa([1, 1, 0, 0, 1, 1, 0, 1] * 5, [1, 1, 0, 0, 1, 0, 0, 1] * 5))
    0.750 [0.502, 0.926]
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise InputError("agreement needs the labels of two people for the same items")
    n, value = a.size + 2.0, float(quadratic_kappa(a, b)[0])
    share = np.array([[((a == x) & (b == y)).sum() + 0.5 for y in (0, 1)] for x in (0, 1)]) / n
    # The standard error of Fleiss, Cohen and Everitt (1969).
    row, column = share.sum(axis=1), share.sum(axis=0)
    agreed, chance = float(np.trace(share)), float(row @ column)
    centre = (agreed - chance) / (1.0 - chance)
    keep = np.diag(share) @ (1 - (row + column) * (1 - centre)) ** 2
    cross = share * (column[:, None] + row) ** 2
    variance = keep + (1 - centre) ** 2 * (cross.sum() - np.trace(cross))
    variance -= (centre - chance * (1 - centre)) ** 2
    error = math.sqrt(max(float(variance), 0.0) / n) / (1.0 - chance)
    reach = error * float(stdtrit(max(a.size - 1, 1), 0.975))
    low, high = max(-1.0, centre - reach), min(1.0, centre + reach)
    return Estimate(value, min(low, value), max(high, value), n=int(a.size), interval="fleiss")


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """How often one label is wrong, from items that two people labelled.

    Parameters
    ----------
    rate
        Chance that a single label is wrong, the same for right and wrong answers; people are
        taken to err independently of each other.
    pairs
        Items with two labels.
    """

    rate: Estimate
    pairs: int

    def corrected(self, rate: Estimate) -> Estimate:
        """Return the accuracy behind labels that are wrong this often.

        A label turns right into wrong and back with the same chance e, so the share of 'right'
        labels is ``e + (1 - 2 e) accuracy``. The interval joins both sources of doubt.

        Examples
        --------
        >>> noise = LabelNoise(Estimate(0.1, 0.05, 0.15, n=100), 100)
        >>> print(noise.corrected(Estimate(0.74, 0.70, 0.78, n=500)))
        0.800 [0.740, 0.866]
        """

        def solve(share: float, wrong: float) -> float:
            return (share - wrong) / (1.0 - 2.0 * min(wrong, 0.45))

        value = solve(rate.value, self.rate.value)
        ends = []
        for side, end in ((-1.0, rate.low), (1.0, rate.high)):
            from_labels = solve(end, self.rate.value) - value
            moved = [solve(rate.value, wrong) - value for wrong in (self.rate.low, self.rate.high)]
            from_noise = max(side * shift for shift in (*moved, 0.0))
            ends.append(value + side * math.hypot(from_labels, from_noise))
        low, high = max(0.0, min(ends[0], 1.0)), max(0.0, min(ends[1], 1.0))
        return Estimate(min(max(value, 0.0), 1.0), low, high, n=rate.n, interval="rogan-gladen")


def label_noise(first: Sequence[float], second: Sequence[float]) -> LabelNoise:
    """Return how often a single label is wrong, from the share of items two people differ on.

    Two independent labels with the same error rate e differ with probability ``2 e (1 - e)``.

    Examples
    --------
    >>> noise = label_noise([1] * 82 + [0] * 18, [1] * 100)
    >>> round(noise.rate.value, 2)
    0.1
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or not a.size:
        raise InputError("label noise needs two labels of the same items")
    differ = float((a != b).mean())
    low, high = wilson_interval(differ, a.size)

    def single(share: float) -> float:
        return (1.0 - math.sqrt(max(1.0 - 2.0 * min(share, 0.5), 0.0))) / 2.0

    rate = Estimate(single(differ), single(float(low)), single(float(high)), n=int(a.size))
    return LabelNoise(rate, int(a.size))


def judged_pool(pool: LabelPool) -> dict[str, object]:
    """Return accuracy, Brier score and gap with and without the side information of a pool.

    The judge's verdicts (the first column of side information) take noise out of the estimate;
    the labels alone decide its value, with the weights of their draw.

    Returns
    -------
    dict
        ``gold_labels``, ``judge_labels``, and per quantity ``combined``, ``gold_only``,
        ``judge_only``, ``width_ratio`` and ``gold_saved``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, y = rng.beta(5, 1, 3000), rng.random(3000) < 0.7
    >>> judge = np.where(rng.random(3000) < 0.95, y, ~y)[:, None] * 1.0
    >>> known = np.where(np.arange(3000) < 300, y, np.nan)
    >>> judged_pool(LabelPool(p, known, judge))["accuracy"]["width_ratio"] < 0.7
    True
    """
    pair, alone = pool_estimate(pool), pool_estimate(replace(pool, side=None))
    p, n = pool.confidence, alone.ece.n
    verdict = np.zeros_like(p) if pool.side is None else pool.side[:, 0]
    document: dict[str, object] = {"gold_labels": n, "judge_labels": int(p.size), "bins": []}
    for name, with_judge, without, verdicts in (
        ("accuracy", pair.accuracy, alone.accuracy, verdict),
        ("brier", pair.brier, alone.brier, (p - verdict) ** 2),
        ("gap", pair.mean_gap, alone.mean_gap, p - verdict),
    ):
        document[name] = _judged(with_judge, without, float(verdicts.mean()))
    return document


def _judged(
    combined: Estimate, alone: Estimate, judge: float, weight: float | None = None
) -> JudgedEstimate:
    width = alone.high - alone.low
    ratio = (combined.high - combined.low) / width if width > 0 else 1.0
    saved = max(0, round(alone.n * (1 / ratio**2 - 1))) if ratio > 0 else 0
    return JudgedEstimate(combined, alone, judge, weight, ratio, saved)


class JudgedEstimate(Part, frozen=True):
    """An estimate from gold and judge labels, beside the one from gold labels alone.

    Parameters
    ----------
    combined, gold_only
        Both estimates, with intervals.
    judge_only
        What the judge alone says: biased by an unknown amount, without a valid interval.
    judge_weight
        How far the judge was trusted, 0 (not at all) to 1.
    width_ratio
        Width of the interval, as a multiple of that without the judge.
    gold_saved
        Gold labels that would have to be added to reach the same precision without the judge.
    """

    combined: Estimate
    gold_only: Estimate
    judge_only: float
    judge_weight: float | None
    width_ratio: float
    gold_saved: int


def judged_mean(
    gold: ArrayLike,
    judge_on_gold: ArrayLike,
    judge_elsewhere: ArrayLike,
    *,
    level: float = 0.95,
    corners: tuple[float, float] | None = None,
) -> JudgedEstimate:
    """Estimate a mean from gold values and a judge's values.

    Unbiased for any judge when the gold items are a random choice of all items. The judge's
    weight minimises the estimated variance, so that a useless judge costs almost nothing.

    Parameters
    ----------
    gold
        Gold values, shape (n,).
    judge_on_gold
        The judge's values for the same items, shape (n,).
    judge_elsewhere
        The judge's values for the items without gold, shape (N,).
    level
        Coverage of the intervals.
    corners
        Values of a wrong and of a right item, where the values come from yes/no labels; found
        by itself for labels 0 and 1. They keep the interval honest when a handful of gold
        labels shows no disagreement.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(size=2000) < 0.7
    >>> judge = np.where(rng.uniform(size=2000) < 0.9, y, ~y)
    >>> estimate = judged_mean(y[:100], judge[:100], judge[100:])
    >>> bool(estimate.combined.high - estimate.combined.low < 0.15), estimate.gold_saved > 50
    (True, True)
    """
    y, f, g = (np.asarray(a, dtype=np.float64) for a in (gold, judge_on_gold, judge_elsewhere))
    if y.shape != f.shape or y.ndim != 1 or y.size < 2:
        raise InputError(
            f"gold labels and the judge's labels of the same items are two vectors of one length, "
            f"at least 2; got {y.shape} and {f.shape}"
        )
    for name, values in (("gold", y), ("judge", f), ("judge", g)):
        if not np.isfinite(values).all():
            raise InputError(f"a {name} label is missing or not finite")
    n, extra = y.size, g.size
    points, weights = _smoothed(y, f, corners)
    centre = weights @ points
    spread = (points - centre).T @ (weights[:, None] * (points - centre))
    pooled = np.concatenate([f, g])
    judge_variance = float(pooled.var()) if extra else 0.0
    trust = 0.0
    if extra and judge_variance > 0.0 and spread[1, 1] > 0.0:
        trust = float(np.clip(spread[0, 1] / ((1 + n / extra) * spread[1, 1]), 0.0, 1.0))
    shift = float(g.mean() - f.mean()) if extra else 0.0
    value = float(y.mean()) + trust * shift
    rectifier = spread[0, 0] - 2 * trust * spread[0, 1] + trust**2 * spread[1, 1]
    variance = max(float(rectifier), 0.0) / n
    variance += trust**2 * judge_variance / extra if extra else 0.0
    alone = float(spread[0, 0]) / n
    quantile = float(stdtrit(n - 1, (1 + level) / 2))
    combined = _interval(value, quantile * variance**0.5, n, level)
    gold_only = _interval(float(y.mean()), quantile * alone**0.5, n, level)
    return _judged(combined, gold_only, float(pooled.mean()), trust)


def judged_estimates(
    confidence: ArrayLike,
    gold: ArrayLike,
    judge: ArrayLike,
    *,
    bins: int = 5,
    level: float = 0.95,
) -> dict[str, object]:
    """Estimate accuracy, Brier score, mean gap and binned gaps from judge and gold labels.

    Parameters
    ----------
    confidence
        Confidences in [0, 1], shape (n,).
    gold
        Gold outcomes, NaN where there is none, shape (n,). Gold items are a random choice.
    judge
        The judge's outcomes in [0, 1] for all items, shape (n,).
    bins
        Bins of equal mass for the binned gaps; their intervals hold all at once (Bonferroni).
    level
        Coverage.

    Returns
    -------
    dict
        ``accuracy``, ``brier``, ``gap`` (confidence minus share right) a `JudgedEstimate` each,
        and ``bins``, one entry per bin.
    """
    p, y, f = (np.asarray(a, dtype=np.float64) for a in (confidence, gold, judge))
    if not p.shape == y.shape == f.shape or p.ndim != 1:
        raise InputError(f"three vectors of one length, got {p.shape}, {y.shape}, {f.shape}")
    has = np.isfinite(y)
    binary = bool(np.isin(y[has], (0.0, 1.0)).all())

    def estimate(of: Any, which: Mask, cover: float) -> JudgedEstimate:
        inside, outside = which & has, which & ~has
        middle = np.array([p[which].mean()])
        ends = (float(of(middle, 0.0)[0]), float(of(middle, 1.0)[0]))
        values = of(p[inside], y[inside]), of(p[inside], f[inside]), of(p[outside], f[outside])
        return judged_mean(*values, level=cover, corners=ends if binary else None)

    everything = np.ones(p.size, dtype=bool)
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)))
    cell = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    cells = [cell == which for which in np.unique(cell)]
    cover = 1 - (1 - level) / len(cells)
    return {
        "gold_labels": int(has.sum()),
        "judge_labels": int(p.size),
        "accuracy": estimate(lambda c, o: o + 0 * c, everything, level),
        "brier": estimate(lambda c, o: (c - o) ** 2, everything, level),
        "gap": estimate(lambda c, o: c - o, everything, level),
        "bins": [
            {
                "low": float(p[which].min()),
                "high": float(p[which].max()),
                "mean_confidence": float(p[which].mean()),
                "n": int(which.sum()),
                "gap": estimate(lambda c, o: c - o, which, cover),
            }
            for which in cells
            if (which & has).sum() >= 2
        ],
    }


def _smoothed(y: Floats, f: Floats, corners: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """Return the gold points and half a point in each corner of the table of yes/no labels.

    A handful of gold labels often shows no disagreement at all; the variance would then be 0
    and the interval a point. Half an observation per corner keeps it honest.
    """
    points = np.column_stack([y, f])
    weights = np.ones(len(points))
    if corners is None and np.isin(points, (0.0, 0.5, 1.0)).all():
        corners = (0.0, 1.0)
    if corners is not None:
        square = [(a, b) for a in corners for b in corners]
        points = np.vstack([points, np.array(square)])
        weights = np.concatenate([weights, np.full(len(square), 0.5)])
    return points, weights / weights.sum()


def _interval(value: float, half: float, n: int, level: float) -> Estimate:
    return Estimate(value, value - half, value + half, n=n, level=level, interval="ppi++")
