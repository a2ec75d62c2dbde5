"""Opening a pool for labelling: its rows, byte for byte, and the store beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data import Scores, Study, load_scores, source_name
from calibrant.data.formats import store_path
from calibrant.data.groupings import search_dependence, under_own_names
from calibrant.data.label_store import LabelStore
from calibrant.data.reading import Reading
from calibrant.data.reading.names import name_roles
from calibrant.data.sources.reading import ReadingOptions
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
        """Search the labelled rows of a model for such as are right and wrong together."""
        pool = block.pool
        rows = self.session.rows[block.rows[pool.labelled]].drop(PEERS, strict=False)
        rows = under_own_names(
            rows.drop(self.judge or [], strict=False), self.reading, self.assumed
        )
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
    return OpenPool(
        session,
        source,
        dict(scores.dropped),
        judge,
        peers,
        in_file,
        scores.reading,
        scores.assumed,
    )


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
        raise InputError(
            "a table in memory has no place beside it for its labels",
            hint=Hint("say where to keep them with {labels}", labels="labels.sqlite"),
        )
    return store_path(place)


def _check_judge(rows: pl.DataFrame, judge: str, source: str) -> None:
    if judge not in rows.columns:
        raise InputError(f"there is no column {judge!r} of a judge", source=source)
    verdict = rows[judge].cast(pl.Float64, strict=False)
    outside = verdict.is_null() | verdict.is_nan() | (verdict < 0) | (verdict > 1)
    if outside.any():
        rule = f"the judge's verdict lies in [0, 1] for every item (column {judge})"
        raise InputError(rule, source=source, row=int(outside.arg_max() or 0) + 1)
