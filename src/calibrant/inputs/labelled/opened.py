"""A pool with the labels that people made, opened as the outcomes of an audit or a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.inputs.labelled.drawn import (
    equal_chances,
    refuse_incomplete,
    refuse_unequal,
    without_draw,
)
from calibrant.inputs.labelled.pool import read_pool
from calibrant.inputs.opened.base import Columns, Opened
from calibrant.planning.labelling.session import LabelSession
from calibrant.records import Scores, Study, load_scores
from calibrant.records.label_columns import ALONG, SPREAD, WEIGHT
from calibrant.records.label_store import LabelStore

# How a pool is read; its labelled rows are then called as in the schema.
_READING = (
    *("confidence", "correct", "model", "method", "question", "answer", "cluster"),
    *("scale", "right", "on_invalid"),
)


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
        rows, self._dropped = read_pool(
            self.given, {name: columns[name] for name in _READING if name in columns}
        )
        return LabelSession(rows, LabelStore(self.store, create=False))

    def labelled(self, columns: Mapping[str, Any]) -> tuple[LabelSession, pl.DataFrame]:
        """Return the pool with its labels, and the labelled rows with what their draw was."""
        session = self.session(columns)
        frame = session.labelled_rows()
        if not frame.height:
            raise InputError(
                "no answer of the pool has a label yet",
                source=str(self.store),
                hint=Hint("label some: {call}", call=Call("label serve", "TABLE")),
            )
        chances = (
            "drawn with equal chances"
            if equal_chances(frame[WEIGHT])
            else "drawn with unequal chances, which weights undo"
        )
        self.pool_rows = session.rows.height
        self.notes = [
            f"outcomes are {frame.height:,} labels of {session.rows.height:,} rows, by people; "
            f"{chances}. `calibrant label status` also uses what the rows without a label say, so "
            "that its numbers differ from these within the intervals"
        ]
        return session, frame

    def _load(self, rules: dict[str, Any]) -> Scores:
        _, frame = self.labelled(rules)
        canonical = dict.fromkeys(_READING)
        own = {
            "weights": None if equal_chances(frame[WEIGHT]) else WEIGHT,
            "features": [*(rules.get("features") or ()), ALONG, SPREAD],
        }
        return load_scores(frame, **{**rules, **canonical, **own, "scale": "fraction"})

    def labelled_scores(self, columns: Mapping[str, Any]) -> Scores:
        """Return the labelled rows, checked, with what their draw was."""
        return self._load(dict(columns))

    def scores_table(self) -> pl.DataFrame:
        """Return the labelled rows, under the names of the schema; each counts the same."""
        return self.probabilities_table({})[0]

    def probabilities_table(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the labelled rows, under the names of the schema; each counts the same."""
        frame = self.labelled(columns)[1]
        refuse_unequal(frame[WEIGHT], str(self.store))
        return without_draw(frame), {}

    def every_row(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the labelled rows, whatever their chance was to be drawn."""
        return without_draw(self.labelled(columns)[1]), {}

    def compared(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the labelled rows for a comparison: its questions all had the same chance."""
        session, frame = self.labelled(columns)
        refuse_unequal(frame[WEIGHT], str(self.store))
        whole = session.rows.group_by("question_id").len(name="rows")
        made = frame.group_by("question_id").len(name="made")
        touched = made.join(whole, on="question_id", how="left")
        part = touched.filter(pl.col("made") < pl.col("rows"))["question_id"]
        designs = [wave.design for wave in session.store.waves()]
        refuse_incomplete(part.len(), touched.height, designs, str(self.store))
        return without_draw(frame.filter(~pl.col("question_id").is_in(part.implode()))), {}
