"""What a confidence alone says, and whether rows of nearly the same one know more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Floats, Indices, Ints, Mask, named_stream
from calibrant.core.document import Stored

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


def least_squares(columns: Floats, target: Floats, penalty: Floats | None = None) -> Floats:
    """Return coefficients that are defined for dependent columns too.

    Parameters
    ----------
    columns, target
        One row per answer; several targets are columns, and have a column of coefficients each.
    penalty
        Of each coefficient's square; by default next to none.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> least_squares(x, np.array([[1.0], [3.0], [5.0], [7.0]])).round(3).ravel().tolist()
    [1.0, 2.0]
    """
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] += _RIDGE * len(columns) if penalty is None else penalty
    return np.asarray(np.linalg.solve(gram, columns.T @ target), dtype=np.float64)


# With cells of 30 rows ten jumps of 40 points were called a loss in 7 % of 200 tables, of 20 in 3.
_CELL_ROWS = 20
# Of a group or direction at least this share must be left within the cells.
_LEAST_LEFT = 0.05
_LEVEL = 0.05


class WithinCells(Struct, frozen=True):
    """A direction against the outcomes, both cleared of all that a confidence can say.

    Parameters
    ----------
    left
        Share of the direction's variance that the confidence leaves.
    theta, error
        Mean product of direction and outcome, and its standard error.
    size
        Mean square of the direction that is left.
    """

    left: float
    theta: float
    error: float
    size: float

    @property
    def is_stretch(self) -> bool:
        """Whether the direction is a stretch of the confidence: nothing beyond can be tested."""
        return self.left <= _LEAST_LEFT

    @property
    def shows(self) -> bool:
        """Whether something is shown beyond the confidence, in either direction."""
        reach = -float(ndtri(_LEVEL / 2)) * self.error
        return not self.is_stretch and abs(self.theta) > reach

    @property
    def p_value(self) -> float:
        """One-sided p-value of no agreement of direction and outcome."""
        return 1.0 if self.is_stretch or not self.error else float(ndtr(-self.theta / self.error))

    @property
    def two_sided(self) -> float:
        """Two-sided p-value; 1 for a stretch, of which nothing can be tested."""
        p = self.p_value
        return 1.0 if self.is_stretch else 2 * min(p, 1 - p)

    @property
    def value(self) -> float:
        """The part of the outcomes' variance that the direction explains."""
        if self.is_stretch:
            return 0.0
        return (self.theta * abs(self.theta) - self.error**2) / self.size

    def at_least(self, level: float) -> float:
        """Return the lower bound of that part."""
        if self.is_stretch:
            return 0.0
        return max(0.0, self.theta - float(ndtri(level)) * self.error) ** 2 / self.size


class ConfidenceCells:
    """Rows by nearly equal confidence: frequent values alone, the others in runs of 20.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> stated, law = rng.random(4000), rng.random(4000) < 0.5
    >>> right = (rng.random(4000) < stated - 0.2 * (law | (stated > 0.7))) * 1.0
    >>> cells = ConfidenceCells(stated)
    >>> cells.within(law, right).shows, cells.within(stated > 0.7, right).is_stretch
    (True, True)
    """

    def __init__(self, confidence: Floats) -> None:
        values, place, count = np.unique(confidence, return_inverse=True, return_counts=True)
        cell = place.astype(np.intp)
        rare = np.flatnonzero(count[place] < _CELL_ROWS)
        # Rows of one value are dealt to cells by chance, not by their order in the table.
        rng = named_stream(0, "cells of confidence")
        rare = rare[np.lexsort((rng.random(len(rare)), confidence[rare]))]
        runs = max(1, len(rare) // _CELL_ROWS)
        cell[rare] = len(values) + np.arange(len(rare)) * runs // max(len(rare), 1)
        self._cell: Indices = np.unique(cell, return_inverse=True)[1]
        self._rows = np.bincount(self._cell).astype(np.float64)
        self._place = self._centred(confidence)
        self._spread = np.bincount(self._cell, self._place**2)
        self._sloped = self._spread > 1e-12

    def _centred(self, values: Floats) -> Floats:
        return np.asarray(values - (np.bincount(self._cell, values) / self._rows)[self._cell])

    def cleared(self, values: Floats) -> Floats:
        """Return values less the mean and the line in the confidence of their cell."""
        remainder = self._centred(values)
        product = np.bincount(self._cell, self._place * remainder)
        slope = np.divide(product, self._spread, out=np.zeros_like(product), where=self._sloped)
        return np.asarray(remainder - slope[self._cell] * self._place)

    def within(
        self, direction: Floats | Mask, correct: Floats, units: Ints | None = None
    ) -> WithinCells:
        """Return what a direction (a group, a prediction) says of the outcomes within the cells."""
        direction = direction.astype(np.float64)
        g, e, n = self.cleared(direction), self.cleared(correct), len(correct)
        size, whole = float((g**2).mean()), float(direction.var())
        remaining = size / whole if whole > 0 else 0.0
        degrees = np.maximum(self._rows - 1 - self._sloped, 1)
        product = g * e * np.sqrt(self._rows / degrees)[self._cell]
        sums = product if units is None else np.bincount(units, product)
        return WithinCells(
            remaining, float((g * e).mean()), math.sqrt(float(sums @ sums)) / n, size
        )
