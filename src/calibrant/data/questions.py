"""Questions from a file, recognised by content, and yes/no questions from the rows of a table."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from msgspec import UNSET

from calibrant.core.errors import IN_MEMORY, InputError, error_source, require_known
from calibrant.data import check_table, read_table
from calibrant.data.formats import read_bytes, separator_of
from calibrant.data.question_layouts import LAYOUTS, Layout, LayoutQuestion, Row
from calibrant.data.study import QUESTIONS, TabularTask
from calibrant.data.text_tables import check_repeated

__all__ = ["LAYOUTS", "TabularTask", "load_questions", "tabular_questions"]
_MMLU_HEADER = ("question", "A", "B", "C", "D", "letter")


def load_questions(source: Any, *, layout: str = "auto", limit: int | None = None) -> pl.DataFrame:
    """Return a ``questions`` table.

    Parameters
    ----------
    source
        Path of a jsonl, json, csv, tsv (each also gzipped) or parquet file, or a dataframe.
    layout
        Name of a layout (see `LAYOUTS`), or ``auto`` to recognise it by its columns.
    limit
        Keep the first `limit` questions.

    Examples
    --------
    >>> frame = load_questions(pl.DataFrame({"question": ["2 + 2?"], "answer": ["4"]}))
    >>> frame["references"].to_list()
    [[['4']]]
    """
    name = str(source) if isinstance(source, str | Path) else f"<{type(source).__name__}>"
    with error_source(name):
        rows = [_conversation(row) for row in _rows(source)]
        if not rows:
            raise InputError("the file holds no questions")
        reader = recognise(rows[0]) if layout == "auto" else LAYOUTS[layout]
        missing = sorted(reader.columns - rows[0].keys())
        if missing:
            raise InputError(
                f"the layout {reader.name} ({reader.about}) has columns {', '.join(missing)}; "
                f"the file has {', '.join(map(str, rows[0]))}"
            )
        return _table(rows[:limit], reader)


def _conversation(row: Row) -> Row:
    """Return a row of ``messages`` as a question: its last turn is the text, the rest is kept."""
    turns = row.get("messages")
    if not isinstance(turns, list) or not turns or not isinstance(turns[-1], Mapping):
        return row
    content = turns[-1].get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(str(part["text"]) for part in parts if "text" in part)
    return {"question_id": None, "text": text, **row, "messages": orjson.dumps(turns).decode()}


def recognise(row: Row) -> Layout:
    """Return the first layout that a row fits."""
    for layout in LAYOUTS.values():
        if layout.recognises(row):
            return layout
    raise InputError(
        f"no known layout of questions has the columns {', '.join(map(str, row))}",
        hint="write a table with question_id, text and references, or use one of the layouts "
        + ", ".join(LAYOUTS),
    )


def _table(rows: list[Row], layout: Layout) -> pl.DataFrame:
    converted, rows_by_id = [], dict[str, int]()
    for number, row in enumerate(rows, 1):
        try:
            question = layout.question(row)
        except (KeyError, IndexError, TypeError, ValueError, SyntaxError, AttributeError) as error:
            raise InputError(
                f"the row does not have the layout {layout.name}: {type(error).__name__}: {error}",
                row=number,
            ) from None
        if not isinstance(question.text, str) or not question.text.strip():
            raise InputError(f"a question has a text, got {question.text!r}", row=number)
        question.text = question.text.strip()
        identity = question.question_id
        question.question_id = f"q{number:06d}" if identity is None else str(identity)
        if question.kind is UNSET:
            question.kind = "choice" if question.choices else "open"
        first = rows_by_id.setdefault(question.question_id, number)
        if first != number:
            name = question.question_id
            rule = f"question_id {name!r} stands for one question, but row {first} has it too"
            raise InputError(rule, row=number)
        converted.append(question)
    return _frame(converted)


def _frame(questions: list[LayoutQuestion]) -> pl.DataFrame:
    declared = QUESTIONS.columns
    names = dict.fromkeys([*declared, *(name for item in questions for name in item.features)])
    series = []
    for name in names:
        own, kind = name in declared, declared.get(name)
        values = [getattr(q, name) if own else q.features.get(name) for q in questions]
        if own and name not in QUESTIONS.required and all(value is None for value in values):
            continue
        try:
            series.append(pl.Series(name, values, dtype=kind, strict=own))
        except (TypeError, pl.exceptions.PolarsError) as error:
            rule = f"the column {name!r} of a questions table is {kind}: {error}"
            raise InputError(rule) from None
    return check_table(pl.DataFrame(series), QUESTIONS, source=IN_MEMORY)


# -- rows of any file ------------------------------------------------------------------------


def _rows(source: Any) -> list[Row]:
    if not isinstance(source, str | Path):
        return list(read_table(source).iter_rows(named=True))
    path = Path(source)
    if not path.is_file():
        raise InputError("there is no such file of questions")
    data = read_bytes(path)
    if data[:4] == b"PAR1":
        return list(read_table(path).iter_rows(named=True))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"the file is not UTF-8 text: {error}") from None
    return (_json_rows if text.lstrip()[:1] in ("{", "[") else _csv_rows)(text)


def _json_rows(text: str) -> list[Row]:
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        return list(_json_lines(text))
    if isinstance(whole, dict):
        lists = [value for value in whole.values() if _is_rows(value)]
        # A file of one row, or a table around the rows as in the original TriviaQA files.
        is_row = len(lists) != 1 or any(layout.recognises(whole) for layout in LAYOUTS.values())
        whole = [whole] if is_row else lists[0]
    if not _is_rows(whole):
        raise InputError("a JSON file of questions is a list of objects")
    rows: list[Row] = whole
    return rows


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(i, dict) for i in value)


def _json_lines(text: str) -> Iterable[Row]:
    # Not `splitlines`: a text of JSON may hold other signs that part lines, such as U+2028.
    lines = text.replace("\r", "\n").split("\n")
    for number, line in enumerate(filter(str.strip, lines), 1):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"not valid JSON: {error}", row=number) from None
        if not isinstance(row, dict):
            raise InputError(f"a row is an object, got {row!r}", row=number)
        yield row


def _csv_rows(text: str) -> list[Row]:
    delimiter = separator_of(text.split("\n", 1)[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = list(reader)
    except csv.Error as error:
        # A quote that opens a cell and closes in another row would join the rows between.
        rule = f"the file cannot be read near line {reader.line_num}: {error}"
        hint = 'double a quote that belongs to the text (""), and close every quoted cell'
        raise InputError(rule, hint=hint) from None
    start = _header_line(lines)
    if start is None:
        header, body, start = list(_MMLU_HEADER), lines, -1
    else:
        header, body = lines[start], lines[start + 1 :]
    check_repeated(header)
    rows: list[Row] = []
    for number, cells in enumerate(body, 1):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(header):
            rule = f"the row has {len(cells)} fields, the header {len(header)}"
            raise InputError(rule, row=number)
        rows.append({key: cell or None for key, cell in zip(header, cells, strict=False) if key})
    return rows


def _header_line(lines: list[list[str]]) -> int | None:
    """Return where the header is, or None for the files that have none.

    FreshQA puts notices above its header; the MMLU files start with the first question.
    """
    if all(len(cells) == 6 and re.fullmatch(r"\s*[A-D]\s*", cells[5]) for cells in lines if cells):
        return None
    for number, cells in enumerate(lines[:5]):
        names = {cell.strip(): None for cell in cells}
        if any(layout.columns <= names.keys() for layout in LAYOUTS.values()):
            return number
    return 0


def tabular_questions(source: Any, task: TabularTask, *, limit: int | None = None) -> pl.DataFrame:
    """Return a questions table of kind ``binary``, one question per row.

    The columns described stay in the table as features, so that `calibrant groups` can use them;
    a missing value is said to be unknown, never filled in.

    Parameters
    ----------
    source
        Path or dataframe.
    task
        How a row becomes a question.
    limit
        Keep the first `limit` rows.

    Examples
    --------
    >>> task = TabularTask("y", 1, "Does it rain tomorrow?", {"wind": "The wind is {value}."})
    >>> frame = tabular_questions(pl.DataFrame({"wind": ["west"], "y": [1]}), task)
    >>> print(frame["text"][0])
    Here is what is known about one case.
    - The wind is west.
    Does it rain tomorrow?
    >>> frame["references"].to_list()
    [[['Yes']]]
    """
    frame = read_table(source)
    frame = frame if limit is None else frame.head(limit)
    name = str(source) if isinstance(source, str) else type(source).__name__
    with error_source(name):
        _check_task(frame, task)
    rows = [
        {
            "question_id": f"row{number:07d}",
            "text": _text(row, task),
            "references": [["Yes" if _same(row[task.target], task.positive) else "No"]],
            "kind": "binary",
            "k": 1,
        }
        for number, row in enumerate(frame.iter_rows(named=True), 1)
    ]
    return pl.concat([pl.DataFrame(rows), frame.select(list(task.columns))], how="horizontal")


def _check_task(frame: pl.DataFrame, task: TabularTask) -> None:
    """Refuse a target that the table does not have, does not fill or tells in the question."""
    require_known((task.target, *task.columns), frame.columns, "there is no column {}")
    if task.target in task.columns:
        raise InputError(f"the target {task.target!r} must not be told in the question")
    outcomes = frame[task.target].to_list()
    if None in outcomes:
        row = outcomes.index(None) + 1
        raise InputError(f"the target {task.target!r} is missing", row=row)
    if not any(_same(outcome, task.positive) for outcome in outcomes):
        observed = ", ".join(map(repr, dict.fromkeys(outcomes[:1000])))
        rule = f"no row has the outcome {task.positive!r} in {task.target!r}; it has {observed}"
        raise InputError(rule)


def _same(value: Any, positive: Any) -> bool:
    return bool(value == positive) or str(value) == str(positive)


def _text(row: Mapping[str, Any], task: TabularTask) -> str:
    lines = [task.introduction]
    for column, sentence in task.columns.items():
        value = row[column]
        words = "unknown" if value is None else task.values.get(column, {}).get(str(value), value)
        lines.append("- " + sentence.replace("{value}", str(words)))
    return "\n".join([*lines, task.question])
