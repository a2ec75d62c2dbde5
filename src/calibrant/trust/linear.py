"""Linear fits: what a confidence alone says, projections, and a ridge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.stored import Stored
from calibrant.metrics.stats.logistic import intercept_free

_ATOM_ROWS = 30
_ATOM_SHARE = 0.01
_MOST_KNOTS = 20
# Ranks come from this many quantiles, so that a stored basis is small and exact.
_QUANTILES = 257
_RIDGE = 1e-8


@dataclass
class ConfidenceBasis(Stored):
    """Columns that describe any smooth or jumpy dependence on a confidence.

    An intercept, one indicator per frequent value (an atom: at least 30 rows and 1 % of them) and
    a linear spline in the rank of the other values. No label enters it.

    Examples
    --------
    >>> basis = ConfidenceBasis().fit(np.repeat([0.5, 0.9], 100))
    >>> basis.transform(np.array([0.5, 0.9])).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """

    atoms: Floats = field(default_factory=lambda: np.empty(0))
    quantiles: Floats = field(default_factory=lambda: np.empty(0))
    knots: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def all_atoms(self) -> bool:
        """Whether there is nothing beside the atoms."""
        return not len(self.quantiles)

    def fit(self, confidence: Floats, *, knots: int | None = None) -> ConfidenceBasis:
        """Learn atoms and ranks from the confidences; `knots` overrides n^(1/3), at most 20."""
        values, counts = np.unique(confidence, return_counts=True)
        self.atoms = values[counts >= max(_ATOM_ROWS, _ATOM_SHARE * len(confidence))]
        peers = confidence[~np.isin(confidence, self.atoms)]
        self.quantiles = self.knots = np.empty(0)
        if len(peers) < _ATOM_ROWS:
            return self
        grid = np.linspace(0, 1, _QUANTILES)
        self.quantiles = np.quantile(peers, grid)
        count = min(_MOST_KNOTS, max(2, round(len(peers) ** (1 / 3)))) if knots is None else knots
        self.knots = np.linspace(0, 1, count + 1)[1:-1]
        return self

    def transform(self, confidence: Floats) -> Floats:
        """Return one row of columns per confidence; the first column is 1."""
        f = np.asarray(confidence, dtype=np.float64)
        # With nothing but atoms the last indicator follows from the intercept.
        atoms = self.atoms[:-1] if self.all_atoms else self.atoms
        columns = [np.ones(len(f)), *((f == atom).astype(np.float64) for atom in atoms)]
        if not self.all_atoms:
            rank = np.interp(f, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
            companion = ~np.isin(f, self.atoms)
            columns += [np.where(companion, rank, 0.0)]
            columns += [np.where(companion, np.maximum(rank - knot, 0), 0.0) for knot in self.knots]
        return np.column_stack(columns)


def directions(rows: Floats) -> Floats:
    """Return rows of length 1: their products are cosines."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def projector(columns: Floats) -> Floats:
    """Return an orthonormal basis of the span of `columns`; dependent ones are left out.

    Examples
    --------
    >>> projector(np.array([[1.0, 1.0], [1.0, 1.0]])).shape
    (2, 1)
    """
    # Through the small Gram matrix: far cheaper than a decomposition of the rows.
    scale = np.sqrt((columns**2).sum(axis=0))
    scaled = columns / np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    mask = values > 1e-9 * values.max()
    return np.asarray(scaled @ (vectors[:, mask] / np.sqrt(values[mask])))


def project(basis: Floats, values: Floats) -> Floats:
    """Return the part of `values` that an orthonormal basis explains."""
    return np.asarray(basis @ (basis.T @ values))


def least_squares(columns: Floats, target: Floats) -> Floats:
    """Return coefficients that are defined for dependent columns too."""
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] += _RIDGE * len(columns)
    return np.asarray(np.linalg.solve(gram, columns.T @ target), dtype=np.float64)


def ridge_linear(design: Floats, targets: Floats, ridge: float) -> Floats:
    """Return the coefficients of a linear regression, one column per column of `targets`.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> ridge_linear(x, np.array([[1.0], [3.0], [5.0], [7.0]]), 1e-9).round(3).ravel().tolist()
    [1.0, 2.0]
    """
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += intercept_free(design, ridge)
    return np.asarray(np.linalg.solve(gram, design.T @ targets), dtype=np.float64)
