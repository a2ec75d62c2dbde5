"""The verification block of an audit: what these labels can show about this model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.core.arrays import (
    Estimate,
    Floats,
    Indices,
    Mask,
    MaybeArray,
    RngLike,
    Stream,
    as_generator,
)
from calibrant.core.errors import InputError
from calibrant.findings.claims.data import require_labels
from calibrant.findings.documents.entries import Part
from calibrant.metrics.inputs import check_weights
from calibrant.metrics.stats import floors
from calibrant.metrics.stats.binning import width_index
from calibrant.metrics.stats.bootstrap import quantiles
from calibrant.metrics.stats.floors import (
    LIPSCHITZ_CAP,
    MINIMUM_PER_BIN,
    gap_slopes,
    summarise_slopes,
)
from calibrant.metrics.stats.intervals import wilson_estimate

if TYPE_CHECKING:
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.row_block import RowBlock

# 60 cells nest in the 20 and 10 bins of the slope estimate and in the 15 bins of the ECE, so
# that one resampling serves all of them.
CELLS = 60
ECE_BINS = 15
_RESAMPLES, _NULL_DRAWS = 150, 400


class ResampledCells(Struct, frozen=True):
    """Weighted sums per cell, axis 0 over resamples: weight, right answers, confidence."""

    weight: Floats
    hits: Floats
    confidence: Floats

    @property
    def mean(self) -> Floats:
        """Mean confidence of each cell of the first row, 0 where it is empty."""
        confidence, weight = self.confidence[0], self.weight[0]
        mean: Floats = np.divide(confidence, weight, out=np.zeros(CELLS), where=weight > 0)
        return mean

    def merged(self, bins: int) -> ResampledCells:
        """Return the sums over `bins` bins of equal width."""
        shape = len(self.weight), bins, CELLS // bins
        parts = (self.weight, self.hits, self.confidence)
        return ResampledCells(*(part.reshape(shape).sum(axis=2) for part in parts))


def cell_of(p: Floats) -> Indices:
    """Return the cell of every confidence, by the one rule of edges that all metrics share."""
    cell = np.empty(p.size, np.intp)
    width_index(CELLS)(p, cell, np.empty(p.size))
    return np.minimum(cell, CELLS - 1)


def observed_cells(p: Floats, y: Floats, w: Floats) -> ResampledCells:
    """Return the sums of the answers themselves."""
    cell = cell_of(p)
    sums = [np.bincount(cell, weights=v, minlength=CELLS)[None] for v in (w, w * y, w * p)]
    return ResampledCells(*(np.asarray(values, dtype=np.float64) for values in sums))


def resample_cells(
    observed: ResampledCells, n: int, resamples: int, generator: np.random.Generator
) -> ResampledCells:
    """Resample (cell, outcome) counts: exact for the counts, cell means held fixed."""
    weight, hits = observed.weight[0], observed.hits[0]
    share = np.concatenate([hits, weight - hits]) / n
    draws = generator.multinomial(n, share / share.sum(), size=resamples).astype(np.float64)
    count = draws[:, :CELLS] + draws[:, CELLS:]
    return ResampledCells(count, draws[:, :CELLS], count * observed.mean)


def resample_rows(
    p: Floats, y: Floats, w: Floats, u: Indices | None, resamples: int, generator: Stream
) -> ResampledCells:
    """Resample whole units, with their weights; cell means of confidence held fixed."""
    index = np.arange(p.size) if u is None else u
    size, cell = int(index.max()) + 1, cell_of(p)
    weight, hits = np.empty((resamples, CELLS)), np.empty((resamples, CELLS))
    for draw in range(resamples):
        draws = generator.integers(0, size, size=size)
        times = np.bincount(draws, minlength=size)[index] * w
        weight[draw] = np.bincount(cell, weights=times, minlength=CELLS)
        hits[draw] = np.bincount(cell, weights=times * y, minlength=CELLS)
    return ResampledCells(weight, hits, weight * observed_cells(p, y, w).mean)


_SLOPE_BINS = (20, 10)
# Noise makes absolute slopes larger by itself, so little is added for the upper end; with half a
# standard error the interval covers in at least 95 % of simulated data sets.
_UPWARDS = 0.5
_Z = float(ndtri(0.975))


class SlopeEntry(Part, frozen=True):
    """The steepness by one binning: from so many pairs of bins, perhaps at its cap."""

    bins: int
    estimate: Estimate
    pairs: int
    capped: bool


# The estimate, the one of every binning, and why it cannot be estimated, or None.
Steepness = tuple[Estimate, list[SlopeEntry], str | None]


def _steepness(observed: ResampledCells, draws: ResampledCells, labels: int) -> Steepness:
    entries: list[SlopeEntry] = []
    for bins in _SLOPE_BINS:
        low = high = float("nan")
        observations = observed.merged(bins)
        usable = observations.weight[0] * (labels / observed.weight.sum()) >= MINIMUM_PER_BIN
        slope = summarise_slopes(
            gap_slopes(observations.weight, observations.hits, usable)[0], bins
        )
        if slope.pairs:
            low, high = _slope_ends(observations, draws.merged(bins), usable, bins)
        ends = min(low, slope.value), max(high, slope.value)
        how = "percentile of the slopes' own ends"
        estimate = Estimate(slope.value, *ends, n=labels, interval=how)
        entries.append(SlopeEntry(bins, estimate, slope.pairs, slope.capped))
    choice = next((entry for entry in entries if entry.pairs), entries[0])
    return choice.estimate, entries, _slope_note(choice)


def _slope_note(choice: SlopeEntry) -> str | None:
    if not choice.pairs:
        return (
            f"the Lipschitz constant cannot be estimated: no two adjacent bins hold "
            f"{MINIMUM_PER_BIN} labels each, neither with 20 bins nor with 10; the confidences "
            "are too concentrated or the labels too few"
        )
    if choice.bins != _SLOPE_BINS[0]:
        return "from 10 bins: with 20, no two adjacent bins hold 30 labels each"
    return "the estimate reached its cap of 5" if choice.capped else None


def _slope_ends(
    observed: ResampledCells, draws: ResampledCells, usable: Mask, bins: int
) -> tuple[float, float]:
    """Return both ends of the steepness: the percentile of the slopes' own lower and upper ends.

    The percentile grows with every slope, so the ends of the slopes carry over to it. Noise only
    ever makes an absolute slope look larger: its lower end takes that off.
    """
    pair = usable[:-1] & usable[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(draws.weight > 0, draws.hits / draws.weight, 0.0)
        rate = observed.hits[0] / observed.weight[0]
    slope = (np.diff(rate) * bins - 1.0)[pair]
    error = np.diff(rates, axis=1)[:, pair].std(axis=0) * bins
    low = quantiles(np.maximum(np.abs(slope) - _Z * error, 0.0), (0.75,))[0]
    high = quantiles(np.abs(slope) + _UPWARDS * error, (0.75,))[0]
    return min(float(low), LIPSCHITZ_CAP), min(float(high), LIPSCHITZ_CAP)


class DataResolution(Part, frozen=True):
    """How precisely this very data shows the calibration error."""

    ece: Estimate
    bins: int
    half_width: float
    if_calibrated: float


class VerificationBlock(Part, frozen=True):
    """How precise labels let one be.

    `lipschitz_resolutions` has one entry per binning, `lipschitz_note` says why the steepness
    cannot be estimated, or None.
    """

    labels: int
    error_rate: Estimate
    lipschitz: Estimate
    lipschitz_resolutions: list[SlopeEntry]
    lipschitz_note: str | None
    passive_floor: Estimate
    active_floor: Estimate
    accuracy_floor: Estimate
    optimal_bins: int | None
    resolution: DataResolution


def verification_block(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    resamples: int = _RESAMPLES,
    rng: RngLike = 0,
) -> VerificationBlock:
    """Say how precise these labels let one be: error rate, steepness of the gap, worst cases.

    Parameters
    ----------
    confidence
        Confidences in [0, 1], shape (n,).
    correct
        Outcomes in [0, 1], shape (n,), without gaps.
    weights
        Row weights; the number of labels is then Kish's effective number.
    units
        Unit of each row (question); labels are counted, and resampled, by unit.
    resamples
        Bootstrap resamples behind the interval of the Lipschitz constant and the resolution.
    rng
        Seed or generator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, size=5000)
    >>> block = verification_block(p, rng.uniform(size=p.size) < p - 0.2)
    >>> round(block.error_rate.value, 2)
    0.46
    """
    p, y, w, u = _checked(confidence, correct, weights, units)
    generator = as_generator(rng)
    plain = u is None and bool(np.all(w == 1.0)) and bool(((y == 0) | (y == 1)).all())
    observed = observed_cells(p, y, w)
    if plain:
        draws = resample_cells(observed, len(p), resamples, generator)
    else:
        draws = resample_rows(p, y, w, u, resamples, generator)
    by_unit = w if u is None else np.bincount(u, weights=w)
    labels = max(1, round(float(by_unit.sum() ** 2 / (by_unit**2).sum())))
    return _from_draws(observed, draws, labels, plain, (p, w), generator)


def verification_of(block: RowBlock | CellBlock, *, rng: RngLike = 0) -> VerificationBlock:
    """Return the verification block of rows or of merged sums."""
    from calibrant.metrics.blocks.row_block import RowBlock

    if isinstance(block, RowBlock):
        weights, units = block.given_weights, block.given_units
        return verification_block(*block.given, weights=weights, units=units, rng=rng)
    sums, generator = block.verification_sums(), as_generator(rng)
    observed = ResampledCells(*(sums[name][None] for name in ("rows", "hits", "confidence")))
    draws = resample_cells(observed, block.n, _RESAMPLES, generator)
    return _from_draws(observed, draws, block.n, True, (sums["means"], sums["counts"]), generator)


def _from_draws(
    observed: ResampledCells,
    draws: ResampledCells,
    labels: int,
    plain: bool,
    rows: tuple[Floats, Floats],
    generator: Stream,
) -> VerificationBlock:
    error_rate = _error_rate(observed, draws, labels, plain)
    resolution = _resolution(*rows, observed, draws, error_rate, generator)
    return _block(error_rate, _steepness(observed, draws, labels), resolution)


def _checked(
    confidence: ArrayLike, correct: ArrayLike, weights: MaybeArray, units: MaybeArray
) -> tuple[Floats, Floats, Floats, Indices | None]:
    require_labels(correct)
    p = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    w = np.ones_like(p) if weights is None else np.asarray(weights, dtype=np.float64)
    if not p.shape == y.shape == w.shape or p.ndim != 1:
        raise InputError(
            f"confidence, correct and weights are vectors of one length, got {p.shape}, {y.shape} "
            f"and {w.shape}"
        )
    for name, values, upper in (("confidence", p, 1.0), ("correct", y, 1.0), ("weights", w, None)):
        bad = ~((values >= 0.0) & (values <= (np.inf if upper is None else upper)))
        if bad.any():
            row = int(np.argmax(bad))
            limit = "at least 0" if upper is None else "in [0, 1]"
            raise InputError(f"{name} is {limit}, got {values[row]}", row=row + 1)
    units = None if units is None else np.asarray(units)
    w = np.asarray(check_weights(w, p.size), dtype=np.float64)
    keep = w > 0.0
    if not keep.all():
        # A resample of rows without weight would have nothing to divide by.
        p, y, w, units = p[keep], y[keep], w[keep], None if units is None else units[keep]
    if units is None:
        return p, y, w, None
    names, index = np.unique(units, return_inverse=True)
    return p, y, w, None if names.size == p.size else index.astype(np.intp)


# Less than this is no spread.
ROUNDING = 1e-12


def _error_rate(
    observed: ResampledCells, draws: ResampledCells, labels: int, plain: bool
) -> Estimate:
    value = 1.0 - float(observed.hits.sum() / observed.weight.sum())
    value = min(max(value, 0.0), 1.0)
    if plain or value in (0.0, 1.0):
        return wilson_estimate(value, labels)
    rates = 1.0 - draws.hits.sum(axis=1) / draws.weight.sum(axis=1)
    low, high = quantiles(rates, (0.025, 0.975)).tolist()
    if high - low <= ROUNDING:
        # One question, or questions that are all alike: resampling sees no spread.
        return wilson_estimate(value, labels)
    return Estimate(value, low, high, n=labels)


def _block(error_rate: Estimate, steep: Steepness, resolution: DataResolution) -> VerificationBlock:
    labels = error_rate.n
    rates, slopes = _ends(error_rate), np.maximum(_ends(steep[0]), 1e-12)

    def box(values: list[float], *extra: float) -> Estimate:
        low, high = min(values[1:]), max(*values[1:], *extra)
        return Estimate(values[0], low, high, n=labels, interval="box of the inputs' intervals")

    passive = [
        floors.passive_floor(error_rate=rate, labels=labels, lipschitz=slope)
        if slope == slope
        else math.nan
        for rate, slope in zip(rates, slopes, strict=True)
    ]
    accuracy = [floors.accuracy_floor(error_rate=rate, labels=labels) for rate in rates]
    # The accuracy floor is largest at an error rate of 1/2, which may lie inside the interval.
    inside = error_rate.low <= 0.5 <= error_rate.high
    half = [floors.accuracy_floor(error_rate=0.5, labels=labels)] if inside else []
    bins, rate, slope = None, error_rate.value, float(slopes[0])
    if rate > 0 and slope == slope:
        bins = floors.optimal_bins(error_rate=rate, labels=labels, lipschitz=slope)
    return VerificationBlock(
        labels,
        error_rate,
        *steep,
        passive_floor=box(passive),
        active_floor=box([floors.active_floor(error_rate=r, labels=labels) for r in rates]),
        accuracy_floor=box(accuracy, *half),
        optimal_bins=bins,
        resolution=resolution,
    )


def _ends(estimate: Estimate) -> Floats:
    return np.array([estimate.value, estimate.low, estimate.high])


def _ece(summed: ResampledCells) -> Floats:
    binned = summed.merged(ECE_BINS)
    gap = np.abs(binned.hits - binned.confidence).sum(axis=1)
    return np.asarray(gap / binned.weight.sum(axis=1), dtype=np.float64)


def _resolution(
    p: Floats,
    w: Floats,
    observed: ResampledCells,
    draws: ResampledCells,
    error_rate: Estimate,
    generator: Stream,
) -> DataResolution:
    """Return the spread of the ECE on this data, and what it were under perfect calibration."""
    labels, value, spread = error_rate.n, float(_ece(observed)[0]), _ece(draws)
    # Resampling adds the noise a second time, so the spread is moved back by twice its bias.
    low, high = quantiles(spread - 2 * (spread.mean() - value), (0.025, 0.975)).tolist()
    if error_rate.value in (0.0, 1.0) or high - low <= ROUNDING:
        # All outcomes or questions alike: resampling sees no spread, the interval of the rate does.
        slack = error_rate.high - error_rate.low
        low, high = value - slack, value + slack
    # Under perfect calibration a bin's errors are nearly Poisson where confidence is near 0 or
    # 1 and nearly normal elsewhere; a centred Poisson law of the same variance serves both.
    cell = cell_of(p) // (CELLS // ECE_BINS)
    sums = np.bincount(cell, weights=w * p * (1 - p), minlength=ECE_BINS)
    variance: Floats = sums * (labels / w.sum())
    # A bin that cannot err draws nothing.
    variance = variance[variance > 0]
    null = np.abs(generator.poisson(variance, (_NULL_DRAWS, variance.size)) - variance)
    if_calibrated = float(quantiles(null.sum(axis=1) / labels, (0.95,))[0])
    ece = Estimate(value, max(0.0, min(low, value)), min(max(high, value), 1.0), n=labels)
    return DataResolution(ece, ECE_BINS, (high - low) / 2, if_calibrated)
