"""One bootstrap for all models and pairs: the same resampled questions everywhere.

Resampling enters as a (questions, resamples) table of counts. Every weighted sum that a view
needs is a row of a matrix product with that table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats, Indices
from calibrant.core.rng import RngLike, as_generator


@dataclass(frozen=True, slots=True)
class Resamples:
    """(questions, 1 + resamples) counts; column 0 is the data itself."""

    counts: npt.NDArray[np.float32]

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.shape[0])

    def totals(self, weights: Floats) -> Floats:
        """Return the sums over questions of every row of weights, (rows, questions).

        Resamples are summed in single precision; the data itself, whose value is reported, in
        double precision.
        """
        sums = (weights.astype(np.float32) @ self.counts).astype(np.float64)
        sums[:, 0] = weights.sum(axis=1)
        return sums


def resample_counts(
    questions: int, resamples: int, rng: RngLike, cluster: Indices | None = None
) -> Resamples:
    """Draw multinomial counts for every resample; column 0 counts every question once.

    Questions of one cluster are drawn together.
    """
    generator = as_generator(rng)
    units = questions if cluster is None else int(cluster.max()) + 1
    counts = np.empty((questions, resamples + 1), dtype=np.float32)
    counts[:, 0] = 1
    for draw in range(1, resamples + 1):
        times = np.bincount(generator.integers(0, units, units), minlength=units)
        counts[:, draw] = times if cluster is None else times[cluster]
    return Resamples(counts)
