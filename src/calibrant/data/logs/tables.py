"""Tables as logs: any table of confidences and outcomes, and the result tables of uqlm.

A table needs no import to be audited. Importing one checks its rows, lists those that break a rule
or cannot be read, and writes what is left as calibrant's own tables.
"""

import ast
import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.data.formats import column_separator, file_format
from calibrant.data.logs.exchange import Exchange, LoggedGrade, Raw, grade_value, read_exchanges
from calibrant.data.logs.json_text import KINDS, as_text, finite_number, json_lines
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.rules import RULES
from calibrant.data.scores import load_scores
from calibrant.data.tables import collect, scan_table

_UQLM = "uqlm"
_GRADES = ("response_correct", "correct", "is_correct")
_SCORERS = KINDS[_UQLM]["table"][0][2]


# -- any table -----------------------------------------------------------------------------------


def read_table(log: ForeignLog) -> None:
    """Read a table of confidences and outcomes; rows that break a rule are listed."""
    path, options = log.path, log.options
    table, numbers = _readable(path, log)
    columns: dict[str, Any] = {"correct": options.grade, **options.columns}
    loaded = load_scores(
        # The file itself where all of it can be read: messages then name it.
        table if log.problems else path,
        **columns,
        on_invalid="drop",
        labels="optional",
        graded=True,
        scale=options.scale,
        repeats=True,
    )
    log.expected, log.expected_unit = table.height + len(log.problems), "rows"
    if loaded.dropped:
        for row, rule in loaded.rejected.select("row", "rule").iter_rows():
            log.problem(f"row {numbers[row - 1]}", f"{RULES[rule].sentence} ({rule})")
    frame = loaded.frame.with_columns(
        pl.int_range(pl.len()).over("question_id", "model", "method").alias("draw")
    )
    if frame["draw"].gt(0).any():
        log.note("some questions have several rows: they are kept as repeated answers")
    for question in frame["question_id"].unique(maintain_order=True):
        log.question(question_id=str(question), text="", kind="open", domain=path.stem)
    log.finish()
    log.scores = frame.with_columns(
        pl.col("question_id", "model", "method").cast(pl.String), pl.lit(path.stem).alias("task")
    )


def _readable(path: Path, log: ForeignLog) -> tuple[pl.DataFrame, Sequence[int]]:
    """Return the rows that can be read, and their numbers; the others are listed."""
    try:
        table = collect(scan_table(path), path)
        return table, range(1, table.height + 1)
    except InputError:
        kind = file_format(path)
        if kind == "csv":
            rows = dict(_csv_rows(path, log))
        elif kind == "jsonl":
            rows = dict(json_lines(path, log))
        else:
            raise
    if not rows:
        raise InputError("no row of the table can be read")
    return pl.DataFrame(list(rows.values()), infer_schema_length=None, strict=False), list(rows)


def _csv_rows(path: Path, log: ForeignLog) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (row number, cells) of the rows that have as many cells as the header."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = list(csv.reader(file, delimiter=column_separator(path)))
    header = lines[0]
    for number, cells in enumerate(lines[1:], start=1):
        if len(cells) == len(header):
            yield number, {key: cell or None for key, cell in zip(header, cells, strict=True)}
        else:
            log.problem(f"row {number}", f"{len(cells)} cells where the header has {len(header)}")


# -- uqlm ----------------------------------------------------------------------------------------


def read_uqlm(log: ForeignLog) -> None:
    """Read a table that ``UQResult.to_df()`` made: the response is draw 0, the samples follow."""
    table, numbers = _readable(log.path, log)
    missing = [column for column in ("prompt", "response") if column not in table.columns]
    if missing:
        raise InputError(f"a table of uqlm has a column {missing[0]!r}")
    log.expected, log.expected_unit = table.height + len(log.problems), "rows"
    grade = _grade_column(table.columns, log)
    judges = [c for c in table.columns if c.startswith("judge_") and c[6:].isdecimal()]
    scorers = [column for column in table.columns if column in (*_SCORERS, *judges)]
    read_columns = {"prompt", "response", "sampled_responses", grade, *scorers}
    peers = [column for column in table.columns if column not in read_columns]
    if peers:
        log.note(f"columns that are no scores of uqlm: {', '.join(peers)}")
    rows = zip(numbers, table.iter_rows(named=True), strict=True)
    read_exchanges(
        log,
        ((f"row {number}", (f"row {number}", row)) for number, row in rows),
        lambda row: _responses(log, grade, scorers, *row),
    )


def _grade_column(columns: Sequence[str], log: ForeignLog) -> str | None:
    target_names = log.options.grade or log.options.columns.get("correct")
    if target_names is not None and target_names not in columns:
        hint = f"the table has: {', '.join(columns)}"
        raise InputError(f"there is no column {target_names!r}", hint=hint)
    grade = target_names or next((name for name in _GRADES if name in columns), None)
    if grade is None:
        log.note("uqlm grades nothing: add a column of grades and name it as grade")
    return grade


def _responses(
    log: ForeignLog, grade: str | None, scorers: Sequence[str], question: str, row: Raw
) -> Iterator[Exchange]:
    response = as_text(row["response"])
    if response is None:
        raise ValueError("there is no response")
    correct = grade_value(row[grade]) if grade is not None else None
    values = {scorer: finite_number(row[scorer]) for scorer in scorers}
    for scorer, value in values.items():
        if value is None:
            log.problem(question, f"{scorer} is no number")
    first = Exchange(
        question_id=question,
        question=as_text(row["prompt"]) or "",
        answer=response,
        task=_UQLM,
        grade=LoggedGrade(correct, None if correct is not None else FILTERED_ONLY, grade),
        scores={n: log.options.fraction(x) for n, x in values.items() if x is not None},
    )
    yield first
    samples = row.get("sampled_responses")
    # In a CSV they are the text of a Python list.
    samples = ast.literal_eval(samples) if isinstance(samples, str) else samples
    if not isinstance(samples, list | tuple | None):
        raise ValueError(f"sampled_responses is no list: {samples!r:.40}")
    for text in samples or ():
        yield replace(first, answer=str(text), grade=LoggedGrade(None, FILTERED_ONLY), scores={})
