"""A saved permission to answer alone: a score, a threshold and the promise that goes with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError
from calibrant.core.stored import read_by
from calibrant.data.features import level_text, require
from calibrant.data.mend.learned_score import LearnedScore
from calibrant.trust.policy import Decision, Policy
from calibrant.trust.policy_file import CONFIDENCE, Row, Said, Step, stated_confidence
from calibrant.trust.traffic_shift import Profile, level_texts


class RawScore:
    """The confidence itself."""

    kind = "confidence"
    names = (CONFIDENCE,)

    def predict(self, frame: pl.DataFrame) -> Floats:
        """Return the score per row."""
        return np.asarray(frame[CONFIDENCE].cast(pl.Float64).to_numpy())

    def predict_one(self, row: Row) -> float:
        """Return the score of one row."""
        return stated_confidence(row) or 0.0

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return {"kind": self.kind}


Score = RawScore | LearnedScore


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """Return the score that its `to_dict` described."""
    if data["kind"] == RawScore.kind:
        return RawScore()
    if data["kind"] == LearnedScore.kind:
        return LearnedScore.from_dict(data)
    raise InputError(f"unknown kind of score {data['kind']!r} in the policy")


# Sums are added in another order for one row than for many; a score this close is the threshold.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelectivePolicy(Policy):
    """Say whether an answer may be given alone.

    Parameters
    ----------
    score
        What is held against the threshold.
    threshold
        Answers with at least this score are given; None means that none is, or that every group
        has a threshold of its own.
    promise, made, n, fitted_on, profile, known
        As for every policy.
    thresholds
        Threshold of each group, where the promise is for every group; the others are asked.

    Examples
    --------
    >>> from calibrant.trust.selective.policy import RawScore
    >>> policy = SelectivePolicy(RawScore(), 0.8, known={"topic": ["law"]})
    >>> policy.decide({"confidence": 0.83, "topic": "law"})
    'answer'
    >>> policy.decide({"confidence": 0.83, "topic": "new"})
    'ask'
    """

    stored_as = "selective"

    score: Score = field(metadata=read_by(score_from_dict))
    threshold: float | None
    promise: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""
    n: int = 0
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    thresholds: Mapping[str, float] | None = None

    @property
    def models(self) -> list[str]:
        """The one model that answers."""
        return [str(self.fitted_on.get("model", "model"))]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `decide` needs."""
        return tuple(dict.fromkeys([*self.score.names, *self.known]))

    def decide(self, row: Row) -> Decision:
        """Return ``"answer"`` or ``"ask"`` for one row, given by the names in `needs`."""
        if stated_confidence(row) is None:
            return "ask"
        require(list(row), self.needs)
        if self.stranger(row):
            return "ask"
        threshold = self.threshold
        if self.thresholds is not None:
            threshold = self.thresholds.get(level_text(row.get(self.promise["group"])))
        if threshold is None:
            return "ask"
        return "answer" if self.score.predict_one(row) >= self._cut(threshold) else "ask"

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:
        """Ask the model, then answer or ``defer`` the question to somebody else."""
        (name,) = self.models
        if name not in asked:
            return Step("ask", name)
        said = asked[name]
        answer: Row = said if isinstance(said, Mapping) else {CONFIDENCE: said}
        action = self.decide({**question, **answer})
        return Step("answer" if action == "answer" else "defer", name)

    def decide_many(self, frame: pl.DataFrame) -> Mask:
        """Return whether each row of a table may be answered alone."""
        require(frame.columns, self.needs)
        given = np.ones(frame.height, dtype=bool)
        for name, levels in self.known.items():
            given &= level_texts(frame[name]).is_in(list(levels)).to_numpy()
        if self.thresholds is None:
            cut = np.full(frame.height, self._cut(self.threshold))
        else:
            groups = level_texts(frame[self.promise["group"]])
            cut = np.array([self._cut(self.thresholds.get(name)) for name in groups])
        given[given] = self.score.predict(frame.filter(pl.Series(given))) >= cut[given]
        return given

    def _cut(self, threshold: float | None) -> float:
        exact = self.score.kind == CONFIDENCE
        return float("inf") if threshold is None else threshold - (0.0 if exact else _ROUNDING)
