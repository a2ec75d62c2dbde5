"""Binned calibration error: ECE, its two halves, and the bins themselves."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Indices, MaybeArray
from calibrant.metrics.inputs import Checked, check, check_bins, check_choice, check_level
from calibrant.metrics.stats import binning
from calibrant.metrics.stats.binning import BinIndex
from calibrant.metrics.stats.bootstrap import root_between
from calibrant.metrics.stats.error_bounds import mean_size
from calibrant.metrics.stats.intervals import normal_quantile, wilson_interval

STRATEGIES = ("width", "mass")
NORMS = ("l1", "l2", "max")


class BinStats(Struct, frozen=True):
    """Sums over the bins that hold anything, the sufficient statistics of every binned metric.

    `mass` is the share of all weight; `gap` is mean confidence minus mean outcome; `spread`
    is the mean of c(1 - c), the variance of an outcome if the confidences were right.
    """

    lower: Floats
    upper: Floats
    rows: Floats
    mass: Floats
    confidence: Floats
    rate: Floats
    spread: Floats
    effective: Floats

    @property
    def gap(self) -> Floats:
        """Mean confidence minus mean outcome, per bin."""
        return self.confidence - self.rate


def placement(data: Checked, bins: int, strategy: str) -> tuple[BinIndex, Any]:
    """Return the rule that places rows into bins, and the edges."""
    check_bins(bins)
    check_choice("strategy", strategy, STRATEGIES)
    dtype = data.confidence.dtype
    if strategy == "width":
        return binning.width_index(bins, dtype), binning.width_edges(bins, dtype)
    data = data.present()
    edges = binning.mass_edges(data.confidence, data.weights, bins)
    return binning.edge_index(edges), edges


def bins_of(data: Checked, bins: int) -> Indices:
    """Return the bin of every row, of equal width."""
    place, _ = placement(data, bins, "width")
    bin_of = np.empty(data.rows, np.intp)
    place(data.confidence, bin_of, np.empty(data.rows))
    return np.minimum(bin_of, bins - 1, out=bin_of)


def ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    weights: MaybeArray = None,
) -> float:
    r"""Return the expected calibration error, in [0, 1]; 0 is best.

    With :math:`p_b` the share of rows in bin b and :math:`g_b` mean confidence minus mean outcome
    there, it is :math:`\sum_b p_b |g_b|` (`l1`), :math:`\sqrt{\sum_b p_b g_b^2}` (`l2`) or
    :math:`\max_b |g_b|` (`max`). It estimates the error that these bins can see, and is biased
    upwards: a perfectly calibrated model shows more than 0 on finite data (see
    `calibration_test` for how much, and `ece_debiased`).

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    bins
        Number of bins.
    strategy
        ``width``: equal width, where edge k is the number nearest to k/bins in the dtype of the
        confidences, an edge belongs to the upper bin and 1.0 to the last. ``mass``: equal mass;
        equal values stay together.
    norm
        ``l1``, ``l2`` or ``max``.
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), 'On calibration of modern neural networks';
    Roelofs, Cain, Shlens, Mozer (2022), 'Mitigating bias in calibration error estimation'.

    Examples
    --------
    >>> ece([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0], bins=10)
    0.15...
    """
    check_choice("norm", norm, NORMS)
    data = check(confidence, correct, weights)
    if strategy == "width" and norm == "l1":
        gaps = binning.residual_sums(*data, check_bins(bins))
        return float(np.add.reduce(np.abs(gaps))) / data.total
    place, edges = placement(data, bins, strategy)
    count = len(edges) - 1
    residual = _residual_column(data)
    if norm == "l1":
        (gaps,) = binning.sum_by_bin(place, count, data.confidence, [residual])
        return float(np.abs(gaps).sum()) / data.total
    of_mass = _ones if (w := data.weights) is None else (lambda rows: w[rows])
    gaps, mass = binning.sum_by_bin(place, count, data.confidence, [residual, of_mass])
    filled = mass > 0
    gaps, mass = gaps[filled] / mass[filled], mass[filled]
    if norm == "max":
        return float(np.abs(gaps).max())
    return math.sqrt(float(mass @ gaps**2) / float(mass.sum()))


def over_confidence(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    weights: MaybeArray = None,
) -> float:
    """Return the part of the ECE from bins that promise too much, in [0, 1]; 0 is best.

    `over_confidence` + `under_confidence` = `ece` with the same bins.

    Examples
    --------
    >>> over_confidence([0.9, 0.9, 0.1, 0.1], [1, 0, 1, 0], bins=10)
    0.2
    """
    return _one_sided(check(confidence, correct, weights), bins, strategy, sign=1.0)


def under_confidence(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    weights: MaybeArray = None,
) -> float:
    """Return the part of the ECE from bins that promise too little, in [0, 1]; 0 is best.

    Examples
    --------
    >>> under_confidence([0.9, 0.9, 0.1, 0.1], [1, 0, 1, 0], bins=10)
    0.2
    """
    return _one_sided(check(confidence, correct, weights), bins, strategy, sign=-1.0)


def _one_sided(data: Checked, bins: int, strategy: str, *, sign: float) -> float:
    place, edges = placement(data, bins, strategy)
    (gaps,) = binning.sum_by_bin(place, len(edges) - 1, data.confidence, [_residual_column(data)])
    return float(np.maximum(sign * gaps, 0.0).sum()) / data.total


def shrunk_variance(stats: BinStats, shrink: float) -> Floats:
    """Return the variance of an outcome per bin if the gaps were `shrink` times the observed.

    With rates c - t g inside a bin the mean of rate(1 - rate) is
    mean c(1 - c) + t g (2 c - 1) - t^2 g^2, never below 0.
    """
    moved = shrink * stats.gap
    return np.maximum(stats.spread + moved * (2 * stats.confidence - 1) - moved**2, 0.0)


def bin_statistics(data: Checked, *, bins: int, strategy: str) -> BinStats:
    """Return the sums over bins of checked data."""
    place, edges = placement(data, bins, strategy)
    w = data.weights
    columns = [_ones, *products(data, lambda c, _: c, lambda c, _: c * c, lambda _, y: y)]
    if w is not None:
        columns += [lambda rows: w[rows], lambda rows: w[rows] ** 2]
    sums = binning.sum_by_bin(place, len(edges) - 1, data.confidence, columns)
    rows, first, second, outcome = sums[:4]
    mass, squares = sums[4:] if w is not None else (rows, rows)
    filled = mass > 0
    weight = mass[filled]
    mean, square = first[filled] / weight, second[filled] / weight
    return BinStats(
        lower=edges[:-1][filled].astype(np.float64),
        upper=edges[1:][filled].astype(np.float64),
        rows=rows[filled],
        mass=weight / weight.sum(),
        confidence=mean,
        rate=outcome[filled] / weight,
        spread=np.maximum(mean - square, 0.0),
        # What counts of importance weights is their effective number (Kish).
        effective=weight if w is None else weight**2 / squares[filled],
    )


def _ones(rows: slice) -> None:
    """Stand for a column of ones in `sum_by_bin`."""


def products(data: Checked, *functions: Callable[[Floats, Floats], Floats]) -> list[Any]:
    """Return columns for `sum_by_bin`: functions of confidence and outcome, times the weights."""

    def column(function: Callable[[Floats, Floats], Floats], rows: slice) -> Floats:
        values = function(*(part[rows].astype(np.float64, copy=False) for part in data[:2]))
        return values if data.weights is None else values * data.weights[rows]

    return [partial(column, function) for function in functions]


def _residual_column(data: Checked) -> Any:
    c, y, w = data.confidence, data.correct, data.weights
    buffer = np.empty(min(data.rows, binning.PIECE))

    def column(rows: slice) -> Any:
        out = buffer[: rows.stop - rows.start]
        np.subtract(c[rows], y[rows], out=out, dtype=np.float64)
        return out if w is None else np.multiply(out, w[rows], out=out)

    return column


class ReliabilityBins(Struct, frozen=True):
    """The bins of a reliability diagram; arrays with one entry per bin that holds rows.

    `low` and `high` bound the rate (Wilson, from the effective rows of the bin); `band_low` and
    `band_high` say where the rate would lie, at this number of rows, if the confidences were
    right.
    """

    lower: Floats
    upper: Floats
    n: Floats
    mass: Floats
    confidence: Floats
    rate: Floats
    low: Floats
    high: Floats
    band_low: Floats
    band_high: Floats
    level: float

    def to_dict(self) -> list[dict[str, float]]:
        """Return one plain dictionary per bin."""
        names = [name for name in self.__struct_fields__ if name != "level"]
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def reliability_bins(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    level: float = 0.95,
    weights: MaybeArray = None,
) -> ReliabilityBins:
    """Return the bins of a reliability diagram with intervals and a consistency band.

    Parameters
    ----------
    confidence, correct, bins, strategy, weights
        As for `ece`.
    level
        Level of the intervals and of the band.

    Examples
    --------
    >>> diagram = reliability_bins([0.2, 0.2, 0.8, 0.8], [0, 0, 1, 0], bins=2)
    >>> diagram.rate.tolist(), diagram.n.tolist()
    ([0.0, 0.5], [2.0, 2.0])
    """
    check_level(level)
    data = check(confidence, correct, weights)
    stats = bin_statistics(data, bins=bins, strategy=strategy)
    low, high = wilson_interval(stats.rate, stats.effective, level)
    reach = normal_quantile(level) * np.sqrt(stats.spread / stats.effective)
    band = np.maximum(stats.confidence - reach, 0.0), np.minimum(stats.confidence + reach, 1.0)
    means = stats.rows, stats.mass, stats.confidence, stats.rate
    return ReliabilityBins(stats.lower, stats.upper, *means, low, high, *band, level)


def ece_debiased(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    estimator: str = "matched",
    weights: MaybeArray = None,
) -> float:
    r"""Return a binned calibration error with its upward bias taken off, in [0, 1]; 0 is best.

    Parameters
    ----------
    confidence, correct, bins, strategy, weights
        As for `ece`.
    norm
        ``l1`` or ``l2``.
    estimator
        For ``l1`` only. ``matched`` (the one that audits report): the observed gaps are shrunk
        by a common factor until the ECE that one would expect to observe,
        :math:`\sum_b p_b E|N(t g_b, s_b^2)|`, equals the ECE observed; the value is
        :math:`t \sum_b p_b |g_b|`, and 0 where even perfect calibration would be expected to
        show more. ``normal``: the observed ECE minus the bias that resampling normal bin means
        would show, :math:`2 \mathrm{ECE} - \sum_b p_b E|N(g_b, s_b^2)|` (in closed form; may
        fall slightly below 0), which removes only part of the bias near perfect calibration.
        For ``l2`` there is one form: each squared gap loses its sampling variance
        :math:`r_b(1-r_b)/(n_b-1)`; bins with one row are left out, a negative sum gives 0.

    References
    ----------
    Kumar, Liang, Ma (2019), 'Verified uncertainty calibration' (``l2`` and ``normal``);
    Broecker (2012), 'Estimating reliability and resolution of probability forecasts'.

    Examples
    --------
    >>> round(ece_debiased([0.9] * 10, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0], bins=10), 3)
    0.052
    """
    check_choice("norm", norm, ("l1", "l2"))
    check_choice("estimator", estimator, ("matched", "normal"))
    stats = bin_statistics(check(confidence, correct, weights), bins=bins, strategy=strategy)
    if norm == "l2":
        several = stats.effective > 1
        variance = stats.rate * (1 - stats.rate) / np.where(several, stats.effective - 1, 1)
        square = float(stats.mass @ np.where(several, stats.gap**2 - variance, 0.0))
        return math.sqrt(max(square, 0.0))
    if estimator == "matched":
        return matched_error(stats, 1.0)
    error = np.sqrt(stats.rate * (1 - stats.rate) / stats.effective)
    gap = np.abs(stats.gap)
    return float(stats.mass @ (2 * gap - folded_mean(gap, error)))


def matched_error(stats: BinStats, inflation: float) -> float:
    """Return the ``matched`` debiased ECE of bin sums.

    `inflation` is the variance of the data's own units over that of independent rows.
    """
    gap = np.abs(stats.gap)
    observed = float(stats.mass @ gap)

    def excess(shrink: float) -> float:
        error = np.sqrt(shrunk_variance(stats, shrink) * inflation / stats.effective)
        return float(stats.mass @ folded_mean(shrink * gap, error)) - observed

    none, whole = excess(0.0), excess(1.0)
    if none >= 0:
        return 0.0
    if whole <= 0:
        return observed
    return root_between(excess, (0.0, none), (1.0, whole)) * observed


def folded_mean(centre: Floats, error: Floats) -> Floats:
    """Return E|X| for normal X with the given mean and standard deviation (0 allowed)."""
    scale = np.where(error > 0, error, 1.0)
    return np.where(error > 0, scale * mean_size(centre / scale), np.abs(centre))
