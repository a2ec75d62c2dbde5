"""What the parts of a stream lack, counted as they come."""

from __future__ import annotations

from typing import Any

from calibrant.claims.data import data_warnings
from calibrant.inputs.coverage import reading_warnings
from calibrant.planning.watching.watch import StreamBatch
from calibrant.records import Scores
from calibrant.records.reading import Reading, joined_readings


class PartCounts:
    """Rows that were read and left out so far, and how their columns were known.

    Examples
    --------
    >>> import polars as pl
    >>> counts = PartCounts()
    >>> counts.add(Scores(pl.DataFrame({"correct": [1, 0]}), "a stream", {"outcome_missing": 1}))
    >>> counts.dropped, counts.warnings()[0]["text"]
    ({'outcome_missing': 1}, '33 % of the rows of the table are missing or unusable.')
    """

    def __init__(self) -> None:
        # Rows of days that a state has seen: those known already, and labels that came late.
        self.repeated = self.late = 0
        self.dropped: dict[str, int] = {}
        self._rows = self._weightless = 0
        self._weights: set[float] = set()
        self._readings: list[Reading] = []

    def add(self, scores: Scores) -> None:
        """Count a part."""
        for rule, count in scores.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + count
        self._rows += scores.frame.height
        self._weightless += scores.weightless.height
        # A part may be one row: weights differ within parts, or between them.
        if "weights" in scores.frame.columns:
            weights = scores.frame["weights"].to_numpy()
            self._weights |= {float(weights.min()), float(weights.max())}
        if scores.reading not in self._readings:
            self._readings.append(scores.reading)

    def seen_before(self, batch: StreamBatch, late: int) -> None:
        """Count a batch of a day that was seen before, of which `late` labels are new."""
        self.late += late
        self.repeated += batch.confidence.size + batch.unlabelled - late

    @property
    def reading(self) -> Reading:
        """How the parts were read."""
        return joined_readings(self._readings)

    def warnings(self) -> list[dict[str, Any]]:
        """Return what a reader has to know before the watch's own words."""
        lost = sum(self.dropped.values())
        whole = {"model": "model", "method": "", "n": self._rows, "accuracy": None}
        return [
            *data_warnings([{**whole, "dropped": lost, "expected": self._rows + lost}]),
            *reading_warnings(
                weightless=self._weightless,
                weights_unused=len(self._weights) > 1,
                reading=self.reading,
            ),
        ]
