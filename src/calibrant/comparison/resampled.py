"""One bootstrap for all models and pairs: the same resampled questions everywhere.

Resampling enters as a (questions, resamples) table of counts. Every weighted sum that a view
needs is a row of one matrix product with that table, so a pair costs one product, whatever the
number of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.comparison.views import BinnedRows
from calibrant.core.rng import RngLike, as_generator

__all__ = ["Resamples", "Sums", "resample_counts", "weighted_sums"]

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Resamples:
    """(questions, 1 + resamples) counts; column 0 is the data itself."""

    counts: npt.NDArray[np.float32]

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.shape[0])

    def total(self, weights: Floats) -> Floats:
        """Return sum_i w_i in the data and in every resample."""
        return weights @ self.counts.astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted sums in the data and in every resample.

    `gaps` is (bins, 1 + resamples): the sum of w (c - z) per bin; `square` the sum of
    w (c - z)^2; `weight` the sum of w.
    """

    gaps: Floats
    square: Floats
    weight: Floats

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.gaps + other.gaps, self.square + other.square, self.weight + other.weight)

    def scaled(self, factor: Floats) -> Sums:
        """Return the sums with all weights multiplied, by one factor per resample."""
        return Sums(self.gaps * factor, self.square * factor, self.weight * factor)

    def scores(self) -> tuple[Floats, Floats]:
        """Return Brier and ECE in the data (entry 0) and in every resample; NaN without rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.square / self.weight, np.abs(self.gaps).sum(axis=0) / self.weight


def resample_counts(questions: int, resamples: int, rng: RngLike) -> Resamples:
    """Draw multinomial counts for every resample; column 0 counts every question once."""
    generator = as_generator(rng)
    counts = np.empty((questions, resamples + 1), dtype=np.float32)
    counts[:, 0] = 1
    for draw in range(1, resamples + 1):
        rows = generator.integers(0, questions, questions)
        counts[:, draw] = np.bincount(rows, minlength=questions)
    return Resamples(counts)


def weighted_sums(parts: Sequence[tuple[BinnedRows, Floats]], resamples: Resamples) -> list[Sums]:
    """Return the sums of several sets of weighted rows in every resample, in one product.

    Parameters
    ----------
    parts
        Rows (one per question) and their weights; a weight of 0 leaves a question out.
    resamples
        The resampled questions.
    """
    size = resamples.questions
    lines = parts[0][0].bins + 2
    table = np.zeros((len(parts), lines, size), dtype=np.float32)
    column = np.arange(size)
    for block, (rows, weights) in zip(table, parts, strict=True):
        block[rows.bin, column] = weights * rows.residual
        block[-2] = weights * rows.square
        block[-1] = weights
    product = (table.reshape(-1, size) @ resamples.counts).astype(np.float64)
    return [
        _with_exact_data(sums, rows, weights)
        for sums, (rows, weights) in zip(product.reshape(len(parts), lines, -1), parts, strict=True)
    ]


def _with_exact_data(sums: Floats, rows: BinnedRows, weights: Floats) -> Sums:
    """Work the data column out again in double precision: it is the value that is reported."""
    sums[:-2, 0] = np.bincount(rows.bin, weights=weights * rows.residual, minlength=rows.bins)
    sums[-2, 0] = weights @ rows.square
    sums[-1, 0] = weights.sum()
    return Sums(sums[:-2], sums[-2], sums[-1])
