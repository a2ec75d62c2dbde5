"""From a stream of (time, confidence, outcome) to a monitoring document, with its state."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from calibrant.core.errors import InputError, SchemaError
from calibrant.core.places import writing
from calibrant.findings.documents.labels import WatchAlarm, WatchExpiry
from calibrant.labels.formulas import half_life, last_day
from calibrant.labels.watching.batch import (
    Baseline,
    BatchEntry,
    MixWatch,
    StreamBatch,
    batch_estimates,
    drift_rate,
    joined_batches,
    number,
    within_days,
)
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.labels.watching.days import WaitingDays
from calibrant.labels.watching.detector import ChangeDetector, Finding

_ROWS_SHOWN = 400
# What a saved state holds as it is.
_PLAIN = ("keys", "reference", "left_out", "rows", "unlabelled", "taken", "last_label")


class CalibrationWatch:
    """Monitor one model's stream, batch by batch, and keep what the report needs.

    Parameters
    ----------
    keys
        What is watched, such as model and method.
    baseline
        Labels of the last verification, or None for perfect calibration.
    baseline_rows
        Take this many first rows of the stream as the baseline.
    horizon, alpha
        Batches over which any false alarm has at most this probability.
    tolerance
        Change that does not matter.
    promise
        Watch over the promise of a policy, or None.
    """

    def __init__(
        self,
        keys: dict[str, str],
        *,
        baseline: Baseline | None = None,
        baseline_rows: int = 0,
        horizon: int = 365,
        alpha: float = 0.05,
        tolerance: float = 0.0,
        promise: PromiseWatch | None = None,
    ) -> None:
        if baseline is not None and baseline_rows:
            raise InputError("give either a baseline table or a number of first rows, not both")
        self.keys, self.promise = keys, promise
        self.detector = ChangeDetector(horizon=horizon, alpha=alpha, tolerance=tolerance)
        self.reference = "perfect calibration: accuracy equal to confidence"
        self.history: list[BatchEntry] = []
        self.left_out = 0
        self.alarms: list[WatchAlarm] = []
        self.rows = self.unlabelled = 0
        # Days and questions whose labels were taken: a day that comes again may bring new ones.
        self.labelled: set[str] = set()
        # Batches taken so far, those of the baseline and those without labels included.
        self.taken, self.last_label = 0, ""
        # What the last batch decided: a broken promise, an alarm.
        self.last_words: list[dict[str, object]] = []
        self.verified_at: float = math.nan
        self.mix: MixWatch | None = None
        self.late = WaitingDays()
        self._waiting = baseline_rows
        self._held: list[StreamBatch] = []
        if baseline is not None:
            self._begin(baseline)
        elif not baseline_rows:
            self.detector.set_perfect()

    def _begin(self, first: Baseline) -> None:
        self.detector.set_baseline(
            first.confidence, first.correct, first.question, first.weights, first.group, first.day
        )
        if first.group is not None:
            names, counts = np.unique(first.group.astype(str), return_counts=True)
            rows = dict(zip(names.tolist(), counts.tolist(), strict=True))
            self.mix = MixWatch(rows, self.detector.horizon, self.detector.alpha)
        self.reference = f"the baseline of {first.confidence.size:,} labels"
        self._waiting = 0

    def update(self, batch: StreamBatch) -> bool:
        """Take a batch; return whether this very batch set off an alarm, see `last_words`."""
        self.taken, self.last_label = self.taken + 1, batch.label
        self.unlabelled += batch.unlabelled
        self.last_words = []
        if self._waiting:
            # The promise, like the watch, is about what comes after the verification.
            self._collect_baseline(batch)
            return False
        broken = self._keep_promise(batch)
        self.last_words = [{"promise": self.promise.broken}] if self.promise and broken else []
        if not batch.confidence.size:
            return broken
        finding = self.detector.update(
            batch.confidence, batch.correct, batch.unit, batch.group, batch.time
        )
        n, capital = batch.correct.size, finding.evidence if finding else self.detector.evidence
        self.rows += n
        estimates = batch_estimates(batch.confidence, batch.correct)
        alarm = finding is not None
        entry = BatchEntry(
            batch.label, batch.time, n, batch.unlabelled, **estimates, capital=capital, alarm=alarm
        )
        self.history.append(entry)
        if finding is not None:
            self.alarms.append(self._alarm_of(finding))
            self.last_words.append(msgspec.structs.asdict(self.alarms[-1]))
        if len(self.history) > _ROWS_SHOWN:
            self.history.pop(0)
            self.left_out += 1
        return bool(self.last_words)

    def _keep_promise(self, batch: StreamBatch) -> bool:
        """Hold the answers given alone against the policy's promise."""
        if self.promise is None or batch.alone is None or not batch.alone.any():
            return False
        unit = None if batch.unit is None else batch.unit[batch.alone]
        return self.promise.update(batch.label, 1.0 - batch.correct[batch.alone], unit)

    def _alarm_of(self, finding: Finding) -> WatchAlarm:
        group, shift = finding.group or (None, None)
        return WatchAlarm(
            when=self.history[-1].when,
            since=self.history[max(finding.since - self.left_out, 0)].when,
            bin=None if finding.range is None else list(finding.range),
            direction="over-confident" if finding.shift < 0 else "under-confident",
            shift=finding.shift,
            group=group,
            group_shift=shift,
            since_batch=finding.since + 1,
            p_value=min(1.0, 1.0 / finding.evidence),
        )

    def _collect_baseline(self, batch: StreamBatch) -> None:
        self._held.append(batch)
        if sum(part.confidence.size for part in self._held) < self._waiting:
            return
        # Whole batches: a question is never split between the baseline and the stream.
        whole = joined_batches(self._held)
        day = np.concatenate([np.full(part.correct.size, part.time) for part in self._held])
        unit = within_days(whole.unit, day)
        self._begin(Baseline(whole.confidence, whole.correct, unit, None, whole.group, day))
        self.verified_at = batch.time
        self._held = []

    def document(
        self,
        *,
        precision: float | None = None,
        drift: float | None = None,
        verified: dt.date | None = None,
    ) -> dict[str, object]:
        """Return the result entry; `drift` is per day, estimated where it is not given."""
        if self._waiting:
            rule = f"the stream ended before its baseline of {self._waiting:,} rows was complete"
            raise InputError(rule, hint="take fewer rows as the baseline")
        # The day until which days that are not complete wait, where they do.
        until = _day(self.late.learns_until)
        return {
            **self.keys,
            "n": self.rows,
            "unlabelled": self.unlabelled,
            "batches": self.detector.batches,
            "alpha": self.detector.alpha,
            "horizon": self.detector.horizon,
            "reference": self.reference,
            "alarm": self.alarms[-1] if self.alarms else None,
            "alarms": self.alarms,
            "capital": self.detector.evidence,
            "limit": self.detector.limit,
            "p_value": min((alarm.p_value for alarm in self.alarms), default=self.detector.p_value),
            "drift_per_day": drift_rate(self.history),
            "expiry": self._expiry(precision, drift, verified),
            "promise": None if self.promise is None else self.promise.document(),
            "groups": list(self.detector.groups),
            "ordinary_days": self.detector.usual.entry(),
            "mix": None if self.mix is None else self.mix.document(),
            "waiting": {"labels": self.late.labels, "days": self.late.age, "until": until},
            "history": self.history,
            "history_left_out": self.left_out,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain data, to go on tomorrow."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "detector": self.detector.to_dict(),
            "history": [entry.to_state() for entry in self.history],
            "alarms": msgspec.to_builtins(self.alarms),
            "labelled": sorted(self.labelled),
            "verified_at": None if math.isnan(self.verified_at) else self.verified_at,
            "waiting": self._waiting,
            "promise": None if self.promise is None else self.promise.to_dict(),
            "held": [batch.to_list() for batch in self._held],
            "mix": None if self.mix is None else self.mix.to_dict(),
            "late": self.late.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> CalibrationWatch:
        """Go on from a saved state, as if the stream had never been interrupted."""
        watch = cls({})
        watch.detector = ChangeDetector.from_dict(state["detector"])
        watch.history = [BatchEntry.from_state(entry) for entry in state["history"]]
        watch.alarms = msgspec.convert(state["alarms"], list[WatchAlarm])
        for name in _PLAIN:
            setattr(watch, name, state[name])
        watch.labelled = set(state["labelled"])
        watch.verified_at = number(state["verified_at"])
        watch._waiting = state["waiting"]
        if state.get("promise") is not None:
            watch.promise = PromiseWatch.from_dict(state["promise"])
        watch._held = [StreamBatch.from_list(parts) for parts in state["held"]]
        watch.mix = None if state["mix"] is None else MixWatch.from_dict(state["mix"])
        watch.late = WaitingDays.from_dict(state["late"])
        return watch

    def see(self, batch: StreamBatch) -> None:
        """Look at all rows of a new batch, labelled or not: has the mix of groups changed?"""
        if self.mix is not None and batch.mix is not None and not batch.time <= self.late.newest:
            self.mix.update(batch.label, batch.mix)

    def new_labels(self, batch: StreamBatch) -> StreamBatch:
        """Return the labels of a day that were not taken before, by the question's id."""
        assert batch.question is not None
        # A question may be asked again on another day.
        keys = [f"{batch.label} {name}" for name in batch.question.tolist()]
        new = np.array([key not in self.labelled for key in keys], dtype=bool)
        self.labelled.update(keys)
        return batch.only(new)

    def settle(self, arrived: dict[float, int]) -> int:
        """Judge the days whose labels are in; return how many labels came later than that.

        Those count on the day they come.
        """
        stray, due = self.late.settle(arrived)
        late = sum(int(batch.correct.size) for batch in stray)
        if late:
            whole = joined_batches(stray)
            self.update(replace(whole, label=self.last_label, time=self.last_time))
        for batch in due:
            self.update(batch)
        return late

    @property
    def last_time(self) -> float:
        """Time of the last batch taken, NaN where there is none."""
        times = [self.verified_at, *(entry.time for entry in self.history)]
        times += [batch.time for batch in self._held]
        return max((time for time in times if math.isfinite(time)), default=math.nan)

    def _expiry(
        self, precision: float | None, drift: float | None, verified: dt.date | None
    ) -> WatchExpiry | None:
        if precision is None:
            return None
        source = "given"
        if drift is None:
            slope = drift_rate(self.history)
            if slope is None or not math.isfinite(slope.high):
                return None
            drift, source = max(abs(slope.low), abs(slope.high)), "largest rate not ruled out"
        if not drift > 0:
            return None
        days = half_life(precision, drift=drift)
        if verified is None:
            first = self.verified_at
            if not math.isfinite(first) and self.history:
                first = self.history[0].time
            verified = _day(first)
        return WatchExpiry(
            precision=precision,
            drift_per_day=drift,
            drift_source=source,
            verified=None if verified is None else verified.isoformat(),
            days=days,
            date=last_day(verified, days),
        )


def _day(time: float | None) -> dt.date | None:
    if time is None or not math.isfinite(time):
        return None
    return dt.date(1970, 1, 1) + dt.timedelta(days=math.floor(time))


SCHEMA = "calibrant.monitor_state/2"
# Its gaps are accuracy minus confidence; they are turned when it is read.
_FIRST = "calibrant.monitor_state/1"


def load_state(path: str | Path | None) -> dict[tuple[str, str], CalibrationWatch]:
    """Return the watches of a state by model and method; none where there is no file yet."""
    if path is None or not Path(path).exists() or not Path(path).stat().st_size:
        return {}
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
        if state.get("schema") not in (SCHEMA, _FIRST):
            rule = f"this is no state of a monitor (schema {state.get('schema')!r})"
            hint = "name another file: it is created at the end"
            raise SchemaError(rule, source=str(path), hint=hint)
        if state["schema"] == _FIRST:
            for entry in (entry for watch in state["watches"] for entry in watch["history"]):
                value, low, high, *peers = entry["gap"]
                entry["gap"] = [0.0 - value, 0.0 - high, 0.0 - low, *peers]
        watches = [CalibrationWatch.from_dict(entry) for entry in state["watches"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"the state of the monitor cannot be read ({type(error).__name__})"
        hint = "name another file, and start the watch anew with a baseline"
        raise InputError(rule, source=str(path), hint=hint) from None
    return {(watch.keys["model"], watch.keys["method"]): watch for watch in watches}


def save_state(path: str | Path, watches: dict[tuple[str, str], CalibrationWatch]) -> None:
    """Write the state beside its place, then move it there."""
    target = Path(path)
    states = [watch.to_dict() for watch in watches.values()]
    text = json.dumps({"schema": SCHEMA, "watches": states})
    half = target.with_name(target.name + ".part")
    with writing(target):
        half.write_text(text, encoding="utf-8")
        os.replace(half, target)
