"""B(f): what can be said from the confidence alone, as a small set of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.core.arrays import Floats

_ATOM_ROWS = 30
_ATOM_SHARE = 0.01
_MOST_KNOTS = 20
# Ranks come from this many quantiles, so that a stored basis is small and exact.
_QUANTILES = 257


class ConfidenceBasis:
    """Columns that describe any smooth or jumpy dependence on a confidence.

    An intercept, one indicator per frequent value (an atom: at least 30 rows and 1 % of them) and
    a linear spline in the rank of the other values. No label enters it.

    Examples
    --------
    >>> basis = ConfidenceBasis().fit(np.repeat([0.5, 0.9], 100))
    >>> basis.transform(np.array([0.5, 0.9])).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """

    atoms_: Floats
    quantiles_: Floats
    knots_: Floats
    all_atoms_: bool

    def fit(self, confidence: Floats, *, knots: int | None = None) -> ConfidenceBasis:
        """Learn atoms and ranks from the confidences; `knots` overrides n^(1/3), at most 20."""
        values, counts = np.unique(confidence, return_counts=True)
        self.atoms_ = values[counts >= max(_ATOM_ROWS, _ATOM_SHARE * len(confidence))]
        others = confidence[~np.isin(confidence, self.atoms_)]
        self.all_atoms_ = len(others) < _ATOM_ROWS
        if self.all_atoms_:
            self.quantiles_ = self.knots_ = np.empty(0)
            return self
        grid = np.linspace(0, 1, _QUANTILES)
        self.quantiles_ = np.quantile(others, grid)
        count = min(_MOST_KNOTS, max(2, round(len(others) ** (1 / 3)))) if knots is None else knots
        self.knots_ = np.linspace(0, 1, count + 1)[1:-1]
        return self

    def transform(self, confidence: Floats) -> Floats:
        """Return one row of columns per confidence; the first column is 1."""
        f = np.asarray(confidence, dtype=np.float64)
        # With nothing but atoms the last indicator follows from the intercept.
        atoms = self.atoms_[:-1] if self.all_atoms_ else self.atoms_
        columns = [np.ones(len(f)), *((f == atom).astype(np.float64) for atom in atoms)]
        if not self.all_atoms_:
            rank = np.interp(f, self.quantiles_, np.linspace(0, 1, len(self.quantiles_)))
            beside = ~np.isin(f, self.atoms_)
            columns += [np.where(beside, rank, 0.0)]
            columns += [np.where(beside, np.maximum(rank - knot, 0), 0.0) for knot in self.knots_]
        return np.column_stack(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "atoms": self.atoms_.tolist(),
            "quantiles": self.quantiles_.tolist(),
            "knots": self.knots_.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ConfidenceBasis:
        """Return the basis that `to_dict` described."""
        basis = cls()
        for name in ("atoms", "quantiles", "knots"):
            setattr(basis, f"{name}_", np.asarray(data[name], dtype=np.float64))
        basis.all_atoms_ = len(basis.quantiles_) == 0
        return basis


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
    kept = values > 1e-9 * values.max()
    basis: Floats = scaled @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis


def project(basis: Floats, values: Floats) -> Floats:
    """Return the part of `values` that an orthonormal basis explains."""
    explained: Floats = basis @ (basis.T @ values)
    return explained
