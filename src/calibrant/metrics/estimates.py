"""Metrics with intervals: bootstrap, paired gaps, and all metrics of a block at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import Estimate, InputError, RngLike, as_generator
from calibrant.core.arrays import Floats, Indices, MaybeArray
from calibrant.core.errors import require_known
from calibrant.metrics import inputs
from calibrant.metrics.binned import NORMS
from calibrant.metrics.blocks.block import MetricBlock
from calibrant.metrics.intervals.smooth import smooth_replicates
from calibrant.metrics.registry import METRICS, audited
from calibrant.metrics.stats import bootstrap
from calibrant.metrics.stats.binning import width_index
from calibrant.metrics.stats.intervals import wald_interval
from calibrant.metrics.stats.units import unit_codes

Function: TypeAlias = Callable[..., float]

KINDS = ("percentile", "basic")


def _metric(metric: str | Function, **options: Any) -> Function:
    if isinstance(metric, str):
        require_known([metric], METRICS, "there is no metric {}")
        metric = METRICS[metric]
    return partial(metric, **options)


def bootstrap_distribution(
    metric: str | Function,
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    resamples: int = 1000,
    rng: RngLike = 0,
    fast: bool = True,
    **options: Any,
) -> Floats:
    """Return bootstrap replicates of a metric, shape (resamples,).

    Units are drawn with replacement and bring all their rows. With `fast`, single rows as units,
    no weights and outcomes of 0 and 1 there are short cuts with the same distribution: ECE with
    equal-width bins from (bin, outcome) counts, smooth ECE from sums on a grid, Brier, log loss,
    accuracy and mean confidence from cells, AUROC by sorting once. Everything else recomputes
    the metric on every resample.

    Parameters
    ----------
    metric
        A name in `METRICS`, or a function of confidence, correct and keyword ``weights``.
    confidence, correct, weights
        As for the metric.
    units
        What was sampled, one value per row, for example the question.
    resamples, rng
        Number of resamples and their seed.
    fast
        Whether short cuts are taken.
    options
        Passed on to the metric.

    Examples
    --------
    >>> c = np.linspace(0.05, 0.95, 200)
    >>> y = np.arange(200) % 3 > 0
    >>> draws = bootstrap_distribution("ece", c, y, resamples=100)
    >>> draws.shape
    (100,)
    """
    bootstrap.check_resamples(resamples)
    function = _metric(metric, **options)
    data = inputs.check(confidence, correct, weights, probability=False)
    sampled = unit_codes(units, data.rows)
    generator = as_generator(rng)
    if fast and isinstance(metric, str) and data.weights is None and sampled.codes is None:
        short = _short_cut(metric, data, resamples, generator, **options)
        if short is not None:
            return short
    draws = bootstrap.resampled_rows(sampled, resamples, generator)
    return np.array([_of_rows(function, data, rows) for rows in draws])


def _of_rows(function: Function, data: inputs.Checked, rows: Indices) -> float:
    c, y, w = data
    return function(c[rows], y[rows], weights=None if w is None else w[rows])


def _short_cut(
    metric: str, data: inputs.Checked, resamples: int, rng: np.random.Generator, **options: Any
) -> Floats | None:
    y = data.correct
    binary = not inputs.is_graded(y)
    if metric == "ece" and binary and options.get("strategy", "width") == "width":
        return _ece_replicates(data, resamples, rng, **options)
    if metric == "smooth_ece" and binary and not options:
        return smooth_replicates(inputs.check(*data), resamples, rng)
    if metric == "auroc" and binary and not options:
        positive = y.astype(np.bool_, copy=False)
        return bootstrap.area_replicates(data.confidence, positive, resamples, rng)
    family = METRICS[metric].family
    if family is not None and family.rows and family.influence and not options:
        value, influence = family.influence(MetricBlock.of(data))
        if math.isfinite(value):
            return value + bootstrap.mean_replicates(influence, resamples, rng)
    return None


def _ece_replicates(
    data: inputs.Checked,
    resamples: int,
    rng: np.random.Generator,
    *,
    bins: int = 15,
    norm: str = "l1",
    strategy: str = "width",
) -> Floats:
    """Return replicates of ECE from (bin, outcome) counts."""
    inputs.check_choice("norm", norm, NORMS)
    inputs.check_choice("strategy", strategy, ("width",))
    data = inputs.check(*data)
    counts, mean, spread = _outcome_cells(data, inputs.check_bins(bins))
    draws, sums = bootstrap.cell_replicates(counts, mean, spread, resamples, rng)
    # Cells come in pairs (wrong, right) per bin; a right row subtracts its outcome.
    gaps = sums[:, ::2] + sums[:, 1::2] - draws[:, 1::2]
    mass = draws[:, ::2] + draws[:, 1::2]
    if norm == "l1":
        return np.asarray(np.abs(gaps).sum(axis=1) / data.rows)
    gaps = np.abs(gaps) / np.maximum(mass, 1)
    if norm == "max":
        return np.asarray(gaps.max(axis=1))
    return np.asarray(np.sqrt((mass * gaps**2).sum(axis=1) / data.rows))


def _outcome_cells(data: inputs.Checked, bins: int) -> tuple[Floats, Floats, Floats]:
    """Return rows, mean and spread of confidences in each (bin, outcome) cell, in pieces."""
    place = width_index(bins, data.confidence.dtype)
    sums = np.zeros((3, 2 * bins + 2))
    size = min(data.rows, 16_384)
    index, room = np.empty(size, np.intp), np.empty(size)
    for start in range(0, data.rows, size):
        c, y = data.confidence[start : start + size], data.correct[start : start + size]
        local = index[: c.size]
        place(c, local, room[: c.size])
        local *= 2
        local += y.astype(np.bool_, copy=False)
        sums[0] += np.bincount(local, minlength=2 * bins + 2)
        sums[1] += np.bincount(local, c, 2 * bins + 2)
        squares = np.square(c, out=room[: c.size], dtype=np.float64)
        sums[2] += np.bincount(local, squares, 2 * bins + 2)
    sums[:, 2 * bins - 2 : 2 * bins] += sums[:, 2 * bins :]
    counts, first, second = sums[:, : 2 * bins]
    safe = np.maximum(counts, 1)
    mean = first / safe
    return counts, mean, np.sqrt(np.maximum(second / safe - mean**2, 0.0))


def bootstrap_interval(
    metric: str | Function,
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    kind: str = "percentile",
    weights: MaybeArray = None,
    units: MaybeArray = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
    **options: Any,
) -> Estimate:
    """Return a metric with a bootstrap interval.

    For ECE, smooth ECE and MCB prefer `metric_estimates`: near perfect calibration these are
    biased upwards, and a bootstrap interval of any kind misses the truth.

    Parameters
    ----------
    metric, confidence, correct, weights, units, resamples, rng, options
        As for `bootstrap_distribution`.
    kind
        ``percentile``, or ``basic``: mirrored at the value.
    level
        Nominal coverage.

    Examples
    --------
    >>> c = np.linspace(0.05, 0.95, 200)
    >>> found = bootstrap_interval("brier", c, c > 0.5, kind="basic")
    >>> bool(found.low < found.value < found.high)
    True
    """
    inputs.check_choice("kind", kind, KINDS)
    inputs.check_level(level)
    resampled = partial(bootstrap_distribution, metric, confidence, correct, weights=weights)
    replicates = resampled(units=units, resamples=resamples, rng=rng, **options)
    data = inputs.check(confidence, correct, weights, probability=False)
    value = _metric(metric, **options)(confidence, correct, weights=weights)
    sampled = unit_codes(units, data.rows)
    low, high = bootstrap.percentile_interval(replicates, level)
    if kind == "basic":
        low, high = 2 * value - high, 2 * value - low
    return Estimate(value, low, high, sampled.count, level, interval=f"bootstrap-{kind}")


def paired_gap(
    metric: str | Function,
    confidence_a: ArrayLike,
    correct_a: ArrayLike,
    confidence_b: ArrayLike,
    correct_b: ArrayLike,
    *,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
    **options: Any,
) -> Estimate:
    """Return metric(a) - metric(b) for two models on the same rows, with a paired interval.

    Row i of both models belongs to the same question, so what makes a question hard for both
    cancels. Proper scores, means and ranking metrics have a normal interval from the influence
    of each unit on the difference; others (ECE and its kin, functions) the basic bootstrap
    interval with the same resamples for both, which turns the bias of the replicates around.

    Parameters
    ----------
    metric
        A name in `METRICS`, or a function of confidence, correct and keyword ``weights``.
    confidence_a, correct_a, confidence_b, correct_b
        The two models, all of the same length.
    weights, units
        One value per row, shared by both models.
    level, resamples, rng
        Nominal coverage; resamples and their seed where a bootstrap is used.
    options
        Passed on to the metric.

    Examples
    --------
    >>> y = np.arange(100) % 4 > 0
    >>> gap = paired_gap("brier", np.full(100, 0.9), y, np.full(100, 0.75), y)
    >>> round(gap.value, 4)
    0.0225
    """
    inputs.check_level(level)
    function = _metric(metric, **options)
    a = inputs.check(confidence_a, correct_a, weights, probability=False)
    b = inputs.check(confidence_b, correct_b, weights, probability=False)
    if a.rows != b.rows:
        raise InputError(
            f"two models are compared on the same rows, got {a.rows} and {b.rows}",
            hint="join the tables by question first",
        )
    sampled = unit_codes(units, a.rows)
    value = function(*a[:2], weights=weights) - function(*b[:2], weights=weights)
    family = METRICS[metric].family if isinstance(metric, str) else None
    if family is not None and family.influence and not options and value == value:
        first, second = MetricBlock.of(a, sampled), MetricBlock.of(b, sampled)
        difference = family.influence(first)[1] - family.influence(second)[1]
        error = first.error(difference)
        if math.isfinite(error):
            low, high = wald_interval(value, error, level, units=sampled.count)
            return Estimate(value, low, high, sampled.count, level, interval="paired-influence")
    bootstrap.check_resamples(resamples)
    draws = bootstrap.resampled_rows(sampled, resamples, as_generator(rng))
    replicates = np.array(
        [_of_rows(function, a, rows) - _of_rows(function, b, rows) for rows in draws]
    )
    low, high = bootstrap.percentile_interval(replicates, level)
    low, high = 2 * value - high, 2 * value - low
    return Estimate(value, low, high, sampled.count, level, interval="paired-bootstrap-basic")


def metric_estimates(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> dict[str, Estimate]:
    """Return metrics with intervals; the data are sorted and binned once for all of them.

    Means (Brier, log loss, mean confidence) have intervals from the variance between units, the two
    losses moved for their skewness, accuracy and UNC Wilson's, AUROC DeLong's and the other ranking
    measures the same method (influence functions) on the logit scale. ECE, its debiased form, its
    halves, smooth ECE and MCB are biased near perfect calibration, where no bootstrap interval
    covers; theirs come from inverting a test, so that 0 is inside whenever perfect calibration is
    not contradicted. The interval of DSC lies around the value less its simulated bias.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,); any finite score where only ranking metrics and
        accuracy are asked for.
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,). With grades AUROC and AUPRC are left
        undefined.
    names
        Metrics to compute, of those that every audit has; all of them by default.
    weights
        A weight of 2 counts as two equal rows in the value; for the interval a row is one draw
        whatever its weight.
    units
        What was sampled, one value per row, for example the question; rows of one unit may
        depend on each other.
    bins
        Equal-width bins of the binned metrics.
    level
        Nominal coverage of the intervals.
    resamples
        Simulated draws behind the intervals of the biased metrics.
    rng
        Seed.

    Returns
    -------
    dict
        One `Estimate` per name. Undefined values are NaN, with `UndefinedMetricWarning`.

    Examples
    --------
    >>> import numpy as np
    >>> c = np.tile([0.6, 0.7, 0.8, 0.9], 50)
    >>> y = np.arange(200) % 10 < 7
    >>> found = metric_estimates(c, y, names=("brier", "accuracy"))
    >>> print(found["accuracy"])
    0.700 [0.633, 0.759]
    """
    require_known(names or (), audited(), "there is no metric {} here")
    choice = [METRICS[name] for name in names or audited()]
    probability, stream = any(metric.probability for metric in choice), as_generator(rng)
    block = MetricBlock(
        *(confidence, correct, weights, units),
        probability=probability,
        bins=bins,
        level=level,
        resamples=resamples,
        rng=stream,
    )
    return {metric.name: block.estimate(metric) for metric in choice}


def confidence_gap(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    level: float = 0.95,
) -> Estimate:
    """Return mean confidence minus accuracy, in [-1, 1]; above 0 is over-confidence.

    Unlike a calibration error it has a sign and no bias; unlike one it can be 0 although the
    confidence is wrong in places. The interval joins Wilson's of the accuracy and Student's of the
    mean confidence, both from the variance between units, so that outcomes which happen to be all
    alike do not take its width away.

    Examples
    --------
    >>> print(confidence_gap([0.9, 0.8, 0.9, 0.8], [1, 0, 1, 1]))
    0.100 [-0.106, 0.576]
    >>> print(confidence_gap([0.6] * 10, [0] * 10))
    0.600 [0.322, 0.600]
    """
    name = "confidence_gap"
    return metric_estimates(
        confidence, correct, names=(name,), weights=weights, units=units, level=level
    )[name]
