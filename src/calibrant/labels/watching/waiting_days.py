"""Labels that come late: a day is judged when nearly all of its labels are in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from calibrant.labels.watching.batch import StreamBatch, joined_batches, number

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
            if time > oldest and not self._complete(time):
                break
            ready.append(self._pop(time))
        # A day without a label has not been judged: its first ones may be the quick ones.
        self.judged = max([self.judged, *(day.time for day in ready if day.correct.size)])
        return stray, ready

    def _pop(self, time: float) -> StreamBatch:
        self.rows.pop(time, None)
        return self.days.pop(time)

    def _complete(self, time: float) -> bool:
        return self.listed and 0 < self.rows.get(time, 0) <= self.days[time].correct.size

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
