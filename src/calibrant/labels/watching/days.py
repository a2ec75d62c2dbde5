"""Days of a stream: how far ordinary ones differ, and when late labels let one be judged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from scipy import special

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.core.document import Stored
from calibrant.findings.documents.labels import OrdinaryDaysEntry
from calibrant.labels.watching.batch import StreamBatch, joined_batches, number

LEAST_DAYS = 14
_LEAST_WEEKS = 28
_WEEK = 7
# 1970-01-01, the day 0, was a Thursday.
_NAMES = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
# A rhythm is taken off below this p-value of the F test of weekday means.
_RHYTHM = 0.01
# Days younger than this may already be part of a change.
_OLD = 30.0
# Neighbouring days that resemble each other count up to this distance.
_LAGS = 7
_KEPT = 400
# One-sided level at which days are said to differ, or to wander.
_SAID = 0.05


@dataclass(slots=True)
class OrdinaryDays(Stored):
    """Days that were as usual, and by how much they differ.

    Parameters
    ----------
    week
        What a weekday's residual (right minus confidence) is beyond the mean of all days.
    days
        Day, rows, sum of residuals, sum of squares by cluster within the day, and spell. Spell 0
        is the baseline; every alarm begins another one.
    factor
        What the noise of a day's mean is multiplied by.
    fitted
        Day on which the factor was fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(365.0), 100)
    >>> effect = rng.normal(0, 0.08, 365)[day.astype(int)]
    >>> usual = OrdinaryDays()
    >>> usual.learn(day, rng.normal(0, 0.4, 36_500) + effect)
    >>> 3 < usual.factor < 8
    True
    """

    week: Floats = field(default_factory=lambda: np.zeros(_WEEK))
    days: list[tuple[float, float, float, float, int]] = field(default_factory=list)
    spell: int = 1
    factor: float = 1.0
    fitted: float = -math.inf

    def offset(self, day: float) -> float:
        """Return what the residual of this day's weekday is beyond the mean; 0 without a day."""
        return float(self.week[int(day) % _WEEK]) if math.isfinite(day) else 0.0

    def learn(self, day: Floats, residual: Floats, unit: Indices | None = None) -> None:
        """Take the rows of the baseline, with the day of each; NaN where it is unknown."""
        if not np.isfinite(day).all():
            return
        day = np.floor(day)
        names, place = np.unique(day, return_inverse=True)
        rows = np.bincount(place).astype(np.float64)
        self.week = _rhythm(names, rows, np.bincount(place, residual))
        remainder = residual - self.week[day.astype(np.intp) % _WEEK]
        # Without units every row is one of its own.
        unit = np.arange(day.size) if unit is None else unit
        pair, of_pair = np.unique(place * (int(unit.max()) + 1) + unit, return_inverse=True)
        square = np.bincount(of_pair, remainder) ** 2
        of_day = pair // (int(unit.max()) + 1)
        columns = (names, rows, np.bincount(place, remainder), np.bincount(of_day, square))
        sums = zip(*(column.tolist() for column in columns), strict=True)
        self.days = [(float(d), float(n), float(s), float(q), 0) for d, n, s, q in sums]
        self._fit(float(names[-1]))

    def note(self, day: float, rows: float, rest: float, square: float) -> None:
        """Take the sums of a batch; labels that come later join the day they belong to."""
        if not math.isfinite(day) or not rows:
            return
        day = math.floor(day)
        if self.days and self.days[-1][0] == day and self.days[-1][4] == self.spell:
            _, n, s, q, _ = self.days.pop()
            rows, rest, square = rows + n, rest + s, square + q
        self.days.append((day, rows, rest, square, self.spell))
        del self.days[:-_KEPT]
        if day - self.fitted >= _WEEK:
            self._fit(day)

    def restart(self, day: float) -> None:
        """Begin another spell after an alarm: what came just before it was no ordinary day."""
        self.days = [entry for entry in self.days if not entry[4] or entry[0] <= day - _OLD]
        self.spell += 1

    def _fit(self, today: float) -> None:
        self.fitted = today
        z = self._scores(today)
        if sum(map(len, z)) >= LEAST_DAYS:
            count, variance, companion = _spread_of(z)
            self.factor = max(1.0, variance, companion) * (1 + 1 / math.sqrt(count))

    def _scores(self, today: float) -> list[Floats]:
        """Return the days' residuals in units of what their labels explain, spell by spell."""
        usual = np.array([d for d in self.days if not d[4] or d[0] <= today - _OLD])
        if not len(usual):
            return []
        _, rows, remainder, square, spell = usual.T
        first = spell == spell.min()
        noise = square[first].sum() / rows[first].sum()
        noise -= (remainder[first].sum() / rows[first].sum()) ** 2
        scores = []
        for each in np.unique(spell):
            n, s = rows[spell == each], remainder[spell == each]
            scores.append((s - n * s.sum() / n.sum()) / np.sqrt(n * max(noise, 1e-6)))
        return scores

    def entry(self) -> OrdinaryDaysEntry:
        """Return what is known of ordinary days, for a document."""
        z = self._scores(self.fitted)
        count = sum(map(len, z))
        if count < LEAST_DAYS:
            return OrdinaryDaysEntry(days=count, spread=None, differ=False, wander=False, week=None)
        _, variance, companion = _spread_of(z)
        differ = special.chdtrc(count - len(z), variance * count) < _SAID
        neighbours = sum(float(s[1:] @ s[:-1]) for s in z) / (variance * count)
        week = {name: -float(value) for name, value in zip(_NAMES, self.week, strict=True)}
        return OrdinaryDaysEntry(
            days=count,
            spread=math.sqrt(max(1.0, variance, companion)),
            differ=bool(differ),
            wander=bool(differ and neighbours * math.sqrt(count) > -special.ndtri(_SAID)),
            week=week if self.week.any() else None,
        )


def _spread_of(scores: list[Floats]) -> tuple[int, float, float]:
    """Return the number of days, their variance, and that with days beside them (Newey-West)."""
    count = sum(map(len, scores))
    variance = sum(float(z @ z) for z in scores) / count
    companion = variance
    for lag in range(1, _LAGS + 1):
        products = sum(float(z[lag:] @ z[:-lag]) for z in scores) / count
        companion += 2 * (1 - lag / (_LAGS + 1)) * products
    return count, variance, companion


def _rhythm(days: Floats, rows: Floats, remainder: Array) -> Floats:
    """Return what each weekday's mean residual is beyond all days', drawn to 0 by its F test."""
    weekday = days.astype(np.intp) % _WEEK
    total, degrees = np.bincount(weekday, rows, _WEEK), len(days) - _WEEK
    if len(days) < _LEAST_WEEKS or not total.all():
        return np.zeros(_WEEK)
    mean = np.bincount(weekday, remainder, _WEEK) / total
    centre = float(remainder.sum() / rows.sum())
    within = float((rows * (remainder / rows - mean[weekday]) ** 2).sum()) / degrees
    ratio = float((total * (mean - centre) ** 2).sum()) / (_WEEK - 1) / max(within, 1e-12)
    if special.fdtrc(_WEEK - 1, degrees, ratio) >= _RHYTHM:
        return np.zeros(_WEEK)
    return np.asarray((mean - centre) * max(0.0, 1 - 1 / ratio), dtype=np.float64)


# Share of the labels that must be in when a day is judged; others count on the day they come.
_IN = 0.995
# Days that show how long labels take.
_LEARNED = 30.0


@dataclass(slots=True)
class WaitingDays:
    """Days whose labels may not all be in.

    Parameters
    ----------
    delays
        Labels by the days that they took, as far as runs of the watch show it.
    newest, start
        Time of the newest day of all earlier runs, and of the first one.
    judged
        Time of the newest day that was judged.
    given
        Days after which labels are in, where somebody says so.
    days
        Labels that wait, by the time of their day.
    rows
        Most rows, labelled or not, that a run has listed of each day that waits.
    listed
        Whether rows were ever listed before their labels came.
    """

    delays: dict[int, int] = field(default_factory=dict)
    newest: float = -math.inf
    start: float = math.nan
    judged: float = -math.inf
    given: int | None = None
    days: dict[float, StreamBatch] = field(default_factory=dict)
    rows: dict[float, int] = field(default_factory=dict)
    listed: bool = False

    @property
    def age(self) -> int:
        """Days after which the labels of a day are in."""
        if self.given is not None:
            return self.given
        observed = np.array(sorted(self.delays))
        counts = np.array([self.delays[day] for day in observed])
        if not observed.size:
            return 0
        return int(observed[np.searchsorted(counts.cumsum(), _IN * counts.sum())])

    @property
    def labels(self) -> int:
        """Labels that wait."""
        return sum(int(day.correct.size) for day in self.days.values())

    @property
    def learns_until(self) -> float | None:
        """Time until which days that are not complete wait; None where that is known."""
        if self.given is not None or not self.age:
            return None
        until = self.start + max(2 * self.age, _LEARNED)
        return until if self.newest < until else None

    def take(self, batch: StreamBatch, rows: int = 0) -> None:
        """Let the labels of a day wait, beside those that wait for it already.

        Parameters
        ----------
        batch
            Labels that are new.
        rows
            Rows of the day that this run lists, labelled or not.
        """
        self.listed = self.listed or batch.unlabelled > 0
        self.rows[batch.time] = max(rows, self.rows.get(batch.time, 0))
        earlier = self.days.get(batch.time)
        self.days[batch.time] = batch if earlier is None else joined_batches([earlier, batch])

    def settle(self, arrived: dict[float, int]) -> tuple[list[StreamBatch], list[StreamBatch]]:
        """Learn how long the labels of a run took.

        Returns the labels of days that were judged before, and the days that are complete by now,
        in order.
        """
        newest = max([self.newest, *arrived])
        for time, count in arrived.items():
            # How long labels of new days took, nobody knows: they may have come at once.
            delay = math.ceil(newest - time) if time <= self.newest else 0
            self.delays[delay] = self.delays.get(delay, 0) + count
        self.start = newest if math.isnan(self.start) else self.start
        self.newest = newest
        stray = [self._pop(time) for time in sorted(self.days) if time <= self.judged]
        oldest = -math.inf if self.learns_until is not None else newest - self.age
        ready = []
        for time in sorted(self.days):
            labels = self.days[time].correct.size
            complete = self.listed and 0 < self.rows.get(time, 0) <= labels
            if time > oldest and not complete:
                break
            ready.append(self._pop(time))
        # A day without a label has not been judged: its first ones may be the quick ones.
        self.judged = max([self.judged, *(day.time for day in ready if day.correct.size)])
        return stray, ready

    def _pop(self, time: float) -> StreamBatch:
        self.rows.pop(time, None)
        return self.days.pop(time)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data, to go on tomorrow."""
        return {
            "delays": [[day, count] for day, count in self.delays.items()],
            "newest": self.newest if isfinite(self.newest) else None,
            "judged": self.judged if isfinite(self.judged) else None,
            "start": self.start if isfinite(self.start) else None,
            "given": self.given,
            "days": [batch.to_list() for batch in self.days.values()],
            "rows": [[time, rows] for time, rows in self.rows.items()],
            "listed": self.listed,
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> WaitingDays:
        """Go on from a saved state."""
        days = [StreamBatch.from_list(parts) for parts in state["days"]]
        return cls(
            {int(day): int(count) for day, count in state["delays"]},
            -math.inf if state["newest"] is None else state["newest"],
            number(state["start"]),
            -math.inf if state["judged"] is None else state["judged"],
            state["given"],
            {batch.time: batch for batch in days},
            dict(state.get("rows", [])),
            state.get("listed", False),
        )
