"""Answers summed in cells of confidence: resampled, their steepness, those of few rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from scipy.special import ndtri

from calibrant.core.arrays import Estimate, Floats, Indices, Mask, Stream
from calibrant.findings.documents.entries import Part
from calibrant.metrics.stats.binning import width_index
from calibrant.metrics.stats.bootstrap import quantiles
from calibrant.metrics.stats.floors import (
    LIPSCHITZ_CAP,
    MINIMUM_PER_BIN,
    gap_slopes,
    summarise_slopes,
)

# 60 cells nest in the 20 and 10 bins of the slope estimate and in the 15 bins of the ECE, so
# that one resampling serves all of them.
CELLS = 60
ECE_BINS = 15


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


class Steepness(NamedTuple):
    """The estimate, the one of every binning, and why it cannot be estimated, or None."""

    estimate: Estimate
    resolutions: list[SlopeEntry]
    note: str | None


def steepness(observed: ResampledCells, draws: ResampledCells, labels: int) -> Steepness:
    """Return the steepness of the gap, from what was observed and resamples of it."""
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
    return Steepness(choice.estimate, entries, _slope_note(choice))


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


NULL_DRAWS = 400
