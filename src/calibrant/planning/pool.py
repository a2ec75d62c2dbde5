"""What the labels made so far say about the whole pool, and whether one may stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.planning.designs import LabelPool
from calibrant.planning.refusal import require_labels

__all__ = ["PoolEstimate", "pool_estimate", "stop_decision"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PoolEstimate:
    """Estimates for the whole pool, from its labelled items.

    Parameters
    ----------
    ece
        Binned calibration error that labelling the whole pool would give, bias-corrected.
    accuracy
        Accuracy of the pool.
    gap
        Gap per bin (accuracy minus confidence), NaN where a bin has no label.
    gap_error
        Standard error of each gap.
    weight
        Share of the pool in each bin.
    labels
        Labels per bin.
    unseen
        Share of the pool in bins without a label.
    """

    ece: Estimate
    accuracy: Estimate
    gap: Floats
    gap_error: Floats
    weight: Floats
    labels: Floats
    unseen: float


def pool_estimate(pool: LabelPool, *, level: float = 0.95) -> PoolEstimate:
    """Estimate accuracy and ECE of the whole pool from its labelled items.

    Bin weights and mean confidences are those of the whole pool, so only the outcomes are
    estimated. Noise makes the absolute gap of a bin too large on average; the excess expected
    under a normal law is taken off. Consistent for every design that chooses at random within
    a bin. Where side information is given, gaps are adjusted by regression on it.

    Parameters
    ----------
    pool
        Items, labels and side information.
    level
        Coverage of the intervals. Raise it when looking more than once, see `stop_decision`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 2000)
    >>> y = np.where(np.arange(2000) < 400, rng.uniform(size=2000) < p - 0.2, np.nan)
    >>> estimate = pool_estimate(LabelPool(p, y))
    >>> bool(estimate.ece.low < 0.2 < estimate.ece.high)
    True
    """
    require_labels(pool.correct)
    items = np.bincount(pool.cell, minlength=pool.bins).astype(np.float64)
    weight = items / items.sum()
    gap, error, seen = _gaps(pool, items)
    known = seen > 0
    share = np.where(known, weight, 0.0)
    unseen = float(weight[~known].sum())
    labels = int(seen.sum())
    ece = _ece(gap, error, share, level, labels)
    mean_confidence = float(pool.confidence.mean())
    scale = max(share.sum(), 1e-12)
    centre = mean_confidence + float(np.nansum(share * gap)) / scale
    half = float(ndtri((1 + level) / 2)) * float(np.sqrt(np.nansum((share * error) ** 2))) / scale
    # Bins without a label may hold anything: they widen the interval and do not move the value.
    mean = np.bincount(pool.cell, weights=pool.confidence, minlength=pool.bins)
    extreme = np.maximum(mean, items - mean)[~known].sum() / items.sum()
    return PoolEstimate(
        ece=Estimate(
            ece[0],
            max(0.0, ece[1] * (1 - unseen)),
            min(1.0, ece[2] * (1 - unseen) + float(extreme)),
            n=labels,
            level=level,
            interval="normal, signs fixed",
        ),
        accuracy=Estimate(
            centre,
            max(0.0, centre - half - unseen),
            min(1.0, centre + half + unseen),
            n=labels,
            level=level,
            interval="normal, post-stratified",
        ),
        gap=np.where(known, gap, np.nan),
        gap_error=np.where(known, error, np.nan),
        weight=weight,
        labels=seen,
        unseen=unseen,
    )


def _gaps(pool: LabelPool, items: Floats) -> tuple[Floats, Floats, Floats]:
    lab, bins = pool.labelled, pool.bins
    cell = pool.cell[lab]
    seen = np.bincount(cell, minlength=bins).astype(np.float64)
    residual = pool.correct[lab] - pool.confidence[lab]
    count = np.maximum(seen, 1.0)
    gap = np.bincount(cell, weights=residual, minlength=bins) / count
    rate = (np.bincount(cell, weights=pool.correct[lab], minlength=bins) + 1.0) / (seen + 2.0)
    variance = rate * (1.0 - rate)
    if pool.side is not None and pool.side.shape[1] and residual.size > 10 * pool.side.shape[1]:
        shift, ratio = _adjustment(pool, cell, residual, count)
        gap, variance = gap - shift, variance * ratio
    finite = np.clip(1.0 - seen / np.maximum(items, 1.0), 0.0, 1.0)
    return gap, np.sqrt(variance * finite / count), seen


def _adjustment(
    pool: LabelPool, cell: NDArray[np.intp], residual: Floats, count: Floats
) -> tuple[Floats, float]:
    """Return what to take off each gap, and the share of variance that is left."""
    side = pool.side
    if side is None:
        raise InputError("there is no side information to adjust for")
    lab, bins = pool.labelled, pool.bins

    def bin_means(values: Floats, cells: NDArray[np.intp], counts: Floats) -> Floats:
        sums = [np.bincount(cells, weights=column, minlength=bins) for column in values.T]
        return np.stack(sums, axis=1) / counts[:, None]

    here = bin_means(side[lab], cell, count)
    everywhere = bin_means(side, pool.cell, np.maximum(np.bincount(pool.cell, minlength=bins), 1.0))
    centred = side[lab] - here[cell]
    mean = np.bincount(cell, weights=residual, minlength=bins) / count
    within = residual - mean[cell]
    slope = np.linalg.lstsq(centred, within, rcond=None)[0]
    rest = within - centred @ slope
    free = float(residual.size - np.unique(cell).size)
    if free <= slope.size or not within.any():
        return np.zeros(bins), 1.0
    left = float((rest**2).sum()) / (free - slope.size)
    ratio = min(1.0, left / (float((within**2).sum()) / free))
    return (here - everywhere) @ slope, ratio


def _excess(size: Floats, error: Floats) -> Floats:
    """Return how much larger the absolute value of a normal variable is than `size`, on average."""
    scale = np.maximum(error, 1e-12)
    z = size / scale
    mean = scale * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + size * (1 - 2 * ndtr(-z))
    return np.asarray(mean - size, dtype=np.float64)


def _ece(
    gap: Floats, error: Floats, share: Floats, level: float, labels: int
) -> tuple[float, float, float]:
    """Return the corrected ECE and its interval.

    With the true signs held fixed, the signed sum of gaps is nearly normal around the ECE. What
    the absolute value adds on top depends on the true gap; each end of the interval takes off
    what a gap one standard error further in its own direction would add.
    """
    used = share > 0
    gap, error, share = np.abs(gap[used]), error[used], share[used] / share[used].sum()
    spread = float(stdtrit(max(labels - 1, 1), (1 + level) / 2))
    spread *= float(np.sqrt(((share * error) ** 2).sum()))
    inner, outer = np.maximum(gap - error, 0.0), gap + error
    value = float(share @ np.maximum(gap - _excess(gap, error), 0.0))
    low = float(share @ (gap - _excess(inner, error))) - spread
    high = float(share @ (gap - _excess(outer, error))) + spread
    return value, min(max(0.0, low), value), max(min(1.0, high), value)


def stop_decision(
    pool: LabelPool,
    *,
    look: int = 1,
    precision: float | None = None,
    threshold: float | None = None,
    alpha: float = 0.05,
) -> dict[str, Any]:
    """Say whether labelling may stop, honestly for a person who looks after every batch.

    The interval of look k has level ``1 - alpha / (k (k + 1))``; over all looks the probability
    that any of them fails is then at most alpha, so stopping at a good moment is allowed.

    Parameters
    ----------
    pool
        Items and labels.
    look
        1 for the first look at this pool, 2 for the second, and so on.
    precision
        Stop when half the interval is at most this.
    threshold
        Stop when the interval lies on one side of this ECE.
    alpha
        Error probability over all looks together.

    Returns
    -------
    dict
        ``stop``, ``reason``, ``look``, ``interval`` (an estimate) and ``half_width``.
    """
    if look < 1:
        raise InputError(f"looks are counted from 1, got {look}")
    level = 1.0 - alpha / (look * (look + 1))
    ece = pool_estimate(pool, level=level).ece
    half = (ece.high - ece.low) / 2
    reason, stop = "no goal was given: name a precision or a threshold", False
    if precision is not None:
        stop = half <= precision
        word = "is" if stop else "is not yet"
        reason = f"the interval {word} within +/- {precision:g} (now +/- {half:.3f})"
    if threshold is not None and not stop:
        if ece.high < threshold or ece.low > threshold:
            side = "below" if ece.high < threshold else "above"
            stop, reason = True, f"the ECE lies {side} {threshold:g}"
        else:
            reason = f"the interval still contains {threshold:g}" + (
                f"; {reason}" if precision is not None else ""
            )
    if pool.labelled.all():
        stop, reason = True, "the whole pool is labelled"
    return {"stop": stop, "reason": reason, "look": look, "interval": ece, "half_width": half}
