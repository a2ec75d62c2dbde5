"""What the parts of a stream lack, counted as they come."""

from __future__ import annotations

from typing import Any

from calibrant.claims.data import data_warnings
from calibrant.inputs.coverage import reading_warnings
from calibrant.records import Scores
from calibrant.records.scored.weights import row_weights

__all__ = ["PartCounts"]


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
        self.dropped: dict[str, int] = {}
        self._rows = self._weightless = 0
        self._weighted = False
        self._guessed: dict[str, str] = {}

    def add(self, scores: Scores) -> None:
        """Count a part."""
        for rule, count in scores.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + count
        self._rows += scores.frame.height
        self._weightless += scores.weightless.height
        self._weighted |= row_weights(scores.frame) is not None
        self._guessed |= scores.guessed

    def warnings(self) -> list[dict[str, Any]]:
        """Return what a reader has to know before the watch's own words."""
        lost = sum(self.dropped.values())
        whole = {"model": "model", "method": "", "n": self._rows, "accuracy": None}
        return [
            *data_warnings([{**whole, "dropped": lost, "expected": self._rows + lost}]),
            *reading_warnings(
                weightless=self._weightless,
                weights_unused=self._weighted,
                guessed=self._guessed,
            ),
        ]
