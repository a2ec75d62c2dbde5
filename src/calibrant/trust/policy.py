"""What every saved policy can do; the saved permission to answer alone."""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Mask
from calibrant.core.document import Stored, dump_document, read_by
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data.features import as_frame, level_text, require
from calibrant.data.learned_score import LearnedScore
from calibrant.trust.traffic_shift import GuardCheck, Profile, level_texts
from calibrant.trust.units import DROP, STOP, ClassSets, UnitScore

SCHEMA = "calibrant.policy/1"
CONFIDENCE = "confidence"
Cell: TypeAlias = str | float | Floats | None
Row: TypeAlias = Mapping[str, Cell]
Said: TypeAlias = float | Row | None
"""A model's confidence (None if it gave none), or with it the features of its answer."""


class SavedPolicy(Stored):
    """A policy that is written as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        return {"schema": SCHEMA, **super().to_dict()}

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        Path(path).write_bytes(dump_document(self.to_dict()))


class Step(Struct, frozen=True):
    """What to do next with one query.

    Parameters
    ----------
    action
        ``"ask"`` the model, or ``"answer"`` with what it said.
    model
        Its name.
    risk
        Estimated risk of the answer; None before anything was asked.
    """

    action: str
    model: str
    risk: float | None = None


def stated_confidence(said: Said) -> float | None:
    """Return the confidence of an answer, None where there is none; another one is refused.

    Examples
    --------
    >>> stated_confidence({"confidence": 0.8, "length": 12}), stated_confidence(float("nan"))
    (0.8, None)
    """
    value = said.get(CONFIDENCE) if isinstance(said, Mapping) else said
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        raise InputError("this policy is about single answers: it takes one confidence, not a list")
    number = math.inf if isinstance(value, str) else float(value)
    if 0.0 <= number <= 1.0:
        return number
    if number != number:
        return None
    raise InputError(f"a confidence must be between 0 and 1, got {value!r}")


Decision: TypeAlias = Literal["answer", "ask"]


class Policy(SavedPolicy, ABC):
    """A saved permission to answer: what it decides, promises, and when that ends.

    Attributes
    ----------
    promise : mapping
        What is promised of the answers given, as plain data.
    made : str
        Date of the fit, YYYY-MM-DD.
    n : int
        Labels behind the promise.
    fitted_on : mapping
        Where those labels came from.
    profile : Profile or None
        How their groups, confidences and lengths were spread.
    known : mapping
        By column: the categories with enough labels. A question of any other is asked.
    """

    promise: Mapping[str, Any]
    made: str
    n: int
    fitted_on: Mapping[str, Any]
    profile: Profile | None
    known: Mapping[str, Sequence[str]]

    @property
    @abstractmethod
    def models(self) -> list[str]:
        """Names of the models it asks, cheapest first."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The columns that `decide` needs."""

    @abstractmethod
    def decide(self, row: Row) -> Decision:
        """Say whether the first model's answer may be given, by the columns in `needs`."""

    @abstractmethod
    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:
        """Return what to do next with one question, given the answers so far by model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        request = {"models": self.models, "needs": list(self.needs)}
        return {**super().to_dict(), **request}

    def answers(self, confidence: float | Sequence[float | None] | None) -> bool:
        """Return whether an answer with this confidence may be given; None is never enough.

        A policy of units takes the confidences of all rows of one.
        """
        if self.needs != (CONFIDENCE,):
            raise InputError(
                f"this policy needs {', '.join(self.needs)}, not the confidence alone",
                hint="use policy.decide(row)",
            )
        value: Any = confidence
        if isinstance(confidence, Sequence):
            value = np.asarray(confidence, dtype=np.float64)
        return self.decide({CONFIDENCE: value}) == "answer"

    def route_batch(
        self, questions: Any, asked: Sequence[Mapping[str, Said]] | None = None
    ) -> list[Step]:
        """Return the next step of every row of a table (or of a list of rows)."""
        rows = list(as_rows(questions))
        so_far: Sequence[Mapping[str, Said]] = [{} for _ in rows] if asked is None else asked
        if len(so_far) != len(rows):
            raise InputError(f"{len(so_far)} rows of answers for {len(rows)} questions")
        return [self.route(row, statement) for row, statement in zip(rows, so_far, strict=True)]

    def check(self, rows: Any) -> GuardCheck:
        """Test whether unlabelled traffic is still what the promise was made for.

        Parameters
        ----------
        rows
            A table or a list of rows: the confidence, the column of the groups, ``answer``.
        """
        if self.profile is None:
            raise InputError("this policy does not say what it was made on", hint="fit it again")
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(as_rows(rows)))
        answers = self.known.get(self.profile.group or "", self.profile.names)
        request = [name for name in self.profile.names if name not in answers]
        return self.profile.check(frame, asked=request, promise=self.promise)

    @property
    def expires(self) -> dt.date | None:
        """The day from which on nothing is promised, where the promise names one."""
        names = self.promise.get("expires")
        return None if names is None else dt.date.fromisoformat(names)

    @property
    def ends_when(self) -> str:
        """What else ends the promise, in a sentence."""
        if self.profile is None:
            return "It ends when the questions change."
        watched = [*([self.profile.group] if self.profile.group else []), *self.profile.ends]
        return (
            f"It ends when the spread of {', '.join(watched)} changes; policy.check(rows) tests it."
        )

    def stranger(self, row: Row) -> bool:
        """Return whether a row has a category without enough labels."""
        return any(level_text(row.get(name)) not in levels for name, levels in self.known.items())


def as_rows(rows: Any) -> Any:
    """Yield rows as mappings, from a list of them or a table."""
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return rows
    return as_frame(rows).iter_rows(named=True)


@dataclass(frozen=True)
class RawScore(Stored):
    """The confidence itself."""

    kind = stored_as = "confidence"
    names = (CONFIDENCE,)

    def predict(self, frame: pl.DataFrame) -> Floats:
        """Return the score per row."""
        return np.asarray(frame[CONFIDENCE].cast(pl.Float64).to_numpy())

    def predict_one(self, row: Row) -> float:
        """Return the score of one row."""
        return stated_confidence(row) or 0.0


Score = RawScore | LearnedScore | UnitScore | ClassSets
_SCORES = {kind.kind: kind for kind in (RawScore, LearnedScore, UnitScore, ClassSets)}


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """Return the score that its `to_dict` described."""
    if data["kind"] not in _SCORES:
        raise InputError(f"unknown kind of score {data['kind']!r} in the policy")
    return _SCORES[data["kind"]].from_dict(data)


UNIT = "unit"
"""What is known of a question whose policy is about units: the confidences of the other rows."""
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
    >>> from calibrant.trust.policy import RawScore
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
        if isinstance(self.score, UnitScore):
            self.score.require_pass()
        elif stated_confidence(row) is None:
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

    def check(self, rows: Any) -> GuardCheck:
        """Test whether unlabelled traffic is still what the promise was made for.

        Parameters
        ----------
        rows
            As for every policy; of units a list of confidences in each row.
        """
        if isinstance(self.score, UnitScore) and self.score.how != DROP:
            frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(as_rows(rows)))
            if UNIT in frame.columns:
                frame = frame.with_columns(confidence=pl.concat_list(UNIT, CONFIDENCE))
            rows = frame.with_columns(confidence=pl.Series(self.score.predict(frame)))
        return Policy.check(self, rows)

    def stops(self, confidences: Sequence[float | None]) -> bool:
        """Return whether a run with these confidences so far is to be stopped."""
        is_known = [value for value in confidences if value is not None and value == value]
        return bool(is_known) and self._unit_score(STOP, is_known) >= self._cut(self.threshold)

    def keeps(self, confidences: Sequence[float | None]) -> list[bool]:
        """Return which rows of a unit are kept: those without a confidence are not."""
        cut = self._cut(self.threshold)
        return [
            value is not None and value == value and self._unit_score(DROP, [value]) > cut
            for value in confidences
        ]

    def holds(self, probabilities: Sequence[float]) -> list[str]:
        """Return the set of classes that these probabilities stand for, most likely first."""
        if not isinstance(self.score, ClassSets):
            call = Call("decide", "TABLE", probs="p_", correct="COL", sets=True)
            raise InputError("this policy knows no sets", hint=Hint("make one: {0}", call))
        return self.score.holds(probabilities, self.threshold)

    def _unit_score(self, how: str, confidences: Sequence[float]) -> float:
        if not isinstance(self.score, UnitScore) or self.score.how != how:
            raise InputError(
                f"this policy was not made to {how}",
                hint=Hint(
                    "make one: {call}", call=Call("decide", "TABLE", unit="COL", **{how: True})
                ),
            )
        return self.score.of(confidences)

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:
        """Ask the model, then answer or ``defer`` the question to somebody else."""
        (name,) = self.models
        whole = self._rest_of_unit(question) if isinstance(self.score, UnitScore) else None
        if name not in asked:
            return Step("ask", name)
        statement = asked[name]
        answer: Row = statement if isinstance(statement, Mapping) else {CONFIDENCE: statement}
        if whole is not None:
            given = self._gives([*whole, stated_confidence(answer)])
            return Step("answer" if given else "defer", name)
        action = self.decide({**question, **answer})
        return Step("answer" if action == "answer" else "defer", name)

    def _rest_of_unit(self, question: Row) -> list[float | None]:
        """Return the confidences of the unit's other rows, as whoever asks knows them."""
        rest: Any = question.get(UNIT)
        if not isinstance(rest, list | tuple) or not all(
            value is None or isinstance(value, int | float) for value in rest
        ):
            raise InputError(
                "this policy is about whole units: it needs the confidences of the other rows",
                hint=f'name them as "{UNIT}", such as [0.9, 0.8], or [] for a unit of one row',
            )
        return list(rest)

    def _gives(self, confidences: list[float | None]) -> bool:
        """Return whether the last row of a unit is given: kept, or the unit passes or goes on."""
        how = getattr(self.score, "how", "")
        if how == STOP:
            return not self.stops(confidences)
        return self.keeps(confidences)[-1] if how == DROP else self.answers(confidences)

    def decide_many(self, frame: pl.DataFrame) -> Mask:
        """Return whether each row of a table may be answered alone."""
        require(frame.columns, self.needs)
        values = np.ones(frame.height, dtype=bool)
        for name, levels in self.known.items():
            values &= level_texts(frame[name]).is_in(list(levels)).to_numpy()
        if self.thresholds is None:
            cut = np.full(frame.height, self._cut(self.threshold))
        else:
            groups = level_texts(frame[self.promise["group"]])
            cut = np.array([self._cut(self.thresholds.get(name)) for name in groups])
        values[values] = self.score.predict(frame.filter(pl.Series(values))) >= cut[values]
        return values

    def _cut(self, threshold: float | None) -> float:
        exact = self.score.kind == CONFIDENCE or getattr(self.score, "how", "") == DROP
        return float("inf") if threshold is None else threshold - (0.0 if exact else _ROUNDING)
