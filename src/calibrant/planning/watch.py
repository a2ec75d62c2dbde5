"""From a stream of (time, confidence, outcome) to a monitoring document."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.planning.batch import batch_estimates
from calibrant.planning.formulas import half_life
from calibrant.planning.monitor import (
    CalibrationMonitor,
    GapRegion,
    perfect_region,
    verified_region,
)

__all__ = ["StreamBatch", "Watch", "drift_rate"]

Floats: TypeAlias = NDArray[np.float64]

_ROWS_SHOWN = 400


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
        Confidences and outcomes.
    """

    label: str
    time: float
    confidence: Floats
    correct: Floats


class Watch:
    """Monitor one model's stream, batch by batch, and keep what the report needs.

    Parameters
    ----------
    keys
        What is watched, such as model and method.
    baseline
        Labelled baseline (confidence, correct), or None for perfect calibration.
    baseline_rows
        Take this many first rows of the stream as the baseline.
    bins, alpha, tolerance
        Bins, false-alarm probability for ever, and the change that does not matter.
    """

    def __init__(
        self,
        keys: dict[str, str],
        *,
        baseline: tuple[Floats, Floats] | None = None,
        baseline_rows: int = 0,
        bins: int = 10,
        alpha: float = 0.05,
        tolerance: float = 0.02,
    ) -> None:
        if baseline is not None and baseline_rows:
            raise InputError("give either a baseline table or a number of first rows, not both")
        self.keys = keys
        self.bins, self.alpha, self.tolerance = bins, alpha, tolerance
        self.monitor: CalibrationMonitor | None = None
        self.history: list[dict[str, Any]] = []
        self.alarm: dict[str, Any] | None = None
        self._waiting = baseline_rows
        self._held: list[StreamBatch] = []
        self.verified_at: float = math.nan
        if baseline is not None:
            self._begin(verified_region(*baseline, bins=bins, tolerance=tolerance, alpha=alpha / 2))
        elif not baseline_rows:
            self._begin(perfect_region(bins=bins, tolerance=tolerance))

    def _begin(self, region: GapRegion) -> None:
        self.monitor = CalibrationMonitor(region, alpha=self.alpha)

    def update(self, batch: StreamBatch) -> bool:
        """Take a batch; return whether this very batch set off the alarm."""
        if self.monitor is None:
            return self._collect_baseline(batch)
        if not batch.confidence.size:
            return False
        before = self.monitor.alarm_batch
        self.monitor.update(batch.confidence, batch.correct)
        new = before is None and self.monitor.alarm_batch is not None
        self.history.append(
            {
                "when": batch.label,
                "time": batch.time,
                "n": int(batch.correct.size),
                **batch_estimates(batch.confidence, batch.correct),
                "capital": self.monitor.capital,
                "alarm": new,
            }
        )
        if new:
            finding = self.monitor.finding()
            since = self.history[finding["since_batch"] - 1]["when"]
            self.alarm = {"when": batch.label, "since": since, **finding}
        return new

    def _collect_baseline(self, batch: StreamBatch) -> bool:
        self._held.append(batch)
        confidence = np.concatenate([held.confidence for held in self._held])
        correct = np.concatenate([held.correct for held in self._held])
        if confidence.size < self._waiting:
            return False
        cut = self._waiting
        self._begin(
            verified_region(
                confidence[:cut],
                correct[:cut],
                bins=self.bins,
                tolerance=self.tolerance,
                alpha=self.alpha / 2,
            )
        )
        self.verified_at = batch.time
        return self.update(StreamBatch(batch.label, batch.time, confidence[cut:], correct[cut:]))

    def document(
        self,
        *,
        precision: float | None = None,
        drift: float | None = None,
        verified: dt.date | None = None,
    ) -> dict[str, Any]:
        """Return the result entry; `drift` is per day, estimated where it is not given."""
        if self.monitor is None:
            raise InputError(
                f"the stream ended before its baseline of {self._waiting:,} rows was complete",
                hint="take fewer rows as the baseline",
            )
        slope = drift_rate(self.history)
        return {
            **self.keys,
            "n": self.monitor.rows,
            "batches": self.monitor.batches,
            "alpha": self.alpha,
            "reference": self.monitor.region.description,
            "alarm": self.alarm,
            "capital": self.monitor.capital,
            "limit": self.monitor.limit,
            "p_value": self.monitor.finding()["p_value"],
            "drift_per_day": slope,
            "expiry": self._expiry(precision, drift, slope, verified),
            "history": self.history[-_ROWS_SHOWN:],
            "history_left_out": max(0, len(self.history) - _ROWS_SHOWN),
        }

    def _expiry(
        self,
        precision: float | None,
        drift: float | None,
        slope: Estimate | None,
        verified: dt.date | None,
    ) -> dict[str, Any] | None:
        if precision is None:
            return None
        source = "given"
        if drift is None:
            if slope is None or not math.isfinite(slope.high):
                return None
            drift, source = max(abs(slope.low), abs(slope.high)), "largest rate not ruled out"
        if not drift > 0:
            return None
        days = half_life(precision, drift=drift)
        start = verified
        if start is None:
            first = self.verified_at if math.isfinite(self.verified_at) else math.nan
            if not math.isfinite(first) and self.history:
                first = self.history[0]["time"]
            start = _day(first)
        date = None
        if start is not None and days < (dt.date.max - start).days:
            date = (start + dt.timedelta(days=math.floor(days))).isoformat()
        return {
            "precision": precision,
            "drift_per_day": drift,
            "drift_source": source,
            "verified": None if start is None else start.isoformat(),
            "days": days,
            "date": date,
        }


def _day(time: float) -> dt.date | None:
    if not math.isfinite(time):
        return None
    return dt.date(1970, 1, 1) + dt.timedelta(days=math.floor(time))


def drift_rate(history: Iterable[dict[str, Any]]) -> Estimate | None:
    """Return the change of the mean gap per day, by weighted least squares over batches.

    None where there are fewer than three batches with a time.
    """
    rows = [
        (entry["time"], entry["gap"].value, entry["n"])
        for entry in history
        if math.isfinite(entry["time"])
    ]
    if len(rows) < 3:
        return None
    time, gap, weight = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    centred = time - np.average(time, weights=weight)
    spread = float(weight @ centred**2)
    if spread == 0.0:
        return None
    slope = float(weight @ (centred * gap)) / spread
    rest = gap - np.average(gap, weights=weight) - slope * centred
    noise = float(weight @ rest**2) / (len(rows) - 2)
    # Three batches leave one degree of freedom: a normal quantile would promise far too much.
    half = float(special.stdtrit(len(rows) - 2, 0.975)) * math.sqrt(noise / spread)
    return Estimate(slope, slope - half, slope + half, n=int(weight.sum()), interval="student")
