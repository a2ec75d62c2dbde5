"""One channel of the monitor: sums per day, and how likely a change since each earlier day is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats

# Starts of a change that are looked back to, in batches.
WINDOW = 250
# Size of a change that the detector is tuned to; others are found as well, a little later.
_CHANGE = 0.07
# Information a stretch needs before a normal law describes its mean.
_LEAST_INFORMATION = 5.0
_MOST_LOG = 50.0

# Columns of a day's sums.
(ROWS, REST, SQUARE, CROSS, UNITS, P1, P2, P3, P4, Y, PY, P2Y) = range(12)
DaySums: TypeAlias = Floats
# Those that a likelihood ratio is made of.
_USED = [ROWS, REST, P1, P2]


def day_sums(
    p: Floats,
    y: Floats,
    rest: Floats,
    unit: NDArray[np.intp],
    weight: Floats | None = None,
    cell: NDArray[np.intp] | None = None,
    cells: int = 0,
) -> Floats:
    """Return the sums of one batch: rows, residuals, their squares by question, moments.

    ``SQUARE`` is the sum over questions of (sum of residuals)^2, ``CROSS`` of rows times sum of
    residuals, ``UNITS`` of rows^2: together they give the spread about any centre. Weighted
    rows count as often as their weight says.

    Parameters
    ----------
    p, y, rest, unit
        Confidence, outcome, residual and question of each row.
    weight
        Weight of each row, or None.
    cell, cells
        Range of confidences of each row, and how many ranges there are.

    Returns
    -------
    ndarray
        Shape (1 + cells, 12): the sums of all rows, then of every range.
    """
    if not p.size:
        return np.zeros((1 + cells, 12))
    w = np.ones(p.size) if weight is None else weight
    wp, square = w * p, p * p
    wpp = w * square
    columns = np.stack([w, w * rest, wp, wpp, wp * square, wpp * square, w * y, wp * y, wpp * y])
    parts = np.ones((1 + cells, p.size))
    if cells:
        parts[1:] = cell == np.arange(cells)[:, None]
    plain = parts @ columns.T
    units = int(unit.max()) + 1
    place = (np.arange(1 + cells)[:, None] * units + unit).ravel()
    shape = (1 + cells, units)
    rows = np.bincount(place, weights=(parts * w).ravel(), minlength=units * (1 + cells))
    rows = rows.reshape(shape)
    total = np.bincount(place, weights=(parts * columns[1]).ravel(), minlength=rows.size)
    total = total.reshape(shape)
    squares = np.stack([total * total, rows * total, rows * rows], axis=1).sum(axis=2)
    return np.hstack([plain[:, :2], squares, plain[:, 2:]])


def baseline_shape(sums: DaySums) -> tuple[Floats, Floats, Floats]:
    """Return the baseline's mean of (p, p^2), the inverse scatter of it, and the fitted curve.

    The curve ``[1, p, p^2] theta`` is the baseline's own calibration, by least squares with a
    small ridge.
    """
    n = max(sums[ROWS], 1.0)
    mean = sums[[P1, P2]] / n
    second = np.array([[sums[P2], sums[P3]], [sums[P3], sums[P4]]])
    scatter = second - n * np.outer(mean, mean)
    inverse = np.linalg.inv(scatter + 1e-6 * n * np.eye(2))
    moments = np.array(
        [
            [n, sums[P1], sums[P2]],
            [sums[P1], sums[P2], sums[P3]],
            [sums[P2], sums[P3], sums[P4]],
        ]
    )
    ridge = 1e-3 * n * np.diag([0.0, 1.0, 1.0])
    theta = np.linalg.solve(moments + ridge + 1e-9 * np.eye(3), sums[[Y, PY, P2Y]])
    return mean, inverse, theta


@dataclass(slots=True)
class Channel:
    """Cumulative sums of one channel: all rows, or those of one range of confidences.

    Parameters
    ----------
    share
        Share of the false-alarm probability that this channel may spend.
    known
        Whether the reference gap is known to be 0 (perfect calibration), not estimated.
    baseline
        Sums of the baseline.
    tolerance
        Change that does not matter.
    """

    share: float
    known: bool
    baseline: DaySums
    tolerance: float = 0.0
    days: list[DaySums] = field(default_factory=list)
    spread: float = 0.0
    before: DaySums = field(default_factory=lambda: np.zeros(12))
    since: int = 0
    shape: tuple[Floats, Floats] = field(init=False, repr=False)
    total: DaySums = field(init=False, repr=False)
    _earlier: Floats = field(init=False, repr=False)
    _first: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.shape = baseline_shape(self.baseline)[:2]
        if not self.spread and not self.known:
            self.spread = _spread_about(self.baseline, self._mean(self.baseline))
        # What came before each batch of the window, column by column, with room to slide.
        self._earlier, self._first = np.zeros((len(_USED), 2 * WINDOW + 2)), 0
        self.total = self.baseline + self.before
        for number, day in enumerate(self.days):
            self._earlier[:, number] = self.total[_USED]
            self.total = self.total + day

    @staticmethod
    def _mean(sums: DaySums) -> float:
        return float(sums[REST] / sums[ROWS]) if sums[ROWS] else 0.0

    def sums_since(self, start: int) -> DaySums:
        """Return the sums of the batches since this one, counted from 0."""
        held = self.days[max(start - self.since, 0) :]
        return np.asarray(np.sum([np.zeros(12), *held], axis=0), dtype=np.float64)

    def add(self, day: DaySums) -> Floats:
        """Take a batch; return the likelihood ratio of a change since each start in the window.

        The noise is that of all batches before this one, and every batch is centred at the mean
        of what came before it: a change then cannot hide in its own noise.
        """
        centre = 0.0 if self.known else self._mean(self.total)
        noise, size = self._noise(self.total)
        self.spread += _spread_about(day, centre)
        self._remember(day)
        ratios = self._ratios(noise, size)
        if len(self.days) > WINDOW:
            self.before = self.before + self.days.pop(0)
            self._first += 1
            self.since += 1
        return ratios

    def _remember(self, day: DaySums) -> None:
        last = self._first + len(self.days)
        if last == self._earlier.shape[1]:
            self._earlier[:, : len(self.days)] = self._earlier[:, self._first :]
            self._first, last = 0, len(self.days)
        self._earlier[:, last] = self.total[_USED]
        self.days.append(day)
        self.total = self.total + day

    def _noise(self, total: DaySums) -> tuple[float, float]:
        """Return the variance per row and the mean number of rows that hang together."""
        if total[ROWS] == 0:
            return 0.25, 1.0
        size = float(total[UNITS] / total[ROWS])
        return float((self.spread + size / 4) / total[ROWS]), size

    def _ratios(self, noise: float, size: float) -> Floats:
        earlier = self._earlier[:, self._first : self._first + len(self.days)]
        rows, rest, first, second = self.total[_USED, None] - earlier
        many = np.maximum(rows, 1e-9)
        shift = rest / many
        variance = 1.0 / many
        if not self.known:
            held = np.maximum(earlier[0], 1e-9)
            shift -= earlier[1] / held
            (mean, more), ((a, b), (_, c)) = self.shape
            u, v = first / many - mean, second / many - more
            variance += 1.0 / held + (a * u + 2.0 * b * v) * u + c * v * v
        beyond = np.abs(shift)
        if self.tolerance:
            beyond = np.maximum(beyond - self.tolerance, 0.0)
        return _ratio(beyond, 1.0 / (noise * variance), rows * noise / size**2)

    def likely_start(self, ratios: Floats) -> int:
        """Return the batch (counted from 0) at which the change most likely began."""
        first = self.since - (1 if len(ratios) > WINDOW else 0)
        return max(first, 0) + int(np.argmax(ratios))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "share": self.share,
            "known": self.known,
            "baseline": self.baseline.tolist(),
            "tolerance": self.tolerance,
            "days": [day.tolist() for day in self.days],
            "spread": self.spread,
            "before": self.before.tolist(),
            "since": self.since,
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Channel:
        """Go on from a saved state."""
        return cls(
            state["share"],
            state["known"],
            np.array(state["baseline"]),
            state["tolerance"],
            [np.array(day) for day in state["days"]],
            state["spread"],
            np.array(state["before"]),
            state["since"],
        )


def _ratio(shift: Floats, precision: Floats, informed: Floats) -> Floats:
    """Return normal-mixture likelihood ratios; 0 while a stretch holds too little."""
    prior = _CHANGE**2 * precision
    log = shift**2 * precision / 2 * prior / (1 + prior)
    ratio = np.exp(np.minimum(log, _MOST_LOG)) / np.sqrt(1 + prior)
    return np.asarray(np.where(informed >= _LEAST_INFORMATION, ratio, 0.0), dtype=np.float64)


def _spread_about(sums: DaySums, centre: float) -> float:
    return float(sums[SQUARE] - 2 * centre * sums[CROSS] + centre**2 * sums[UNITS])
