"""Answers summed in cells of confidence, and what other samples of them would have shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats, Indices
from calibrant.stats.binning import width_index
from calibrant.stats.common_draws import CommonDraws, Stream

# 60 cells nest in the 20 and 10 bins of the slope estimate and in the 15 bins of the ECE, so
# that one resampling serves all of them.
CELLS = 60
ECE_BINS = 15


@dataclass(frozen=True, slots=True)
class Cells:
    """Weighted sums per cell, axis 0 over resamples: weight, right answers, confidence."""

    weight: Floats
    hits: Floats
    confidence: Floats

    def merged(self, bins: int) -> Cells:
        """Return the sums over `bins` bins of equal width."""
        width = CELLS // bins

        def summed(values: Floats) -> Floats:
            # Column by column: a sum over three or four neighbours at a time is ten times slower.
            return np.asarray(sum(values[:, place::width] for place in range(width)))

        return Cells(summed(self.weight), summed(self.hits), summed(self.confidence))


def cell_of(p: Floats) -> NDArray[np.intp]:
    """Return the cell of every confidence, by the one rule of edges that all metrics share."""
    cell = np.empty(p.size, np.intp)
    width_index(CELLS)(p, cell, np.empty(p.size))
    return np.minimum(cell, CELLS - 1)


def observed_cells(p: Floats, y: Floats, w: Floats) -> Cells:
    """Return the sums of the answers themselves."""
    cell = cell_of(p)
    sums = [np.bincount(cell, weights=v, minlength=CELLS)[None] for v in (w, w * y, w * p)]
    return Cells(*(np.asarray(values, dtype=np.float64) for values in sums))


def resample_cells(
    observed: Cells, n: int, resamples: int, generator: np.random.Generator
) -> Cells:
    """Resample (cell, outcome) counts: exact for the counts, cell means held fixed."""
    weight, hits = observed.weight[0], observed.hits[0]
    share = np.concatenate([hits, weight - hits]) / n
    draws = _multinomial(n, share / share.sum(), resamples, generator)
    count = draws[:, :CELLS] + draws[:, CELLS:]
    mean = np.divide(observed.confidence[0], weight, out=np.zeros(CELLS), where=weight > 0)
    return Cells(count, draws[:, :CELLS], count * mean)


def _multinomial(n: int, share: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return multinomial numbers; kinds that cannot be drawn cost nothing and change nothing."""
    kinds = np.flatnonzero(share)
    if kinds[-1] + 1 < share.size:
        # The last kind takes the rest without a draw: the last of all stays the last.
        kinds = np.append(kinds, share.size - 1)
    out = np.zeros((draws, share.size))
    out[:, kinds] = generator.multinomial(n, share[kinds], size=draws)
    return out


def resample_rows(
    p: Floats,
    y: Floats,
    w: Floats,
    u: Indices | None,
    resamples: int,
    generator: Stream,
) -> Cells:
    """Resample whole units, with their weights; cell means of confidence held fixed."""
    index = np.arange(p.size) if u is None else u
    size, cell = int(index.max()) + 1, cell_of(p)
    means = observed_cells(p, y, w)
    mean = np.divide(
        means.confidence[0], means.weight[0], out=np.zeros(CELLS), where=means.weight[0] > 0
    )
    weight, hits = np.empty((resamples, CELLS)), np.empty((resamples, CELLS))
    if isinstance(generator, CommonDraws):
        drawn = iter(generator.resampled(size, resamples))
    else:
        own = generator
        drawn = (own.integers(0, size, size=size) for _ in range(resamples))
    for draw, rows in enumerate(drawn):
        times = np.bincount(rows, minlength=size)[index] * w
        weight[draw] = np.bincount(cell, weights=times, minlength=CELLS)
        hits[draw] = np.bincount(cell, weights=times * y, minlength=CELLS)
    return Cells(weight, hits, weight * mean)
