"""Paired bootstrap over questions: both estimators see the same resampled questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.stats.binning import width_edges

Scored: TypeAlias = tuple[Floats, Floats]
# Resamples that share one matrix product.
_TOGETHER = 50


@dataclass(frozen=True, slots=True)
class PairedGaps:
    """Sem1 against Sem2 on the same questions.

    `confidence`: mean(c1 - c2). `ece`: Sem1-ECE minus Sem2-ECE. `ece_close`: the same where the
    margin is below 1/sqrt(n), None where no question is that close.
    """

    confidence: Estimate
    ece: Estimate
    ece_close: Estimate | None


def paired_gaps(
    first: Scored,
    second: Scored,
    *,
    close: npt.NDArray[np.bool_],
    bins: int,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> PairedGaps:
    """Return the gaps with percentile intervals from one joint bootstrap over questions."""
    questions = close.size
    columns = [
        (first[0] - second[0])[:, None],
        _residuals(first, bins),
        _residuals(second, bins),
    ]
    columns += [part * close[:, None] for part in columns[1:]]
    columns.append(close[:, None].astype(np.float64))
    table = np.hstack(columns)
    generator = as_generator(rng)
    sums = np.empty((resamples + 1, table.shape[1]))
    sums[0] = table.sum(axis=0)
    for start in range(1, resamples + 1, _TOGETHER):
        stop = min(start + _TOGETHER, resamples + 1)
        rows = generator.integers(0, questions, (stop - start, questions))
        rows += questions * np.arange(stop - start)[:, None]
        counts = np.bincount(rows.ravel(), minlength=questions * (stop - start))
        sums[start:stop] = counts.reshape(stop - start, questions).astype(np.float64) @ table
    return _gaps(sums, questions, int(close.sum()), bins, level)


def _residuals(scored: Scored, bins: int) -> Floats:
    """(questions, bins): outcome minus confidence in the column of the question's bin."""
    confidence, outcome = scored
    place = np.searchsorted(width_edges(bins)[1:-1], confidence, side="right")
    table = np.zeros((confidence.size, bins))
    table[np.arange(confidence.size), place] = outcome - confidence
    return table


def _gaps(sums: Floats, questions: int, close: int, bins: int, level: float) -> PairedGaps:
    edges = np.cumsum([1, bins, bins, bins, bins])
    mean, first, second, first_close, second_close, size = np.split(sums, edges, axis=1)
    ece_gap = np.abs(first).sum(axis=1) - np.abs(second).sum(axis=1)
    close_gap = np.abs(first_close).sum(axis=1) - np.abs(second_close).sum(axis=1)
    held = size[:, 0] > 0
    near = None
    if close:
        near = _percentile(close_gap[held] / size[held, 0], close, level)
    return PairedGaps(
        confidence=_percentile(mean[:, 0] / questions, questions, level),
        ece=_percentile(ece_gap / questions, questions, level),
        ece_close=near,
    )


def _percentile(values: Floats, n: int, level: float) -> Estimate:
    low, high = np.quantile(values[1:], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        float(values[0]), float(low), float(high), n, level, interval="bootstrap-percentile"
    )
