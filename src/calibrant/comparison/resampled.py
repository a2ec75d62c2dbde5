"""One bootstrap for all models and pairs: the same resampled questions everywhere.

Resampling enters as a (questions, resamples) table of counts. Every weighted sum that a view
needs is that table seen through a sparse matrix with one entry per question, so a pair costs a
few passes over the counts, whatever the number of models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

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


def weighted_sums(
    rows: BinnedRows,
    weights: Floats | None,
    resamples: Resamples,
    *,
    subset: npt.NDArray[np.bool_] | None = None,
) -> Sums:
    """Return the sums of one model's rows under row weights, in every resample.

    Parameters
    ----------
    rows
        Bins and residuals, one row per question.
    weights
        Row weights; None counts each row once.
    subset
        Boolean mask of the questions to use; None uses all.
    """
    w = np.ones(rows.residual.size) if weights is None else weights
    if subset is not None:
        w = np.where(subset, w, 0.0)
    size = w.size
    used = np.flatnonzero(w)
    gaps = csr_array(
        ((w * rows.residual)[used].astype(np.float32), (rows.bin[used], used)),
        shape=(rows.bins, size),
    )
    plain = np.vstack([w * rows.square, w])
    binned = (gaps @ resamples.counts).astype(np.float64)
    totals = (plain.astype(np.float32) @ resamples.counts).astype(np.float64)
    # The data column is worked out again in double precision: it is the value that is reported.
    binned[:, 0] = np.bincount(rows.bin, weights=w * rows.residual, minlength=rows.bins)
    totals[:, 0] = plain.sum(axis=1)
    return Sums(binned, totals[0], totals[1])
