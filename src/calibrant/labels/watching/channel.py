"""Channels of the monitor: sums per day, and how likely a change since each earlier day is."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.document import Stored

# Starts of a change that are looked back to, in batches.
WINDOW = 250
# Size of a change that the detector is tuned to; others are found as well, a little later.
_CHANGE = 0.07
# Information a stretch needs before a normal law describes its mean.
_LEAST_INFORMATION = 5.0
_MOST_LOG = 50.0

# What puts nine tenths of the prior on drops: they are what a watch is kept for.
_DROPS = 0.9
# Columns of a day's sums; the means of confidence, its square and groups follow, then residuals
# by group.
(ROWS, REST, SQUARE, CROSS, UNITS) = range(5)
MEANS = 5
DaySums: TypeAlias = Floats
# Columns of sums in turned axes: rows and residuals as above, the square of the terms, the terms.
_SQUARED, _TURNED = 2, 3
# Rows that a range of confidences needs in the baseline to be watched.
LEAST_RANGE = 20


def terms_of(p: Floats, member: Mask) -> Floats:
    """Return the terms of a baseline's curve: p, p^2, and 0 or 1 per group but the first."""
    return np.column_stack([p, p * p, member[:, 1:]])


def fitted_curve(terms: Floats, y: Floats, weight: Floats) -> Floats:
    """Return the baseline's own calibration by least squares, with a small ridge."""
    design = np.column_stack([np.ones(len(y)), terms])
    moments = (design * weight[:, None]).T @ design
    ridge = np.full(len(moments), 0.5)
    ridge[:3] = 0.0, 1e-3 * weight.sum(), 1e-3 * weight.sum()
    moments[np.diag_indices_from(moments)] += ridge + 1e-9
    return np.asarray(np.linalg.solve(moments, design.T @ (weight * y)), dtype=np.float64)


def inverse_scatter(terms: Floats, weight: Floats) -> Floats:
    """Return how much an error of the curve costs per shift of the means of its terms."""
    rows = max(float(weight.sum()), 1.0)
    distance = terms - weight @ terms / rows
    scatter = (distance * weight[:, None]).T @ distance
    ridge = np.full(len(scatter), 0.5 + 1e-6 * rows)
    ridge[:2] = 1e-6 * rows
    return np.asarray(np.linalg.inv(scatter + np.diag(ridge)), dtype=np.float64)


def day_sums(
    terms: Floats, rest: Floats, unit: Indices, weight: Floats, inside: Floats, member: Mask
) -> DaySums:
    """Return the sums of one batch: rows, residuals, their squares by question, means.

    ``SQUARE`` is the sum over questions of (sum of residuals)^2, ``CROSS`` of rows times sum of
    residuals, ``UNITS`` of rows^2: together they give the spread about any centre. Weighted
    rows count as often as their weight says.

    Parameters
    ----------
    terms, rest, unit, weight
        Terms of the curve, residual, question and weight of each row.
    inside
        Which rows each channel takes, shape (channels, rows).
    member
        Which group each row belongs to, shape (rows, groups).
    """
    by_group = np.where(member, (weight * rest)[:, None], 0.0)
    columns = np.column_stack([weight, weight * rest, weight[:, None] * terms, by_group])
    plain = inside @ columns
    if not len(rest):
        return np.hstack([plain[:, :2], np.zeros((len(inside), 3)), plain[:, 2:]])
    units = int(unit.max()) + 1
    place = (np.arange(len(inside))[:, None] * units + unit).ravel()

    def per_unit(values: Floats) -> Floats:
        sums = np.bincount(place, weights=(inside * values).ravel(), minlength=units * len(inside))
        return np.asarray(sums.reshape(len(inside), units), dtype=np.float64)

    rows, total = per_unit(weight), per_unit(columns[:, 1])
    squares = np.stack([total * total, rows * total, rows * rows], axis=1).sum(axis=2)
    return np.hstack([plain[:, :2], squares, plain[:, 2:]])


@dataclass(slots=True)
class Channels(Stored):
    """Cumulative sums of all channels: all rows, then those of each range of confidences.

    Parameters
    ----------
    share
        Share of the false-alarm probability that each channel may spend.
    known
        Whether the reference gap is known to be 0 (perfect calibration), not estimated.
    baseline, inverse
        Sums of the baseline by channel, and the inverse scatter of its terms.
    tolerance
        Change that does not matter.
    """

    share: Floats
    known: bool
    baseline: DaySums
    inverse: Floats
    tolerance: float = 0.0
    days: list[DaySums] = field(default_factory=list)
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    before: DaySums = field(default_factory=lambda: np.zeros(0))
    since: int = 0
    total: DaySums = field(init=False, repr=False)
    _turn: Floats = field(init=False, repr=False)
    _usual: Floats = field(init=False, repr=False)
    _now: Floats = field(init=False, repr=False)
    _earlier: Floats = field(init=False, repr=False)
    _first: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.before = self.before if self.before.size else np.zeros(self.baseline.shape)
        if not self.spread.size:
            about = np.zeros(len(self.share)) if self.known else _means(self.baseline)
            self.spread = _spread_about(self.baseline, about)
        # In turned axes the cost of a shift of the means is the sum of its squares.
        values, vectors = np.linalg.eigh(self.inverse)
        self._turn = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        terms = self.inverse.shape[1]
        usual = self.baseline[:, MEANS : MEANS + terms] / np.maximum(self.baseline[:, :1], 1e-9)
        self._usual = (usual[:, None] @ self._turn)[:, 0]
        # What came before each batch of the window, column by column, with room to slide.
        self._earlier = np.zeros((len(self.share), _TURNED + terms, 2 * WINDOW + 2))
        self._first = 0
        self.total = self.baseline + self.before
        self._now = self._turned(self.total)
        days, self.days = self.days, []
        for day in days:
            self._remember(day)

    def _turned(self, sums: DaySums) -> Floats:
        """Return rows, residuals, and turned terms less the usual ones, after their square."""
        terms = (sums[:, None, MEANS : MEANS + self.inverse.shape[1]] @ self._turn)[:, 0]
        terms = terms - sums[:, :1] * self._usual
        square = (terms * terms).sum(axis=1, keepdims=True)
        return np.concatenate([sums[:, [ROWS, REST]], square, terms], axis=1)

    def sums_since(self, start: int) -> DaySums:
        """Return the sums of the batches since this one, counted from 0."""
        batches = self.days[max(start - self.since, 0) :]
        return np.asarray(np.sum([np.zeros(self.total.shape), *batches], axis=0), dtype=np.float64)

    def add(self, day: DaySums, factor: float = 1.0) -> Floats:
        """Take a batch; return the likelihood ratio of a change since each start in the window.

        The noise is that of all batches before this one, and every batch is centred at the mean
        of what came before it: a change then cannot hide in its own noise. Ordinary days stray
        more than their labels explain: their `factor` multiplies the noise.
        """
        centre = np.zeros(len(self.share)) if self.known else _means(self.total)
        noise, size = self.noise
        self.spread = self.spread + _spread_about(day, centre)
        self._remember(day)
        ratios = self._ratios(factor * noise[:, None], size[:, None])
        if len(self.days) > WINDOW:
            self.before = self.before + self.days.pop(0)
            self._first += 1
            self.since += 1
        return ratios

    def _remember(self, day: DaySums) -> None:
        last = self._first + len(self.days)
        if last == self._earlier.shape[2]:
            self._earlier[:, :, : len(self.days)] = self._earlier[:, :, self._first :]
            self._first, last = 0, len(self.days)
        self._earlier[:, :, last] = self._now
        self.days.append(day)
        self.total = self.total + day
        self._now = self._turned(self.total)

    @property
    def noise(self) -> tuple[Floats, Floats]:
        """The variance per row and the mean number of rows that hang together."""
        rows = np.maximum(self.total[:, ROWS], 1e-9)
        subset = self.total[:, ROWS] > 0
        size = np.where(subset, self.total[:, UNITS] / rows, 1.0)
        return np.where(subset, (self.spread + size / 4) / rows, 0.25), size

    def _ratios(self, noise: Floats, size: Floats) -> Floats:
        earlier = self._earlier[:, :, self._first : self._first + len(self.days)]
        now = self._now[:, :, None]
        rows = now[:, ROWS] - earlier[:, ROWS]
        number = np.maximum(rows, 1e-9)
        shift = (now[:, REST] - earlier[:, REST]) / number
        variance = 1.0 / number
        if not self.known:
            before = np.maximum(earlier[:, ROWS], 1e-9)
            shift -= earlier[:, REST] / before
            # The square of the difference of the turned terms, without forming it.
            pair = (self._now[:, None, _TURNED:] @ earlier[:, _TURNED:])[:, 0]
            moved = now[:, _SQUARED] - 2 * pair + earlier[:, _SQUARED]
            variance += 1.0 / before + np.maximum(moved, 0.0) / number**2
        if self.tolerance:
            shift = np.sign(shift) * np.maximum(np.abs(shift) - self.tolerance, 0.0)
        precision = 1.0 / (noise * variance)
        # Normal-mixture likelihood ratios; 0 while a stretch holds too little.
        prior = _CHANGE**2 * precision
        log = shift**2 * precision / 2 * prior / (1 + prior)
        drop = ndtr(-shift * np.sqrt(precision * prior / (1 + prior)))
        lean = 2 * (_DROPS * drop + (1 - _DROPS) * (1 - drop))
        ratio = lean * np.exp(np.minimum(log, _MOST_LOG)) / np.sqrt(1 + prior)
        informed = rows * noise / size**2 >= _LEAST_INFORMATION
        return np.asarray(np.where(informed, ratio, 0.0), dtype=np.float64)

    def likely_start(self, ratios: Floats) -> int:
        """Return the batch (counted from 0) at which the change most likely began."""
        first = self.since - (1 if len(ratios) > WINDOW else 0)
        return max(first, 0) + int(np.argmax(ratios))


def _means(sums: DaySums) -> Floats:
    """Return the mean residual of each channel."""
    return np.asarray(sums[:, REST] / np.where(sums[:, ROWS] > 0, sums[:, ROWS], np.inf))


def _spread_about(sums: DaySums, centre: Floats) -> Floats:
    spread: Floats = sums[:, SQUARE] - 2 * centre * sums[:, CROSS] + centre**2 * sums[:, UNITS]
    return spread
