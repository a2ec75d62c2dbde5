"""What models with few rows resolve, many of them at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats
from calibrant.planning.cells import CELLS, ECE_BINS, cell_of
from calibrant.stats.bootstrap import quantiles
from calibrant.stats.common_draws import CommonDraws

NULL_DRAWS = 400
# Models worked on together.
TOGETHER = 64


class Spread(NamedTuple):
    """The ECE, its interval, and what perfect calibration would show in at most 5 % of samples."""

    ece: float
    low: float
    high: float
    if_calibrated: float


def spreads_of_few(
    confidence: Floats, correct: Floats, resamples: int, stream: CommonDraws
) -> list[Spread]:
    """Return what each model resolves; none changes what another one gets.

    Parameters
    ----------
    confidence, correct
        Of models with equally many rows, a row of the table each.
    resamples
        Resamples of its rows.
    stream
        The draws that they share.
    """
    found: list[Spread] = []
    for start in range(0, len(confidence), TOGETHER):
        some = slice(start, start + TOGETHER)
        found += _spreads(confidence[some], correct[some], resamples, stream)
    return found


def _spreads(p: Floats, y: Floats, resamples: int, stream: CommonDraws) -> list[Spread]:
    models, rows = p.shape
    cell = cell_of(p.ravel()).reshape(p.shape)
    bins = cell // (CELLS // ECE_BINS)
    own = np.arange(models)[:, None]

    def summed(place: NDArray[np.intp], size: int, values: Floats) -> Floats:
        found = np.bincount((place + size * own).ravel(), values.ravel(), models * size)
        return np.asarray(found.reshape(models, size))

    means = summed(cell, CELLS, p) / np.maximum(summed(cell, CELLS, np.ones_like(p)), 1.0)
    value = np.abs(summed(bins, ECE_BINS, y - p)).sum(axis=1) / rows
    # Rows in the order of their cells, right ones first: resamples count kinds, not rows.
    order = np.argsort(cell + CELLS * (y == 0), axis=1, kind="stable")
    residual = np.zeros((models, rows, ECE_BINS))
    away = np.take_along_axis(y - means[own, cell], order, axis=1)
    residual[own, np.arange(rows), np.take_along_axis(bins, order, axis=1)] = away
    shown = np.abs(_times(stream, rows, resamples) @ residual).sum(axis=-1) / rows
    # Resampling adds the noise a second time, so the spread is moved back by twice its bias.
    moved = shown - 2 * (shown.mean(axis=1) - value)[:, None]
    low, high = quantiles(moved, (0.025, 0.975), axis=1)
    null = _null_errors(summed(bins, ECE_BINS, p * (1 - p)), stream) / rows
    (if_calibrated,) = quantiles(null, (0.95,), axis=1)
    columns = (value, low, high, if_calibrated)
    return list(map(Spread, *(column.tolist() for column in columns)))


@lru_cache(maxsize=32)
def _times(stream: CommonDraws, rows: int, resamples: int) -> Floats:
    """Return how often each resample holds each row."""
    place = stream.resampled(rows, resamples) + rows * np.arange(resamples)[:, None]
    found = np.bincount(place.ravel(), minlength=resamples * rows)
    return found.reshape(resamples, rows).astype(np.float64)


def _null_errors(variance: Floats, stream: CommonDraws) -> Floats:
    """Return sums of errors under perfect calibration, by model and draw.

    A bin that cannot err draws nothing, so that bins are counted without it.
    """
    errors = np.zeros((len(variance), NULL_DRAWS))
    counts = (variance > 0).sum(axis=1)
    for count in set(counts.tolist()) - {0}:
        some = np.flatnonzero(counts == count)
        held = variance[some]
        held = held[held > 0].reshape(-1, count)
        drawn = stream.poisson(held, (NULL_DRAWS, count))
        errors[some] = np.abs(drawn - held[:, None]).sum(axis=-1)
    return errors
