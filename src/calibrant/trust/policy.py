"""What every saved policy can do, whichever verb made it."""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.data.features import as_frame, level_text
from calibrant.trust.policy_file import CONFIDENCE, Row, Said, SavedPolicy, Step
from calibrant.trust.traffic_shift import GuardCheck, Profile

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
