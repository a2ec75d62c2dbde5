"""A table of a judge's scores and people's: ratings, yes/no, words in an order, or pairs.

Empty cells of people are items that nobody rated. Which column is meant is named by the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import TABLE
from calibrant.data.judge_cells import JudgeCells, JudgeColumns, Kind, RatingScale, cell_texts
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import recognise
from calibrant.data.tables import read_table, source_name

PANEL = "panel (mean)"
ROW, _PLACE = "row", "_row of the table"
"""Column of a batch that says which row of the table is meant."""
# Columns that are taken for a role where nobody names one.
_NAMES = {
    "model": "model system model_name model_id llm generator model_uid",
    "question": "question_id item item_id prompt_id question prompt instr instruction example_id "
    "doc_id id",
    "answer": "answer response output summary completion prediction text model_answer",
}
_JUDGE = re.compile(r"judge|grader|rubric|model_graded|llm|gpt|claude|gemini|llama", re.I)
_HUMAN = re.compile(r"human|people|expert|annot|rater|crowd|person", re.I)


def likely_columns(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that are called like a judge's, and like people's.

    Examples
    --------
    >>> likely_columns(["item", "gpt4", "expert1", "expert2"])
    {'judge': ['gpt4'], 'human': ['expert1', 'expert2']}
    """
    human = [name for name in names if _HUMAN.search(name)]
    judge = [name for name in names if _JUDGE.search(name) and name not in human]
    return {"judge": judge, "human": human}


@dataclass(frozen=True)
class JudgeTable:
    """Scores and ratings of the same items, as numbers; `frame` has the rows they come from.

    Parameters
    ----------
    frame
        Rows with a score of every judge.
    kind
        ``ratings``, ``yes/no`` or ``pairs``.
    rows
        Number of each row in the table that was read, from 1.
    scores, scales
        Scores by judge, shape (N,), and the scale of each.
    people, human_scale
        Ratings, shape (N, people), NaN where there is none, and their scale.
    item
        What each row is about, as a code.
    models
        Names of the models; empty where there are none.
    sides
        Codes of the models of a row: one column for ratings, two for pairs, or none.
    first
        1 where the first side of a pair was shown first, or None.
    swapped
        The judge's verdict in the other order of a pair, or None.
    left_out, notes
        Rows left out by reason, and what is to be known of the reading.
    """

    frame: pl.DataFrame
    columns: JudgeColumns
    kind: Kind
    rows: Indices
    scores: Mapping[str, Floats]
    scales: Mapping[str, RatingScale]
    people: Floats
    human_scale: RatingScale
    item: Indices
    models: tuple[str, ...]
    sides: Indices
    first: Floats | None = None
    swapped: Floats | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_judge_table(data: Any, columns: JudgeColumns, rated: Sequence[Any] = ()) -> JudgeTable:
    """Return the judge table that `data` holds, or say what is unclear and what to type.

    Batches that people `rated` fill the cells of the rows that they name.
    """
    frame, source, judges = open_judged(data), source_name(data), columns.judge
    single = [columns.first, columns.swapped, columns.model, columns.question, columns.answer]
    by_name = [*judges, *columns.human, *columns.pairs, *columns.features, *filter(None, single)]
    require_known(by_name, frame.columns, "there is no column {}", source=source)
    for batch in rated:
        frame = _with_batch(frame, batch, list(columns.human))
    columns = _with_guesses(columns, frame)
    reader = JudgeCells(frame, source, columns, str(data) if isinstance(data, str) else TABLE)
    kind, values, scales = reader.verdicts()
    scored = np.all([np.isfinite(values[name]) for name in judges], axis=0)
    people = np.column_stack([values[name][scored] for name in columns.human])
    if not scored.any():
        raise InputError("no row has a score of the judge", source=source)
    if not np.isfinite(people).any():
        rule = f"no row has a rating by people (column {', '.join(columns.human)})"
        hint = "let people rate about 100 rows, chosen at random, and leave the others empty"
        raise InputError(rule, source=source, hint=hint)
    if columns.swapped and len(judges) > 1:
        rule = "the other order is that of one judge, and several are named"
        raise InputError(f"{rule} (beside {judges[0]})", source=source)
    rows, missing = frame.filter(pl.Series(scored)), int((~scored).sum())
    names, sides = _models(rows, columns.pairs if kind == "pairs" else [columns.model or ""])
    first, swapped = (
        reader.sides(name)[scored] if name else None for name in (columns.first, columns.swapped)
    )
    item = np.arange(rows.height)
    if columns.question:
        item = np.unique(_names(rows, [columns.question]), return_inverse=True)[1].ravel()
    return JudgeTable(
        frame=rows,
        columns=columns,
        kind=kind,
        rows=np.flatnonzero(scored) + 1,
        scores={name: values[name][scored] for name in judges},
        scales={name: scales[name] for name in judges},
        people=people,
        human_scale=scales[columns.human[0]],
        item=item,
        models=names,
        sides=sides,
        first=first,
        swapped=swapped,
        left_out={"no score of the judge": missing} if missing else {},
        notes=tuple(reader.notes),
    )


def open_judged(data: Any) -> pl.DataFrame:
    """Return a table as it is; of another tool's log a column for all that anybody said."""
    reader = recognise(data) if isinstance(data, str | Path) else None
    if reader is None:
        return read_table(data)
    log = reader.read(Path(data), ReadOptions(opinions=True))
    if not log.opinions:
        rule = f"nobody scored an answer in this log ({reader.what})"
        raise InputError(rule, source=source_name(data))
    return pl.DataFrame(log.opinions, infer_schema_length=None)


def _with_batch(frame: pl.DataFrame, batch: Any, people: list[str]) -> pl.DataFrame:
    """Return the rows with the ratings of a batch, whose column `row` says where each belongs."""
    filled, source = read_table(batch), source_name(batch)
    require_known([ROW, *people], filled.columns, "there is no column {}", source=source)
    cells = [pl.col(name).cast(pl.String).replace("", None) for name in people]
    filled = filled.select(pl.col(ROW).cast(pl.Int64, strict=False).alias(_PLACE), *cells)
    strange = ~filled[_PLACE].is_between(1, frame.height).fill_null(False)
    if strange.any():
        rule = f"the table has rows 1 to {frame.height:,}, and this is none of them"
        raise InputError(rule, source=source, row=int(strange.arg_max() or 0) + 1)
    numbered = frame.with_columns(
        pl.col(people).cast(pl.String), pl.int_range(1, pl.len() + 1).alias(_PLACE)
    )
    return numbered.update(filled, on=_PLACE).drop(_PLACE)


def _with_guesses(columns: JudgeColumns, frame: pl.DataFrame) -> JudgeColumns:
    selection = {*columns.judge, *columns.human, *columns.pairs}
    lower = {name.lower(): name for name in reversed(frame.columns) if name not in selection}
    matches: dict[str, Any] = {
        role: next((lower[name] for name in names.split() if name in lower), None)
        for role, names in _NAMES.items()
    }
    if columns.pairs:
        matches["model"] = None
    elif not columns.model:
        matches["pairs"] = _side_columns(frame, selection)
    return replace(columns, **{k: v for k, v in matches.items() if v and not getattr(columns, k)})


def _side_columns(frame: pl.DataFrame, selection: set[str]) -> tuple[str, str] | None:
    """Return two columns of names that differ by `a` and `b` and hold the same few names."""
    for name in frame.columns:
        peer = re.sub(r"([_\s-])a$", r"\1b", name)
        if peer == name or peer not in frame.columns or {name, peer} & selection:
            continue
        a, b = (set(cell_texts(frame[part]).drop_nulls()) for part in (name, peer))
        if a & b and len(a | b) <= max(2, frame.height // 4):
            return (name, peer)
    return None


def _models(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[tuple[str, ...], Indices]:
    """Return the names in these columns, and which stands where; of a single one nothing."""
    cells = _names(frame, [name for name in columns if name])
    names, codes = np.unique(cells, return_inverse=True)
    if len(names) < 2:
        return (), np.zeros((frame.height, 0), np.intp)
    return tuple(names.tolist()), codes.reshape(cells.shape)


def _names(frame: pl.DataFrame, columns: Sequence[str]) -> Array:
    return frame.select(pl.col(columns).cast(pl.String).fill_null("")).to_numpy().astype(str)
