"""A map that also reads other columns: they and the mended confidence make a score, then mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from calibrant.core.arrays import Floats
from calibrant.records.learned_score import LearnedScore
from calibrant.records.mend_map import MendMap

_CONFIDENCE = "confidence"


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """What a confidence means together with other columns.

    Parameters
    ----------
    score
        Makes one number of the mended confidence and the columns.
    map
        What that number means.
    """

    score: LearnedScore
    map: MendMap

    @property
    def names(self) -> list[str]:
        """The columns beside the confidence."""
        return [name for name in self.score.names if name != _CONFIDENCE]

    def score_one(self, mended: float, row: Mapping[str, Any]) -> float:
        """Return the score of one row whose confidence means `mended`."""
        return self.score.predict_one({**row, _CONFIDENCE: mended})

    def scores(self, mended: Floats, rows: pl.DataFrame) -> Floats:
        """Return the score of every row."""
        return self.score.predict(rows.with_columns(pl.Series(_CONFIDENCE, mended)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        described = self.map.to_dict()
        kept = {name: described[name] for name in ("verdict", "promise", "map")}
        return {"names": self.names, **kept, "score": self.score.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnMap:
        """Return what `to_dict` described."""
        return cls(LearnedScore.from_dict(data["score"]), MendMap.of_curves(data))
