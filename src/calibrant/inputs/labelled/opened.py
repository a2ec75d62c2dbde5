"""A pool with the labels that people made, opened as the outcomes of an audit or a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.inputs.labelled.pool import read_pool
from calibrant.inputs.opened.base import Columns, Opened
from calibrant.planning.labelling.session import WHOLE, LabelSession
from calibrant.records import Scores, Study, load_scores
from calibrant.records.label_store import LabelStore

__all__ = ["WEIGHT", "OpenLabels"]

WEIGHT = "label_weight"
# Weights that differ by less are equal but for rounding.
_SAME = 1e-6


class OpenLabels(Opened):
    """Rows of a pool whose answers are labelled, each with the weight of its draw.

    Parameters
    ----------
    given
        The pool: a file, a study or a table in memory.
    store
        The labels.
    """

    def __init__(self, given: Any, store: Path) -> None:
        if isinstance(given, list | tuple):
            if len(given) > 1:
                raise InputError("labels belong to one pool, and several tables were given")
            given = given[0]
        self.given = given.path if isinstance(given, Study) else given
        self.store = store
        self._dropped: dict[str, int] = {}

    @property
    def error_name(self) -> str | None:
        """The pool's file, where there is one."""
        return str(self.given) if isinstance(self.given, str | Path) else None

    def session(self, columns: Mapping[str, Any]) -> LabelSession:
        """Return the rows of the pool joined with the labels.

        Outcomes in the pool itself are left out: nobody knows how their rows were chosen.
        """
        roles = ("confidence", "correct", "model", "method", "question", "answer", "on_invalid")
        named = {role: columns.get(role) for role in roles}
        rows, self._dropped = read_pool(
            self.given, {**named, "on_invalid": named["on_invalid"] or "error"}
        )
        return LabelSession(rows, LabelStore(self.store, create=False))

    def labelled(self, columns: Mapping[str, Any]) -> tuple[LabelSession, pl.DataFrame]:
        """Return the pool with its labels, and the labelled rows; weights where they differ."""
        session = self.session(columns)
        frame = session.labelled_rows()
        if not frame.height:
            raise InputError(
                "no answer of the pool has a label yet",
                source=str(self.store),
                hint=Hint("label some: {call}", call=Call("label serve", "TABLE")),
            )
        weight = frame[WEIGHT]
        self.notes = [
            f"outcomes are {frame.height:,} labels of {session.rows.height:,} rows, by people; "
            + (
                "drawn with equal chances"
                if _equal(weight)
                else "drawn with unequal chances, which weights undo"
            )
        ]
        return session, frame.drop(WEIGHT) if _equal(weight) else frame

    def _load(self, rules: dict[str, Any]) -> Scores:
        _, frame = self.labelled(rules)
        canonical = {
            name: None
            for name in ("confidence", "correct", "model", "method", "question", "answer")
        }
        weights = WEIGHT if WEIGHT in frame.columns else None
        return load_scores(frame, **{**rules, **canonical, "weights": weights})

    def scores_table(self) -> pl.DataFrame:
        """Return the labelled rows, under the names of the schema."""
        return self.labelled({})[1]

    def compared(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the labelled rows for a comparison: its questions all had the same chance."""
        session, frame = self.labelled(columns)
        if WEIGHT in frame.columns:
            raise InputError(
                "the labels were drawn with unequal chances, and a comparison takes equal ones",
                source=str(self.store),
                hint=Hint(
                    "draw with equal chances: {call}; or audit the models one by one",
                    call=Call("label serve", "TABLE", design="stratified"),
                ),
            )
        return self._whole_questions(session, frame), {}

    def _whole_questions(self, session: LabelSession, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of questions whose answers are all labelled, where that is fair.

        One label serves all models that gave an answer. A question on which all agree is complete
        with one label, one with three answers needs three: where single answers were drawn,
        complete questions are no fair choice.
        """
        whole = session.rows.group_by("question_id").len(name="rows")
        made = frame.group_by("question_id").len(name="made")
        touched = made.join(whole, on="question_id", how="left")
        part = touched.filter(pl.col("made") < pl.col("rows"))["question_id"]
        if part.len() and not all(w.design.endswith(WHOLE) for w in session.store.waves()):
            raise InputError(
                f"{part.len():,} of {touched.height:,} labelled questions have labels for some "
                "models only, and questions on which models agree had a greater chance of being "
                "complete",
                source=str(self.store),
                hint=Hint(
                    "draw whole questions: {call}; or audit the models one by one",
                    call=Call("label serve", "TABLE", whole_questions=True),
                ),
            )
        return frame.filter(~pl.col("question_id").is_in(part.implode()))


def _equal(weight: pl.Series) -> bool:
    values = weight.to_numpy()
    return bool(values.max() - values.min() <= _SAME * values.max())
