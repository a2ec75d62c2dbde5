"""Batches of a stream: when each was, what its labels show, and whether the mix moved."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs
from scipy import special

from calibrant.core.arrays import Array, Estimate, Floats, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.findings.documents.entries import Part
from calibrant.metrics.stats.intervals import joined_reach, logit_interval, wilson_estimate
from calibrant.metrics.stats.units import UnitInfluence
from calibrant.trust.traffic_shift import LEAST_ROWS, same_spread


@dataclass(frozen=True, slots=True)
class Baseline:
    """Labels of the last verification.

    Parameters
    ----------
    confidence, correct
        Confidences and outcomes.
    question, group
        Question and group of each row, or None.
    weights
        How many rows of the pool each stands for, or None.
    day
        Day of each row, counted from 1970, or None.
    """

    confidence: Floats
    correct: Floats
    question: Array | None = None
    weights: Floats | None = None
    group: Array | None = None
    day: Floats | None = None


class BatchEntry(Part, frozen=True):
    """What the labels of a batch showed; `time` is NaN where the stream has none."""

    when: str
    time: float
    n: int
    unlabelled: int
    accuracy: Estimate
    mean_confidence: Estimate
    gap: Estimate
    capital: float
    alarm: bool

    def to_state(self) -> dict[str, object]:
        """Return plain data, with what a document leaves out of estimates."""
        estimates = {name: list(_PARTS(getattr(self, name))) for name in _ESTIMATES}
        return {**structs.asdict(self), **estimates}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BatchEntry:
        """Return the entry that `to_state` described."""
        estimates = {
            name: Estimate(value, low, high, n=n, interval=interval)
            for name in _ESTIMATES
            for value, low, high, n, interval in [state[name]]
        }
        return cls(**{**state, "time": number(state["time"]), **estimates})


_ESTIMATES = ("accuracy", "mean_confidence", "gap")
_PARTS = attrgetter("value", "low", "high", "n", "interval")


def number(value: float | None) -> float:
    """Return a number that may be NaN, from a state."""
    return math.nan if value is None else value


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Labels of one stretch of time.

    Parameters
    ----------
    label
        Name of the stretch, such as a day.
    time
        Its time in days since 1970-01-01, NaN where the stream has no time.
    confidence, correct
        Confidences and outcomes of the labelled rows.
    question, group
        Question and group of each labelled row, or None.
    unlabelled
        Rows without an outcome, which are counted and left out.
    alone
        Which labelled rows a policy answers alone, or None where no policy is watched.
    mix
        All rows by group, labelled or not, or None.
    cluster
        Cluster of each labelled row, or None.
    """

    label: str
    time: float
    confidence: Floats
    correct: Floats
    question: Array | None = None
    unlabelled: int = 0
    alone: Mask | None = None
    group: Array | None = None
    mix: Mapping[str, int] | None = None
    cluster: Array | None = None

    @property
    def unit(self) -> Array | None:
        """What is right and wrong together: clusters where they are named, else questions."""
        return self.question if self.cluster is None else self.cluster

    def only(self, kept: Mask) -> StreamBatch:
        """Return some of the labelled rows."""
        return replace(self, **{name: values[kept] for name, values in self._columns().items()})

    def _columns(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {name: values for name, values in columns.items() if values is not None}

    def to_list(self) -> list[Any]:
        """Return plain data."""
        plain = {name: values.tolist() for name, values in self._columns().items()}
        return [self.label, self.time if isfinite(self.time) else None, plain]

    @classmethod
    def from_list(cls, parts: list[Any]) -> StreamBatch:
        """Return the batch that `to_list` described."""
        label, time, columns = parts
        arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
        return cls(label, number(time), **arrays)


_COLUMNS = ("confidence", "correct", "question", "alone", "group", "cluster")


def joined_batches(batches: Sequence[StreamBatch]) -> StreamBatch:
    """Return the labels of several batches under the name of the last one."""
    columns: dict[str, Any] = {
        name: np.concatenate([batch._columns()[name] for batch in batches])
        for name in _COLUMNS
        if all(name in batch._columns() for batch in batches)
    }
    return replace(batches[-1], **columns)


def within_days(unit: Array | None, day: Floats) -> Array | None:
    """Return units of a day: what is right and wrong together stays so within a batch alone."""
    if unit is None or not np.isfinite(day).all():
        return unit
    pairs = zip(np.floor(day).astype(int).tolist(), unit.tolist(), strict=True)
    return np.array([f"{number} {name}" for number, name in pairs])


def batch_estimates(confidence: Floats, correct: Floats) -> dict[str, Estimate]:
    """Return accuracy, mean confidence and their gap (confidence minus right) of a few labels.

    Outcomes that are all alike show no spread, so the accuracy has Wilson's interval, which is
    never of zero width. The mean confidence has Student's on the logit scale; of a single label
    it may be anything. Their difference joins the two, see `joined_reach`. All ends stay in the
    range of what they speak of.

    Examples
    --------
    >>> found = batch_estimates(np.array([0.5, 0.55, 0.6, 0.6, 0.65]), np.zeros(5))
    >>> print(found["accuracy"], "|", found["gap"])
    0.000 [0.000, 0.434] | 0.580 [0.140, 0.649]
    """
    n, mean, low, high = int(confidence.size), float(confidence.mean()), 0.0, 1.0
    if n > 1:
        error = float(confidence.std(ddof=1)) / math.sqrt(n)
        low, high = logit_interval(mean, error, 0.95, units=n)
    confidences = Estimate(mean, low, high, n=n, interval="student-logit")
    accuracy = wilson_estimate(float(correct.mean()), n)
    common = _pulls(confidence).correlation(_pulls(correct))
    high = joined_reach(accuracy.value - accuracy.low, confidences.high - confidences.value, common)
    low = joined_reach(accuracy.high - accuracy.value, confidences.value - confidences.low, common)
    value = confidences.value - accuracy.value
    gap = Estimate(value, value - low, value + high, n=n, interval="newcombe")
    return {"accuracy": accuracy, "mean_confidence": confidences, "gap": gap}


def _pulls(values: Floats) -> UnitInfluence:
    return UnitInfluence(values - values.mean(), None, int(values.size))


def drift_rate(history: Iterable[BatchEntry]) -> Estimate | None:
    """Return the change of the mean gap per day, by weighted least squares over batches.

    None where there are fewer than three batches with a time.
    """
    rows = [(entry.time, entry.gap.value, entry.n) for entry in history if isfinite(entry.time)]
    if len(rows) < 3:
        return None
    time, gap, weight = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    centred = time - np.average(time, weights=weight)
    spread = float(weight @ centred**2)
    if spread == 0.0:
        return None
    slope = float(weight @ (centred * gap)) / spread
    remainder = gap - np.average(gap, weights=weight) - slope * centred
    noise = float(weight @ remainder**2) / (len(rows) - 2)
    # Three batches leave one degree of freedom: a normal quantile would promise far too much.
    half = float(special.stdtrit(len(rows) - 2, 0.975)) * math.sqrt(noise / spread)
    return Estimate(slope, slope - half, slope + half, n=int(weight.sum()), interval="student")


_UTC = pl.Datetime("us", "UTC")
# From the first day of the year 1 to the last microsecond of the year 9999, as Python counts them.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
# Seconds of the years 1970 to 9999 end here; numbers beyond count smaller parts of a second.
_MOST_SECONDS = _LAST / 1e6


def instants(column: pl.Series, source: str) -> pl.Series:
    """Return a column of times as instants in UTC."""
    count = _microseconds(column)
    parsed = count.set(~count.is_between(_FIRST, _LAST), None).cast(_UTC)
    if parsed.null_count():
        row = int(parsed.is_null().arg_max() or 0)
        # Python has no name for a year above 9999.
        is_date = column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime)
        value = (column.cast(pl.String) if is_date else column)[row]
        finer = isinstance(value, int | float) and abs(value) > _MOST_SECONDS
        raise InputError(
            f"a time is written like 2026-01-31 or 2026-01-31T12:00:00Z, or as seconds since "
            f"1970, got {value!r}",
            source=source,
            row=row + 1,
            hint="turn milliseconds or nanoseconds into seconds" if finer else None,
        )
    return parsed


def _microseconds(column: pl.Series) -> pl.Series:
    """Return times as microseconds since 1970; what is no time is null."""
    kind = column.dtype
    if kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum):
        instant = pl.Series([_instant(text) for text in column.cast(pl.String)], dtype=_UTC)
    elif kind.is_numeric():
        return (column.cast(pl.Float64) * 1e6).cast(pl.Int64, strict=False)
    elif kind == pl.Date or (isinstance(kind, pl.Datetime) and kind.time_zone is None):
        instant = column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    elif isinstance(kind, pl.Datetime):
        instant = column.cast(_UTC, strict=False)
    else:
        # A time of day, a duration or a flag is no instant.
        instant = pl.Series([None] * column.len(), dtype=_UTC)
    return instant.to_physical()


def _instant(text: str | None) -> dt.datetime | None:
    """Return an ISO date or time as an instant; without a zone it is taken as UTC."""
    try:
        instant = dt.datetime.fromisoformat(text or "")
        return instant.astimezone(dt.UTC) if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        # The first hours of the year 1 may lie before it, in UTC.
        return None


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
