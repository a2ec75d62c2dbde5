"""Rows that share something (a topic, a question): tests between clusters, not between rows."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from scipy.special import stdtr

from calibrant.core.arrays import Floats, Indices

# Fewer clusters say nothing about others like them.
FEWEST = 6
# Up to so many clusters all signs are tried; up to so many more, drawn signs; beyond, normal ones.
_ALL_SIGNS, _DRAWN_SIGNS = 10, 200
_DRAWS = 999
_SEED = 38
# From so many clusters on, how cells move together is known well enough to be used.
_MANY = 30
# Gaps of cells count where they are so many times as rare as the mean gap.
_CELLS = 4


class ClusterSums(Struct, frozen=True, dict=True):
    """Sums of confidence minus outcome by cluster and cell.

    Parameters
    ----------
    sums
        Weighted sums, a sparse matrix, one row per cluster and one column per cell.
    left
        The same of what is left when the gap of its cell is taken off each row.
    weight
        Weight of each cluster.
    cells
        Weight of each cell.
    """

    sums: Any
    left: Any
    weight: Floats
    cells: Floats

    @classmethod
    def of(
        cls, codes: Indices, cell: Indices, excess: Floats, gap: Floats, weights: Floats | None
    ) -> ClusterSums:
        """Sum rows; `excess` is confidence minus outcome, `gap` its mean by cell."""
        # Loaded here: most rows are independent.
        from scipy import sparse

        heavy = np.ones(excess.size) if weights is None else weights
        shape = (int(codes.max()) + 1, gap.size)
        plain, left = (
            sparse.csr_matrix((heavy * part, (codes, cell)), shape)
            for part in (excess, excess - gap[cell])
        )
        weight = np.bincount(codes, heavy, shape[0]).astype(np.float64)
        return cls(plain, left, weight, np.bincount(cell, heavy, gap.size).astype(np.float64))

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.weight.size)

    @cached_property
    def totals(self) -> Floats:
        """Sum of each cluster."""
        return np.asarray(self.sums.sum(axis=1), np.float64).ravel()

    @cached_property
    def _student(self) -> tuple[float, float, float]:
        """Mean, its standard error between clusters (CR2), Satterthwaite's degrees of freedom."""
        m, count = self.weight, self.count
        n = float(m.sum())
        mean = float(self.totals.sum()) / n
        share = np.minimum(m / n, 0.99)
        pulls = (self.totals - mean * m) / np.sqrt(1 - share)
        error = math.sqrt(float(pulls @ pulls)) / n
        # Shared effects make large clusters count for more: the smaller of both is taken.
        rows = _freedom(m, np.zeros(count), -1 / n, m, share)
        shared = _freedom(m**2, -(m**2) / n, float(m @ m) / n**2, m, share)
        return mean, error, max(min(rows, shared, count - 1.0), 1.0)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the mean."""
        return self._student[2]

    @property
    def error(self) -> float:
        """Standard error of the mean between clusters."""
        return self._student[1]

    @cached_property
    def gap_p_value(self) -> float:
        """P-value of 'the mean gap is 0': the larger of Student's and that of flipped signs."""
        mean, error, degrees = self._student
        if self.count < 2 or error == 0:
            return 1.0
        student = 2 * float(stdtr(degrees, -abs(mean) / error))
        observed = abs(float(self.totals.sum()))
        draws = _signed(self.totals[:, None], self.count)
        return max(student, float((np.abs(draws[:, 0]) >= observed - 1e-9).mean()))

    @cached_property
    def calibration_p_value(self) -> float:
        """P-value of 'neither the mean nor any cell has a gap': signs of whole clusters flipped.

        The same flips tell how rare the mean gap is, and how rare gaps of cells of any sign. Both
        lean on the same few clusters, so the rarer of both, ranked among the flips, costs hardly
        any power: of 20 clusters of 25 rows, over by 8, it is shown in 78 % of tables, where the
        mean of both p-values showed it in 74 % and Student's test of the mean gap alone in 78 %.
        """
        draws = _signed(self.sums, self.count)
        mean, cells = np.abs(draws.sum(axis=1)), np.abs(draws).sum(axis=1)
        rarer = np.minimum(_share_above(mean), _CELLS * _share_above(cells))
        return float((rarer <= rarer[0] + 1e-12).mean())

    @cached_property
    def _between(self) -> Floats:
        """Covariance of the gaps of the cells, from what is left in each cluster."""
        scale = self.count / max(self.count - 1, 1)
        return np.asarray((self.left.T @ self.left).todense()) * scale

    @property
    def errors(self) -> Floats:
        """Standard errors of the gaps between clusters."""
        return np.asarray(np.sqrt(np.diag(self._between)) / self.cells)

    def variance(self, share: Floats, stray: Floats) -> float:
        """Return the variance of the error: how far cells move together, at most as one."""
        as_one = float(share @ stray) ** 2
        if self.count < _MANY:
            return as_one
        per_cell = share / self.cells
        moved = np.abs(self._between) * np.outer(per_cell, per_cell)
        np.fill_diagonal(moved, (share * stray) ** 2)
        return min(as_one, float(moved.sum()))


def _freedom(own: Floats, mixed: Floats, factor: float, m: Floats, share: Floats) -> float:
    """Return Satterthwaite's degrees of freedom, without forming the matrix of all clusters.

    The matrix is diag(own) + mixed m' + m mixed' + factor m m', scaled by 1 / sqrt(1 - share) on
    both sides; the degrees are its squared trace over the sum of its squares.
    """
    scale = 1 / np.sqrt(1 - share)
    d, a, b = own * scale**2, mixed * scale, m * scale
    products = ((a, b), (b, a), (factor * b, b))
    trace = float(d.sum()) + sum(float(left @ right) for left, right in products)
    norm = float(d @ d) + sum(2 * float((d * left) @ right) for left, right in products)
    norm += sum(
        float(left @ peer) * float(right @ last)
        for left, right in products
        for peer, last in products
    )
    return trace**2 / norm if norm > 0 else 1.0


def _signed(sums: Any, count: int) -> Floats:
    """Return sums over clusters with signs flipped, one row per draw; the first is as it was."""
    rng = np.random.default_rng(_SEED)
    if count <= _ALL_SIGNS:
        signs = 1.0 - ((np.arange(2**count)[:, None] >> np.arange(count)) & 1) * 2
    elif count <= _DRAWN_SIGNS:
        signs = np.vstack([np.ones(count), rng.choice([-1.0, 1.0], (_DRAWS, count))])
    else:
        return _normal_signs(sums, rng)
    return np.asarray(signs @ sums)


def _share_above(sizes: Floats) -> Floats:
    """Return for each draw the share of draws that are at least as large."""
    below = np.searchsorted(np.sort(sizes), sizes - 1e-9)
    return np.asarray(1.0 - below / sizes.size)


def _normal_signs(sums: Any, rng: np.random.Generator) -> Floats:
    """Return draws of the normal law that sums over very many flipped clusters have."""
    moved = sums.T @ sums
    covariance = np.asarray(moved.todense() if hasattr(moved, "todense") else moved)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    observed = np.asarray(sums.sum(axis=0)).reshape(1, -1)
    return np.vstack([observed, rng.standard_normal((_DRAWS, values.size)) @ root.T])


def two_way_p_value(excess: Floats, first: Indices, second: Indices) -> float:
    """Return the p-value of 'the mean is 0' where rows hang together in two ways at once.

    The variance is that of both groupings less that of what they share, and at least the larger
    of both; degrees of freedom are those of the fewer groups.

    Parameters
    ----------
    excess
        Confidence minus outcome of each row.
    first, second
        Group of each row, from 0 on.

    References
    ----------
    Cameron, Gelbach and Miller (2011), 'Robust inference with multiway clustering'.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.integers(0, 15, (2, 1_000))
    >>> excess = rng.normal(0, 0.4, 1_000) + rng.normal(0, 0.1, 15)[first]
    >>> two_way_p_value(excess, first, second) > 0.05
    True
    """
    mean = float(excess.mean())
    residual = excess - mean
    pair = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1]

    def variance(codes: Indices) -> tuple[float, int]:
        sums = np.bincount(codes, residual)[np.bincount(codes) > 0]
        scale = sums.size / max(sums.size - 1, 1)
        return float(sums @ sums) * scale / excess.size**2, int(sums.size)

    (one, groups), (peer, peers), (shared, _) = map(variance, (first, second, pair))
    square = max(one + peer - shared, one, peer)
    if square <= 0:
        return 1.0
    degrees = max(min(groups, peers) - 1, 1)
    return 2 * float(stdtr(degrees, -abs(mean) / math.sqrt(square)))
