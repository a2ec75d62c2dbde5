"""What is given to a comparison: tables, a study or foreign logs, and the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.inputs.draws import meaning_scores
from calibrant.inputs.opened.base import Columns, Opened
from calibrant.records import source_name
from calibrant.records.tables import collect, column_names, scan_table

_CANDIDATE_COLUMNS = ("question_id", "judge", "author", "confidence")


@dataclass(frozen=True, slots=True)
class CompareInput:
    """A scores table, the candidates, and the rules that this kind of input goes by.

    `rules` are those of reading the table, `stated` is how the document tells them: a log is
    asked for its scale when it is opened, and gives fractions from then on.
    """

    table: Any
    pool: pl.DataFrame | None
    rules: dict[str, Any]
    stated: dict[str, Any]
    dropped: dict[str, int] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)


def compare_input(
    opened: Opened,
    candidates: Any,
    *,
    on_invalid: str | None,
    graded: bool,
    scale: str | None,
    right: str | None,
    repeats: bool,
    columns: Columns,
    by: Sequence[str] = (),
) -> CompareInput:
    """Return the scores and candidates of what was opened.

    A study and a log hold refusals and grades that are shares: rows that break a rule are left
    out and counted unless the caller says otherwise.
    """
    if opened.holds_only_draws(columns):
        # Draws become the scores of Sem1 and Sem2, whose columns have the names of the schema.
        draws = opened.draws(columns)
        table: Any = None if draws is None else meaning_scores(draws, keep=by)
        columns, record = {}, True
    else:
        table, columns = opened.compared(columns)
        record = opened.whole_record
    if record:
        on_invalid, graded = on_invalid or "drop", True
    pool = opened.candidates() if candidates is None else candidates
    stated = {"on_invalid": on_invalid or "missing", "graded": graded, "scale": scale}
    stated |= {"right": right, "repeats": repeats}
    told = {**stated, "whole_record": True} if record else stated
    return CompareInput(
        table,
        None if pool is None else _candidates(pool),
        {**stated, "scale": opened.scale_of_scores(scale)},
        told,
        dict(opened.unreadable),
        columns,
    )


def _candidates(source: Any) -> pl.DataFrame:
    lazy = scan_table(source)
    present = column_names(lazy, source)
    missing = [name for name in _CANDIDATE_COLUMNS if name not in present]
    if missing:
        raise InputError(
            f"a candidates table needs the columns {', '.join(_CANDIDATE_COLUMNS)}; missing: "
            f"{', '.join(missing)}",
            source=source_name(source),
        )
    # Judges x authors x questions rows: texts are kept once each, as categories.
    texts = [name for name in ("question_id", "judge", "author", "answer") if name in present]
    table = collect(
        lazy.with_columns(
            pl.col(texts).cast(pl.String).cast(pl.Categorical),
            pl.col("confidence").cast(pl.Float64),
        ),
        source,
    )
    for name in ("question_id", "judge", "author"):
        if table[name].null_count():
            raise InputError(
                f"a row of the candidates names no {name}",
                source=source_name(source),
                row=int(table[name].is_null().arg_true()[0]) + 1,
                hint="fill it in, or leave the row out",
            )
    valid = table["confidence"].is_between(0, 1).fill_null(True)
    if not valid.all():
        row = int((~valid).arg_true()[0])
        raise InputError(
            f"a candidate's confidence must lie in [0, 1], got {table['confidence'][row]}",
            source=source_name(source),
            row=row + 1,
        )
    _same_answers(table, source)
    return table


def _same_answers(table: pl.DataFrame, source: Any) -> None:
    """Refuse a question where judges were shown different answers under one author's name."""
    if "answer" not in table.columns:
        return
    code = pl.col("answer").to_physical()
    # Methods have pools of their own, and may be about other answers.
    keys = ["question_id", "author", *(["method"] if "method" in table.columns else [])]
    odd = (
        table.lazy()
        .group_by(keys)
        .agg(code.min().alias("least"), code.max().alias("most"))
        .filter(pl.col("least") != pl.col("most"))
        .collect(engine="streaming")
    )
    if odd.height:
        first = odd.sort(pl.col("question_id", "author").cast(pl.String)).row(0, named=True)
        raise InputError(
            f"question {first['question_id']!r} has different answers by {first['author']!r}: "
            "all judges must score the same answers",
            source=source_name(source),
            hint="score the candidates again, or leave such questions out",
        )
