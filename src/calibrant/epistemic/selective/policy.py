"""A saved permission to answer alone: a score, a threshold and the promise that goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.document import dump_document
from calibrant.core.errors import InputError
from calibrant.epistemic.selective.score import CONFIDENCE, Score, score_from_dict

# Sums are added in another order for one row than for many; a score this close is the threshold.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelectivePolicy:
    """Say whether an answer may be given alone.

    Parameters
    ----------
    score
        What is held against the threshold.
    threshold
        Answers with at least this score are given; None means that none is.
    promise
        What is promised of the answers given, as plain data.
    made
        Date of the fit, YYYY-MM-DD.
    n
        Labels that the promise was measured on; those that chose where to start do not count.
    fitted_on
        Source, model, method and columns of those labels.

    Examples
    --------
    >>> from calibrant.epistemic.selective.score import RawScore
    >>> policy = SelectivePolicy(RawScore(), 0.8)
    >>> policy.answers(0.83), policy.answers(0.5), policy.answers(None)
    (True, False, False)
    >>> policy.decide({"confidence": 0.83})
    'answer'
    """

    score: Score
    threshold: float | None
    promise: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""
    n: int = 0
    fitted_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `decide` needs."""
        return tuple(self.score.names)

    def answers(self, confidence: float | None) -> bool:
        """Return whether an answer with this confidence may be given; None is never enough."""
        if self.needs != (CONFIDENCE,):
            raise InputError(
                f"this policy needs {', '.join(self.needs)}, not the confidence alone",
                hint="use policy.decide(row)",
            )
        return self.decide({CONFIDENCE: confidence}) == "answer"

    def decide(self, row: Mapping[str, Any]) -> str:
        """Return ``"answer"`` or ``"ask"`` for one row, given by the names in `needs`."""
        confidence = row.get(CONFIDENCE)
        if self.threshold is None or confidence is None or confidence != confidence:
            return "ask"
        if not 0.0 <= confidence <= 1.0:
            raise InputError(f"a confidence must be between 0 and 1, got {confidence!r}")
        return "answer" if self.score.predict_one(row) >= self._cut() else "ask"

    def decide_many(self, frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """Return whether each row of a table may be answered alone."""
        if self.threshold is None:
            return np.zeros(frame.height, dtype=bool)
        return np.asarray(self.score.predict(frame) >= self._cut())

    def _cut(self) -> float:
        exact = self.score.kind == CONFIDENCE
        threshold = float("inf") if self.threshold is None else self.threshold
        return threshold if exact else threshold - _ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        return {
            "schema": "calibrant.policy/1",
            "kind": "selective",
            "promise": dict(self.promise),
            "made": self.made,
            "n": self.n,
            "fitted_on": dict(self.fitted_on),
            "needs": list(self.needs),
            "threshold": self.threshold,
            "score": self.score.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SelectivePolicy:
        """Return a policy that decides as the one that `to_dict` described."""
        return cls(
            score_from_dict(data["score"]),
            None if data["threshold"] is None else float(data["threshold"]),
            data["promise"],
            data["made"],
            int(data["n"]),
            data["fitted_on"],
        )

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        Path(path).write_bytes(dump_document(self.to_dict()))
