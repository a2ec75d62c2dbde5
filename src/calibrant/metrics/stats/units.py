"""Units: what was sampled independently, how far each pulls a statistic, even draws of some."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from scipy.special import logit

from calibrant.core import InputError
from calibrant.core.arrays import Array, Estimate, Floats, Indices, Ints, MaybeArray
from calibrant.metrics.stats import intervals
from calibrant.metrics.stats.intervals import student_quantile


class Units(Struct, frozen=True):
    """Rows and the units they belong to; `codes` is None where every row is its own unit."""

    codes: Indices | None
    count: int
    rows: int

    def sums(self, values: Floats) -> Floats:
        """Return the sum of `values` in each unit."""
        if self.codes is None:
            return values
        return np.bincount(self.codes, values, self.count).astype(np.float64, copy=False)


# A unit that is nearly all there is would be put right without bound.
MOST_SHARE = 0.9
# Weight, in degrees of freedom, of the largest variance that the rows allow: large units may be
# alike by luck and show no spread. By simulation: 0 covers 92 %, 1 covers 99 % (hard_cases).
PRIOR = 0.5
# With more units than this the logit of a value is straight over the step of a single one.
CURVED_UNITS = 100_000


class UnitInfluence(Struct, frozen=True):
    """How far each unit pulls a statistic; the statistic errs by the mean of the pulls.

    Attributes
    ----------
    pull
        Influence of a unit, shape (k,); the mean over all units is 0.
    times
        How many units have each pull, or None where it is one each.
    count
        Number of units.
    effective
        Units of equal weight that would tell as much; None stands for all of them.

    Examples
    --------
    >>> loss = np.array([0.0, 0.0, 0.0, 1.0])
    >>> found = UnitInfluence(loss - loss.mean(), None, 4)
    >>> found.error, round(found.lean, 3)
    (0.25, 0.125)
    """

    pull: Floats
    times: Floats | None
    count: int
    effective: float | None = None

    @property
    def worth(self) -> float:
        """Units whose number decides how well the error itself is known."""
        return float(self.count) if self.effective is None else self.effective

    def _sum(self, values: Floats) -> float:
        return float(values.sum() if self.times is None else self.times @ values)

    @property
    def error(self) -> float:
        """Standard error of the statistic."""
        squares = self._sum(np.square(self.pull))
        return math.sqrt(squares * self.count / max(self.count - 1, 1)) / self.count

    @property
    def lean(self) -> float:
        """Third moment over the second, per unit: above 0 where few units pull far upwards."""
        square = np.square(self.pull)
        second = self._sum(square)
        return self._sum(square * self.pull) / (second * self.count) if second > 0 else 0.0

    def correlation(self, other: UnitInfluence) -> float:
        """Return the correlation with the pulls on another statistic, held back for few units.

        Of a handful it may be near 1 by luck, and would then take the width of an interval away.
        """
        spread = self._sum(np.square(self.pull)) * self._sum(np.square(other.pull))
        if self.count < 3 or spread == 0:
            return 0.0
        return self._sum(self.pull * other.pull) / math.sqrt(spread) * (1 - 2 / self.count)

    def logit_error(self, value: float) -> float:
        """Return the standard error for an interval on the logit scale, in units of the value.

        Each unit is left out in turn, to first order. Where a single one moves the value far, the
        logit bends on the way, which its slope at the value does not know. A step ends before it
        leaves (0, 1).
        """
        if not (0 < value < 1 and 2 <= self.count <= CURVED_UNITS):
            return self.error
        without = value - self.pull / (self.count - 1)
        moved = logit(np.clip(without, value / 10, 1 - (1 - value) / 10))
        centred = moved - self._sum(moved) / self.count
        variance = self._sum(np.square(centred)) * (self.count - 1) / self.count
        return math.sqrt(variance) * value * (1 - value)


def appearance_codes(values: Array) -> tuple[Array, Ints]:
    """Return distinct values in order of first appearance, and the code of each row.

    Examples
    --------
    >>> [part.tolist() for part in appearance_codes(np.array(["b", "a", "b"]))]
    [['b', 'a'], [0, 1, 0]]
    """
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return distinct[order], rank[inverse.reshape(-1)]


def unit_codes(units: MaybeArray, rows: int) -> Units:
    """Return the rows' unit numbers, strings in order of first appearance, integers rising.

    Examples
    --------
    >>> unit_codes(["b", "a", "b"], 3).codes.tolist()
    [0, 1, 0]
    >>> unit_codes([3, 1, 2], 3).codes is None
    True
    """
    if units is None:
        return Units(None, rows, rows)
    values = np.asarray(units)
    if values.shape != (rows,):
        raise InputError(f"units have one value per row, got {values.size} for {rows} rows")
    if values.dtype.kind in "biu":
        distinct, codes = np.unique(values, return_inverse=True)
        count = distinct.size
    else:
        # A dictionary numbers strings several times faster than sorting them.
        table: dict[Any, int] = {}
        numbers = (table.setdefault(value, len(table)) for value in values.tolist())
        codes = np.fromiter(numbers, np.intp, rows)
        count = len(table)
    return Units(None if count == rows else codes.astype(np.intp, copy=False), count, rows)


def freedom(shares: Floats) -> float:
    """Return the degrees of freedom of the cluster-robust variance of a mean.

    Satterthwaite's number for the variance that leaves each unit out in turn, where all rows of a
    unit are alike (the case with the fewest). It is the exact trace formula of Bell and McCaffrey
    for a mean, summed without a matrix.

    Parameters
    ----------
    shares
        Share of each unit in the whole; they sum to 1.

    References
    ----------
    Bell and McCaffrey (2002), 'Bias reduction in standard errors for linear regression with
    multi-stage samples'. Pustejovsky and Tipton (2018), 'Small-sample methods for cluster-robust
    variance estimation and hypothesis testing in fixed effects models'.

    Examples
    --------
    >>> round(freedom(np.full(10, 0.1)), 6)
    9.0
    >>> round(freedom(np.array([200] * 5 + [1] * 300) / 1300), 1)
    4.1
    """
    s = np.minimum(shares, MOST_SHARE)
    a = np.square(s / (1 - s))
    second = float(s @ s)
    trace = float((a * (1 - 2 * s + second)).sum())
    zeroth, first, third = float(a.sum()), float(a @ s), float(a @ np.square(s))
    pairs = second**2 * zeroth**2 + 2 * zeroth * third + 2 * first**2 - 4 * second * zeroth * first
    factor = np.square(1 - 2 * s + second) - np.square(second - 2 * s)
    return max(trace**2 / (pairs + float(np.square(a) @ factor)), 1.0)


def expected_error(rows: Floats, units: Units, weights: Array | None, shares: Floats) -> float:
    """Return the error of a mean if every unit is as far from the others as all units are.

    A few large units may be alike by luck; how far the many small ones lie apart, and how far the
    rows within one, says what is to be expected of them.

    Parameters
    ----------
    rows
        Distance of each row from the mean.
    units, weights, shares
        Unit and weight of each row, and the share of each unit in the whole.

    Examples
    --------
    >>> codes = np.repeat(np.arange(4), 25)
    >>> rows = np.tile([0.5, -0.5], 50)
    >>> alike, shares = np.repeat([0.5, -0.5, 0.5, -0.5], 25), np.full(4, 0.25)
    >>> units = Units(codes, 4, 100)
    >>> round(expected_error(rows, units, None, shares), 3)
    0.051
    >>> expected_error(alike, units, None, shares)
    0.25
    """
    heavy = np.ones(rows.size) if weights is None else weights.astype(np.float64)
    codes = np.arange(rows.size) if units.codes is None else units.codes
    size = np.bincount(codes, minlength=units.count)
    mean = np.bincount(codes, rows, units.count) / size
    several = int(rows.size - units.count)
    remaining = float(np.square(rows - mean[codes]).sum())
    within = remaining / several if several else 0.0
    between = max(float((np.square(mean) - within / size).mean()), 0.0)
    single = float(np.square(heavy / heavy.sum()).sum())
    return math.sqrt(between * float(shares @ shares) + within * single)


def unequal_ratio(
    shares: Floats,
    error: float,
    spread: float,
    level: float,
    effective: float,
    expected: float | None = None,
) -> float:
    """Return by what the error of a mean is multiplied where units are unequal.

    The reach becomes that of Student's law with `freedom` degrees instead of `effective` - 1. It
    never exceeds the one of units whose rows are all alike, the most that the rows allow.

    Parameters
    ----------
    shares
        Share of each unit in the whole.
    error
        Standard error between units, each corrected for its own share.
    spread
        Variance of the rows.
    level, effective
        Level of the interval, and the units that it will be made for (Kish).
    expected
        Error that is to be expected of such units, see `expected_error`; by default the largest.

    Examples
    --------
    >>> shares = np.array([200] * 5 + [1] * 300) / 1300
    >>> round(unequal_ratio(shares, 0.08, 0.2, 0.95, 8.4), 2)
    1.33
    """
    degrees = freedom(shares)
    most = math.sqrt(spread * float(shares @ shares))
    prior = most if expected is None else min(expected, most)
    steadied = math.sqrt((degrees * error**2 + PRIOR * prior**2) / (degrees + PRIOR))
    wider = student_quantile(level, degrees + 1) / student_quantile(level, effective)
    return min(steadied * wider, max(most, error)) / error


def systematic_sample(pi: Floats, order: Indices, rng: np.random.Generator) -> Indices:
    """Walk the items in `order` and take one each time the sum of chances passes a whole number.

    The number of items is the sum of the chances (rounded); each item has its chance `pi`.

    Examples
    --------
    >>> taken = systematic_sample(np.full(10, 0.3), np.arange(10), np.random.default_rng(0))
    >>> len(taken)
    3
    """
    reached = np.cumsum(pi[order])
    count = round(float(reached[-1])) if reached.size else 0
    if count == 0:
        return np.zeros(0, dtype=np.intp)
    reached *= count / reached[-1]
    # Rounding must not push the last step past its whole number.
    reached[-1] = count
    passing = np.floor(reached + 1 - rng.random()).astype(np.intp)
    before = np.concatenate([[0], passing[:-1]])
    return np.asarray(order[passing > before])


def gap_of_means(
    confidence: tuple[float, UnitInfluence], accuracy: tuple[float, UnitInfluence], level: float
) -> Estimate:
    """Return mean confidence minus accuracy from both means and how far each unit pulls them.

    Student's interval of the difference held the truth in 30 to 80 % of data sets with 10 to 50
    rows of which nearly all are right, or nearly all wrong; this one in 93 to 97 %.
    """
    (confidences, pulls), (right, turns) = confidence, accuracy
    value, n = confidences - right, pulls.count
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach = (
        intervals.wald_interval(confidences, pulls.error, level, units=pulls.worth)[1] - confidences
    )
    # As many independent outcomes as would have this error; units where none vary.
    worth = right * (1 - right) / turns.error**2 if turns.error > 0 else turns.worth
    if turns.effective is not None and turns.effective < n:
        worth *= intervals.student_share(level, turns.worth)
    lowest, highest = intervals.wilson_ends(right, max(worth, 1.0), level)
    common = pulls.correlation(turns)
    low = value - intervals.joined_reach(highest - right, reach, common)
    high = value + intervals.joined_reach(right - lowest, reach, common)
    # No two shares differ by more than 1; of two or three rows the sum of the reaches may.
    return Estimate(value, max(low, -1.0), min(high, 1.0), n, level, interval="newcombe")
