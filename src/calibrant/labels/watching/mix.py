"""Has the mix of groups changed? Rows of every week, labelled or not, against the baseline."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from calibrant.core.stored import Stored
from calibrant.trust.traffic_shift import LEAST_ROWS, same_spread

_WEEK = 7
# Weeks are as good as independent, so that the bound for all of them is nearly reached, and the law
# of chi-square is a little too light so far out. Part of alpha is left for that.
_HEAVIER = 2.5


@dataclass(slots=True)
class MixWatch(Stored):
    """Count groups, and test seven batches at a time against the baseline.

    Parameters
    ----------
    before
        Rows of the baseline by group; after an alarm those of the week that set it off.
    horizon, alpha
        Batches over which a false alarm has at most this probability.

    Examples
    --------
    >>> watch = MixWatch({"law": 500, "art": 500})
    >>> for day in range(14):
    ...     found = watch.update(f"day {day}", {"law": 80 if day > 6 else 50, "art": 50})
    >>> found["group"], round(found["before"], 2), round(found["now"], 2), found["since"]
    ('law', 0.5, 0.62, 'day 7')
    """

    before: dict[str, int]
    horizon: int = 365
    alpha: float = 0.05
    recent: dict[str, int] = field(default_factory=dict)
    first: str = ""
    batches: int = 0
    peak: float = 1.0
    alarms: list[dict[str, object]] = field(default_factory=list)

    def update(self, label: str, rows: Mapping[str, int]) -> dict[str, object] | None:
        """Take the rows of a batch by group; return a change that this very batch shows."""
        if not self.recent:
            self.first = label
        for name, count in rows.items():
            self.recent[name] = self.recent.get(name, 0) + count
        self.batches += 1
        if self.batches % _WEEK or sum(self.recent.values()) < LEAST_ROWS:
            return None
        now, self.recent = self.recent, {}
        names = sorted({*self.before, *now})
        counts = np.array([[side.get(n, 0) for n in names] for side in (self.before, now)], float)
        looks = _HEAVIER * math.ceil(self.horizon / _WEEK)
        p = min(1.0, same_spread(counts[:1], counts[1:]) * looks)
        self.peak = min(self.peak, p)
        if p > self.alpha:
            return None
        share = counts / counts.sum(axis=1, keepdims=True)
        most = int(np.argmax(np.abs(share[1] - share[0])))
        change = {
            "when": label,
            "since": self.first,
            "group": names[most],
            "before": float(share[0, most]),
            "now": float(share[1, most]),
            "p_value": p,
        }
        self.alarms.append(change)
        self.before = now
        return change

    def document(self) -> dict[str, object]:
        """Return what the watch found, for a document."""
        last = self.alarms[-1] if self.alarms else None
        return {"alarm": last, "alarms": self.alarms, "p_value": self.peak}
