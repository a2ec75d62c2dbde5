"""A pool with its store of labels, as an input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data import Scores, Study
from calibrant.data.label_schema import ALONG, SPREAD, WEIGHT
from calibrant.data.label_store import LabelStore
from calibrant.data.reading import FRACTION
from calibrant.data.sources.drawn_labels import (
    equal_chances,
    refuse_incomplete,
    refuse_unequal,
    without_draw,
)
from calibrant.data.sources.input import AuditedTable, Input
from calibrant.data.sources.reading import ReadingOptions
from calibrant.labels.labelling.session import LabelSession
from calibrant.labels.pool import read_pool


class OpenLabels(Input):
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

    def _pool(self, request: ReadingOptions) -> Scores:
        return read_pool(self.given, replace(request, graded=False, repeats=False, weights=None))

    def labelled(self, asked: ReadingOptions) -> tuple[LabelSession, pl.DataFrame]:
        """Return the pool with its labels, and the labelled rows with what their draw was.

        Outcomes in the pool itself are left out: nobody knows how their rows were chosen.
        """
        session = LabelSession(self._pool(asked).frame, LabelStore(self.store, create=False))
        frame = session.labelled_rows()
        if not frame.height:
            hint = Hint("label some: {call}", call=Call("label serve", "TABLE"))
            rule = "no answer of the pool has a label yet"
            raise InputError(rule, source=str(self.store), hint=hint)
        equal = equal_chances(frame[WEIGHT])
        chances = "equal chances" if equal else "unequal chances, which weights undo"
        self.pool_rows = session.rows.height
        self.notes = [
            f"outcomes are {frame.height:,} labels of {session.rows.height:,} rows, by people; "
            f"drawn with {chances}. `calibrant label status` also uses what the rows without a "
            "label say, so that its numbers differ from these within the intervals"
        ]
        return session, frame

    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the labelled rows, with what their draw was."""
        _, frame = self.labelled(asked)
        weights = None if equal_chances(frame[WEIGHT]) else WEIGHT
        reading = replace(_by_schema(asked), on_invalid=None, mend=None, weights=weights)
        return frame, reading, [*by, ALONG, SPREAD]

    def probabilities_table(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return the labelled rows, under the names of the schema; each counts the same."""
        frame = self.labelled(asked)[1]
        refuse_unequal(frame[WEIGHT], str(self.store))
        return without_draw(frame), _by_schema(asked)

    def every_row(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return all rows of the pool; those that nobody labelled have no grade."""
        pool = self._pool(asked)
        session = LabelSession(pool.frame, LabelStore(self.store, create=False))
        grades = pl.Series(session.labels()[0][session.item_of], nan_to_null=True)
        rows = pool.frame.with_columns(correct=grades)
        unscored = pool.unscored.drop("correct", strict=False)
        return pl.concat([rows, unscored], how="diagonal"), _by_schema(asked)

    def compared(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return the labelled rows for a comparison: its questions all had the same chance."""
        session, frame = self.labelled(asked)
        refuse_unequal(frame[WEIGHT], str(self.store))
        whole = session.rows.group_by("question_id").len(name="rows")
        counts = frame.group_by("question_id").len(name="made")
        touched = counts.join(whole, on="question_id", how="left")
        part = touched.filter(pl.col("made") < pl.col("rows"))["question_id"]
        designs = [wave.design for wave in session.store.waves()]
        refuse_incomplete(part.len(), touched.height, designs, str(self.store))
        whole_questions = frame.filter(~pl.col("question_id").is_in(part.implode()))
        return without_draw(whole_questions), _by_schema(asked)


def _by_schema(request: ReadingOptions) -> ReadingOptions:
    """Return how rows of a pool are read once more: all of them is as in the schema."""
    return replace(request.by_schema(), scale=FRACTION, right=None)
