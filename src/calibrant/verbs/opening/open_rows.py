"""Any table, study or log as rows to look at: read once, texts of large ones in a file."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError, error_source
from calibrant.data import Scores, load_scores, read_table, scan_table
from calibrant.data.reading.names import columns_called
from calibrant.data.rules import RULES
from calibrant.data.sources.input import Input
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.sources.page_rows import StoredRows
from calibrant.data.sources.rows import LEFT_OUT, OWN, ROW, UNNAMED, Rows
from calibrant.data.tables import with_question_columns
from calibrant.verbs.opening.choose_source import is_large
from calibrant.verbs.opening.open_input import open_input

_FACET_VALUES = 60
# Whoever looks at rows wants all of them, as they are stated: no rule refuses them here.
_ALL: dict[str, Any] = {"repeats": True, "on_invalid": "drop", "graded": True, "mend": None}
_CHUNK = 500_000
# A file of so many rows per group is read at one place without reading the rest.
_GROUP = 10_000
_HALF = 0.5
_SENTENCES = {name: rule.sentence for name, rule in RULES.items()}


def open_rows(data: Any, table: Mapping[str, Any] | None = None) -> Rows:
    """Open the rows of whatever a verb takes.

    Parameters
    ----------
    data
        As for `calibrant.verbs.opening.open_input.open_input`.
    table
        How the table is read: columns by role, scale and rules, as every verb takes them.
    """
    options = ReadingOptions(**{**(table or {}), **_ALL})
    if is_large(data):
        return _staged(data, options)
    handle = open_input(data, options.correct, scale=options.scale)
    source, reading = handle.every_row(options)
    with error_source(handle.error_name):
        if isinstance(source, pl.DataFrame) and not source.height:
            handle.require_usable()
        try:
            scores = load_scores(_numbered(source), labels="optional", **asdict(reading))
        except InputError:
            # The table as it was given: no message names a column that the user does not have.
            load_scores(source, labels="optional", **asdict(reading))
            raise
    frame = _with_questions(_every(scores), handle)
    facets = _facets(frame, scores)
    index = _sorted([_index(frame, facets)])
    texts, note = _texts(frame, facets, scores), scores.reading.sentence or ""
    stored = StoredRows([_numbered(frame).lazy()], [frame.height])
    return Rows(index, stored, texts, facets, handle.draws(options), note)


def _every(scores: Scores) -> pl.DataFrame:
    """Return all rows, also those that break a rule: what cannot be read is empty there."""
    left, weightless = scores.rejected, scores.weightless
    if weightless.height:
        weightless = weightless.with_columns(pl.lit("its weight is 0").alias(LEFT_OUT))
    if not left.height:
        return _in_order([scores.frame, weightless])
    names = pl.col("question_id", "model", "method")
    readable = left.with_columns(
        *(pl.when(pl.col(n).is_between(0, 1)).then(n).alias(n) for n in ("confidence", "correct")),
        pl.col("rule").replace_strict(_SENTENCES, default=None).alias(LEFT_OUT),
        pl.when(names.cast(pl.String).str.len_chars() > 0).then(names).otherwise(pl.lit(UNNAMED)),
    )
    return _in_order([scores.frame, weightless, readable.drop("rule", "row")])


def _in_order(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of all parts as the file has them."""
    filled = [part for part in parts if part.height] or parts[:1]
    rows = pl.concat(filled, how="diagonal_relaxed")
    mixed = len(filled) > 1 and ROW in rows.columns
    return rows.sort(ROW, maintain_order=True) if mixed else rows


def _numbered(source: Any) -> Any:
    """Return a table with its rows numbered; several tables are read as they are."""
    if isinstance(source, list | tuple):
        return source
    frame = source if isinstance(source, pl.DataFrame) else read_table(source)
    return frame if ROW in frame.columns else frame.with_row_index(ROW, offset=1)


def _texts(frame: pl.DataFrame, facets: Sequence[str], scores: Scores) -> dict[str, str]:
    """Return the columns of question, answer and reference by role, those that are there."""
    names = frame.columns
    long = [name for name in names if name not in {*facets, ROW}]
    texts = columns_called("question_text", long)
    question = "text" if "text" in long else next(iter(texts), None)
    request = scores.reading.columns.get("question_id", "")
    by_role = {
        "question": question
        or ("question_id" if columns_called("question_text", [request]) else None),
        "answer": next(iter(columns_called("answer", names)), None),
        "reference": next(iter(columns_called("reference", names)), None),
    }
    return {role: name for role, name in by_role.items() if name is not None}


def _facets(frame: pl.DataFrame, scores: Scores) -> list[str]:
    """Return columns with a few values each: groups to choose by."""
    equal = (name for names in scores.reading.same.values() for name in names)
    kinds = (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
    subset = frame.head(200_000)
    texts = (columns_called(use, frame.columns) for use in ("answer", "reference"))
    selection = {*OWN, ROW, LEFT_OUT, "cluster_id", *chain(*texts), *equal}
    return [
        name
        for name, kind in frame.schema.items()
        if name not in selection
        and (kind in kinds or kind.is_integer())
        and 1 < subset[name].n_unique() <= min(_FACET_VALUES, max(2, subset.height // 5))
        # What each method has one value of describes the method: it parts no answers.
        and (pairs := subset.select("method", name).drop_nulls()).n_unique()
        > pairs["method"].n_unique()
    ]


def _index(frame: pl.DataFrame, facets: Sequence[str]) -> pl.DataFrame:
    """Return the numbers of some rows, small enough that millions of them fit."""
    names = pl.col("model", "method", *facets).cast(pl.String).cast(pl.Categorical)
    confidence, grade = pl.col("confidence").fill_nan(None), pl.col("correct").cast(pl.Float32)
    return frame.select(names, confidence, grade, question=pl.col("question_id").hash())


def _sorted(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the most confidently wrong rows first; memory is little more than twice the table."""
    # Questions by their number: what is told of each of them has a place in an array.
    index = pl.concat(parts).with_columns(pl.col("question").rank("dense") - 1)
    confidence, wrong = index["confidence"].to_numpy(), index["correct"].to_numpy() < _HALF
    pair = (np.flatnonzero(wrong), np.flatnonzero(~wrong))
    order = [rows[np.argsort(-confidence[rows], kind="stable")].astype(np.uint32) for rows in pair]
    return index.with_row_index("place")[np.concatenate(order)]


def _with_questions(frame: pl.DataFrame, source: Input) -> pl.DataFrame:
    """Add the texts and properties of the questions, where they lie in a table of their own."""
    questions = source.questions()
    if questions is None or "question_id" not in questions.columns:
        return frame
    fresh = [name for name in questions.columns if name not in frame.columns]
    distinct = questions.with_columns(pl.col("question_id").cast(pl.String)).unique(
        "question_id", keep="first", maintain_order=True
    )
    return with_question_columns(frame, distinct, fresh)


def _staged(data: Any, request: ReadingOptions) -> Rows:
    """Return the rows of a large table: its texts go to a file of this process, part by part."""
    folder = Path(tempfile.mkdtemp(prefix="calibrant-rows-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lazy = scan_table(data)
    if not str(data).endswith(".parquet") and not Path(data).is_dir():
        lazy.sink_parquet(folder / "given.parquet")
        lazy = pl.scan_parquet(folder / "given.parquet")
    total = lazy.select(pl.len()).collect().item()
    scores, rows, parts = None, list[pl.DataFrame](), list[pl.LazyFrame]()
    facets: list[str] = []
    for start in range(0, total, _CHUNK):
        part = lazy.slice(start, _CHUNK).collect().with_row_index(ROW, offset=start + 1)
        if scores is not None:
            # Later parts are read as the first one was.
            made, scale = scores.reading.options, scores.reading.scale
            names = {"question_id": "question"}
            roles = {names.get(n, n): c for n, c in scores.reading.columns.items()}
            selection = {name: column for name, column in roles.items() if name not in made}
            request = replace(request, **{**selection, "scale": scale, **made})
        scores = load_scores(part, labels="optional", **asdict(request))
        frame = _every(scores)
        facets = facets or _facets(frame, scores)
        frame.write_parquet(folder / f"{start}.parquet", row_group_size=_GROUP)
        parts.append(pl.scan_parquet(folder / f"{start}.parquet"))
        rows.append(_index(frame, facets))
    if scores is None:
        raise InputError("the table has no rows", source=str(data))
    texts, note = _texts(frame, facets, scores), scores.reading.sentence or ""
    stored = StoredRows(parts, [part.height for part in rows])
    return Rows(_sorted(rows), stored, texts, facets, sentence=note)
