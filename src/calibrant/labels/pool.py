"""Opening a pool with its store of labels: for labelling, and as an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data import Scores, Study, load_scores, source_name
from calibrant.data.formats import store_path
from calibrant.data.groupings import search_dependence, under_own_names
from calibrant.data.label_schema import ALONG, SPREAD, WEIGHT
from calibrant.data.label_store import LabelStore
from calibrant.data.reading import FRACTION, Reading
from calibrant.data.reading.names import name_roles
from calibrant.data.sources.drawn_labels import (
    equal_chances,
    refuse_incomplete,
    refuse_unequal,
    without_draw,
)
from calibrant.data.sources.input import AuditedTable, Input
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.study import as_study
from calibrant.data.tables import column_names, scan_table, with_question_columns
from calibrant.labels.labelling.pools import peer_agreement
from calibrant.labels.labelling.session import LabelledBlock, LabelSession
from calibrant.metrics.stats.dependence import Dependence

PEERS = "label_peers"


@dataclass(slots=True)
class OpenPool:
    """A pool with its labels.

    Parameters
    ----------
    session
        Rows joined with the store.
    source
        How messages call the pool.
    dropped
        Rows left out, by rule.
    judge, peers
        Side information in use.
    in_file
        Outcomes that stand in the file itself.
    reading, assumed
        How the table was read, and roles that no column has.
    """

    session: LabelSession
    source: str
    dropped: dict[str, int]
    judge: str | None
    peers: bool
    in_file: int
    reading: Reading
    assumed: tuple[str, ...] = ()

    def dependence(self, block: LabelledBlock) -> Dependence:
        """Search the labelled rows of a model for such as are right and wrong together.

        Where clusters are named, they alone are looked at.
        """
        pool = block.pool
        rows = self.session.rows[block.rows[pool.labelled]].drop(PEERS, strict=False)
        if self.reading.cluster is not None:
            rows = rows.select(pl.col("cluster_id").alias(self.reading.cluster))
        else:
            rows = rows.drop(self.judge or [], strict=False)
            rows = under_own_names(rows, self.reading, self.assumed)
        return search_dependence(rows, pool.confidence[pool.labelled], pool.correct[pool.labelled])


def read_pool(table: Any, asked: ReadingOptions) -> Scores:
    """Return the checked rows of a pool; ids and answers are text, exactly as they are written.

    A missing outcome column means 'no label yet'. A study gives its scores, with the texts of
    its questions.
    """
    study = as_study(table)
    rows = table if study is None else _with_texts(study)
    return load_scores(rows, labels="optional", **asdict(asked))


def _with_texts(study: Study) -> pl.DataFrame:
    scores = study.read("scores")
    if not study.has("questions"):
        return scores
    questions = study.read("questions")
    names = [name for name in ("text", "references", "choices") if name in questions.columns]
    fresh = [name for name in names if name not in scores.columns]
    return with_question_columns(scores, questions, fresh)


def open_pool(
    table: Any,
    *,
    asked: ReadingOptions,
    labels: str | Path | None = None,
    judge: str | None = None,
    peers: bool = False,
    existing: str = "ignore",
    create: bool = True,
    **drawn: Any,
) -> OpenPool:
    """Open a pool and its store; the user's file is read and never written.

    A table in which every row has an outcome needs no word on how rows were chosen: all were. How
    items are `drawn` is said as for a `LabelSession`.
    """
    scores = read_pool(table, asked)
    rows = scores.frame
    source = source_name(table)
    side = []
    if judge is not None:
        _check_judge(rows, judge, source)
        side.append(judge)
    if peers:
        rows = rows.with_columns(peer_agreement(rows).alias(PEERS))
        side.append(PEERS)
    outcomes = rows["correct"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    store = _store(table, labels, create=create)
    with store.removed_if_unused():
        choice = outcomes if existing == "random" or np.isfinite(outcomes).all() else None
        session = LabelSession(rows, store, side=side, existing=choice, **drawn)
        first = store.waves()
        if first and len(session.keys) - session.existing_items > first[0].frame:
            raise InputError(
                f"the table has {len(session.keys):,} answers, {first[0].frame:,} when its labels "
                "were drawn: the new ones had no chance to be drawn",
                source=source,
                hint="label the new rows as a table of their own",
            )
    in_file = int(np.isfinite(outcomes).sum())
    dropped, reading = dict(scores.dropped), scores.reading
    return OpenPool(session, source, dropped, judge, peers, in_file, reading, scores.assumed)


def states_confidence(table: Any) -> bool:
    """Return whether a column is called like a confidence; a study has its own."""
    if as_study(table) is not None:
        return True
    names = column_names(scan_table(table), source_name(table))
    return any(name_roles(name).stated >= 2 for name in names)


def _store(table: Any, labels: str | Path | None, *, create: bool) -> LabelStore:
    """Return the store; whoever only looks leaves no file behind."""
    companion = labels is not None or isinstance(table, str | Path | Study)
    if not create and not (companion and _place(table, labels).exists()):
        return LabelStore(":memory:")
    return LabelStore(_place(table, labels))


def _place(table: Any, labels: str | Path | None) -> Path:
    if labels is not None:
        return Path(labels)
    place = table.path if isinstance(table, Study) else table
    if not isinstance(place, str | Path):
        hint = Hint("say where to keep them with {labels}", labels="labels.sqlite")
        raise InputError("a table in memory has no place beside it for its labels", hint=hint)
    return store_path(place)


def _check_judge(rows: pl.DataFrame, judge: str, source: str) -> None:
    if judge not in rows.columns:
        raise InputError(f"there is no column {judge!r} of a judge", source=source)
    verdict = rows[judge].cast(pl.Float64, strict=False)
    outside = verdict.is_null() | verdict.is_nan() | (verdict < 0) | (verdict > 1)
    if outside.any():
        rule = f"the judge's verdict lies in [0, 1] for every item (column {judge})"
        raise InputError(rule, source=source, row=int(outside.arg_max() or 0) + 1)


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
