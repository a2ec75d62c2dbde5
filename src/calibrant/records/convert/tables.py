"""Tables as logs: any table of confidences and outcomes, and the result tables of uqlm.

A table needs no import to be audited. Importing one checks its rows, lists those that break a rule
or cannot be read, and writes what is left as calibrant's own tables.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.records.convert.json_text import ReadOptions, as_text, finite_number, json_lines
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder
from calibrant.records.formats import column_separator, file_format
from calibrant.records.rules import RULES
from calibrant.records.scores import load_scores
from calibrant.records.tables import column_names, read_table, scan_table

UQLM, TABLE = "uqlm", "table"
_GRADES = ("response_correct", "correct", "is_correct")
_SCORERS = frozenset(
    {
        *("semantic_negentropy", "semantic_sets_confidence", "semantic_density"),
        *("noncontradiction", "entailment", "exact_match", "cosine_sim", "bert_score", "bleurt"),
        *("normalized_probability", "sequence_probability", "min_probability"),
        *("mean_token_negentropy", "min_token_negentropy", "probability_margin"),
        *("p_true", "monte_carlo_probability", "consistency_and_confidence"),
        *("functional_equivalence_rate", "ensemble_score", "avg", "max", "min", "median"),
    }
)


def is_table(path: Path) -> bool:
    """Return whether a file is a table with a confidence and an outcome under the usual names."""
    return {"confidence", "correct"} <= set(columns_of(path))


def is_uqlm(path: Path) -> bool:
    """Return whether a table has the columns that uqlm's results have."""
    columns = columns_of(path)
    return {"prompt", "response"} <= set(columns) and any(map(_is_scorer, columns))


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of a table, none where it cannot be read."""
    try:
        return column_names(scan_table(path), path)
    except InputError:
        return []


def _is_scorer(column: str) -> bool:
    return column in _SCORERS or (column.startswith("judge_") and column[6:].isdecimal())


# -- any table -----------------------------------------------------------------------------------


def read_plain_table(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a table of confidences and outcomes; rows that break a rule are listed."""
    builder = LogBuilder(TABLE, str(path))
    table, numbers = _readable(path, builder)
    columns = dict(options.columns)
    if options.grade is not None:
        columns.setdefault("correct", options.grade)
    loaded = load_scores(
        # The file itself where all of it can be read: messages then name it.
        table if builder.problems else path,
        **columns,
        on_invalid="drop",
        labels="optional",
        graded=True,
        scale=options.scale,
        repeats=True,
    )
    builder.expected, builder.expected_unit = table.height + len(builder.problems), "rows"
    if loaded.dropped:
        for row, rule in loaded.rejected.select("row", "rule").iter_rows():
            builder.problem(f"row {numbers[row - 1]}", f"{RULES[rule].sentence} ({rule})")
    frame = loaded.frame.with_columns(
        pl.int_range(pl.len()).over("question_id", "model", "method").alias("draw")
    )
    if frame["draw"].gt(0).any():
        builder.note("some questions have several rows: they are kept as repeated answers")
    for question in frame["question_id"].unique(maintain_order=True):
        builder.question(question_id=str(question), text="", kind="open", domain=path.stem)
    scores = frame.with_columns(
        pl.col("question_id", "model", "method").cast(pl.String), pl.lit(path.stem).alias("task")
    )
    return replace(builder.finish(), scores=scores)


def _readable(path: Path, builder: LogBuilder) -> tuple[pl.DataFrame, Sequence[int]]:
    """Return the rows that can be read, and their numbers; the others are listed."""
    try:
        table = read_table(path)
        return table, range(1, table.height + 1)
    except InputError:
        kind = file_format(path)
        if kind == "csv":
            rows = dict(_csv_rows(path, builder))
        elif kind == "jsonl":
            rows = dict(json_lines(path, builder))
        else:
            raise
    if not rows:
        raise InputError("no row of the table can be read", source=str(path))
    return pl.DataFrame(list(rows.values()), infer_schema_length=None, strict=False), list(rows)


def _csv_rows(path: Path, builder: LogBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number, cells) of the rows that have as many cells as the header."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = list(csv.reader(file, delimiter=column_separator(path)))
    header = lines[0]
    for number, cells in enumerate(lines[1:], start=1):
        if len(cells) != len(header):
            builder.problem(
                f"row {number}", f"{len(cells)} cells where the header has {len(header)}"
            )
            continue
        yield number, {key: cell or None for key, cell in zip(header, cells, strict=True)}


# -- uqlm ----------------------------------------------------------------------------------------


def read_uqlm(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a table that ``UQResult.to_df()`` made: the response is draw 0, the samples follow."""
    builder = LogBuilder(UQLM, str(path))
    table, numbers = _readable(path, builder)
    missing = [column for column in ("prompt", "response") if column not in table.columns]
    if missing:
        raise InputError(f"a table of uqlm has a column {missing[0]!r}", source=str(path))
    builder.expected, builder.expected_unit = table.height + len(builder.problems), "rows"
    grade = _grade_column(table.columns, options, builder)
    scorers = [column for column in table.columns if _is_scorer(column)]
    known = {"prompt", "response", "sampled_responses", grade, *scorers}
    others = [column for column in table.columns if column not in known]
    if others:
        builder.note(f"columns that are no scores of uqlm: {', '.join(others)}")
    for number, row in zip(numbers, table.iter_rows(named=True), strict=True):
        try:
            _add_row(builder, number, row, grade, scorers, options)
        except (TypeError, ValueError, SyntaxError) as error:
            builder.problem(f"row {number}", f"not the layout of a result: {error!r}")
    return builder.finish()


def _grade_column(columns: Sequence[str], options: ReadOptions, builder: LogBuilder) -> str | None:
    wanted = options.grade or options.columns.get("correct")
    if wanted is not None and wanted not in columns:
        raise InputError(
            f"there is no column {wanted!r}",
            source=builder.source,
            hint=f"the table has: {', '.join(columns)}",
        )
    found = wanted or next((name for name in _GRADES if name in columns), None)
    if found is None:
        builder.note("uqlm grades nothing: add a column of grades and name it as grade")
    return found


def _add_row(
    builder: LogBuilder,
    number: int,
    row: Mapping[str, Any],
    grade: str | None,
    scorers: Sequence[str],
    options: ReadOptions,
) -> None:
    question = f"row {number}"
    response = as_text(row["response"])
    if response is None:
        raise ValueError("there is no response")
    correct = _grade_of(row[grade]) if grade is not None else None
    samples = _samples(row.get("sampled_responses"))
    key = {"question_id": question, "model": "model", "task": UQLM}
    builder.question(
        question_id=question, text=as_text(row["prompt"]) or "", kind="open", domain=UQLM
    )
    for draw, text in enumerate([response, *samples]):
        builder.draw(
            **key,
            draw=draw,
            text=text if options.texts else None,
            answer=text,
            correct=correct if draw == 0 else None,
            reason=None if draw == 0 and correct is not None else FILTERED_ONLY,
            grader=grade if draw == 0 else None,
        )
    for scorer in scorers:
        value = finite_number(row[scorer])
        if value is None:
            builder.problem(question, f"{scorer} is no number")
            continue
        builder.score(
            **key,
            draw=0,
            method=scorer,
            answer=response,
            confidence=options.fraction(value),
            correct=correct,
        )


def _grade_of(value: Any) -> float | None:
    return float(value) if isinstance(value, bool) else finite_number(value)


def _samples(value: Any) -> list[str]:
    """Return the sampled responses; in a CSV they are the text of a Python list."""
    if value is None:
        return []
    found = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(found, list | tuple):
        raise ValueError(f"sampled_responses is no list: {value!r:.40}")
    return [str(text) for text in found]
