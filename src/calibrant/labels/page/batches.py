"""Batches for spreadsheets: written as text, taken back whatever a spreadsheet did to them."""

import importlib.util
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.places import writing
from calibrant.data.judge_batches import (
    LONGEST_CELL,
    cell_text,
    earlier_batch,
    flat_table,
    read_text,
    same_text,
)
from calibrant.data.label_schema import StoredItem
from calibrant.data.tables import WRITERS, neutral_cells
from calibrant.findings.claims import count
from calibrant.labels.labelling.session import LabelSession
from calibrant.labels.page.server import shown_item

_WORDS = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "right", "correct", "r"), "right"),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n", "wrong", "incorrect", "w"), "wrong"),
    **dict.fromkeys(("?", "unsure", "u", "don't know"), "unsure"),
    **dict.fromkeys(("skip", "s", "-"), "skip"),
    "": "",
}
_ENDINGS = (".csv", ".jsonl", ".parquet", ".xlsx")


@dataclass(frozen=True, slots=True)
class FilledLabel:
    """A row of a batch that came back."""

    row: int
    item: str
    question_id: str
    answer: str | None
    label: str
    note: str | None


def write_batch(session: LabelSession, items: Sequence[StoredItem], path: Path) -> None:
    """Write items for a person: question, answer and reference, never confidence or model."""
    rows = []
    for item in items:
        display = shown_item(session.row(item), item)
        rows.append(
            {
                # A letter in front: a spreadsheet takes 12e4 for a number.
                "item": "i" + item.key.code,
                "question_id": item.key.question_id,
                "question": display["question"],
                "choices": " | ".join(display["choices"]) or None,
                "answer": item.key.answer,
                "reference": display["reference"],
                "correct": None,
                "note": None,
            }
        )
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    empty = [n for n in ("choices", "answer", "reference") if frame[n].null_count() == len(rows)]
    write_for_people(frame.drop(empty), path, keep=("item",))


def write_for_people(frame: pl.DataFrame, path: Path, *, keep: Collection[str]) -> None:
    """Write rows that a person fills in: lists as text, nothing that a spreadsheet would run."""
    frame = flat_table(frame)
    # A spreadsheet would run an answer such as =1+1; a workbook says that it is text.
    write_frame(neutral_cells(frame, keep=keep) if path.suffix.lower() == ".csv" else frame, path)


def check_ending(path: Path) -> str:
    """Return the ending of a table to write; one that no format has is refused."""
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"a table is written as {', '.join(_ENDINGS)}, got {path.name!r}")
    return ending


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a table in the format its name says: csv, jsonl, parquet or xlsx."""
    ending = check_ending(path)
    with writing(path) as place:
        WRITERS.get(ending, _write_workbook)(frame, place)


def _write_workbook(frame: pl.DataFrame, path: Path) -> None:
    if importlib.util.find_spec("openpyxl") is None:
        rule = "workbooks (.xlsx) need the package openpyxl"
        raise InputError(rule, hint="pip install openpyxl, or name a .csv file")
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for number, row in enumerate([frame.columns, *frame.rows()], start=1):
        for column, value in enumerate(row, start=1):
            cell = sheet.cell(number, column)
            # As text, so that neither 0012 nor =1+1 becomes something else.
            cell.number_format = "@"
            cell.data_type = "s"
            # A workbook has no control characters, and no cell is longer.
            cell.value = None if value is None else cell_text(str(value))[:LONGEST_CELL]
            if isinstance(value, str) and value.startswith("="):
                cell.data_type = "s"
    book.save(path)


def read_batch(path: Path) -> tuple[list[FilledLabel], int]:
    """Return the filled rows of a batch and how many are still empty."""
    frame = read_text(path)
    for name in ("item", "question_id", "correct"):
        if name not in frame.columns:
            raise InputError(
                f"a batch has the column {name!r}",
                source=str(path),
                hint=Hint("give the file that {0} wrote", Call("label next", "TABLE")),
            )
    filled, empty = [], 0
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        text = (row["correct"] or "").strip().lower()
        if text not in _WORDS:
            rule = f"a label is 1 or 0 (or right, wrong, unsure, skip), got {row['correct']!r}"
            raise InputError(rule, source=str(path), row=number)
        if not text:
            empty += 1
            continue
        item, note = ((row.get(name) or "").strip() for name in ("item", "note"))
        question, answer = row["question_id"] or "", row.get("answer")
        filled.append(FilledLabel(number, item, question, answer, _WORDS[text], note or None))
    if not filled:
        raise InputError(
            "no label is filled in", source=str(path), hint="write 1 or 0 into the column `correct`"
        )
    return filled, empty


def refuse_open_batch(session: LabelSession, path: Path) -> None:
    """Refuse to write over a batch of this table whose items wait for their labels."""
    frame = earlier_batch(path)
    items = set(frame["item"].to_list()) if "item" in frame.columns else set()
    waiting = sum(
        state.status == "open" and "i" + state.item.key.code in items for state in session.states()
    )
    if waiting:
        raise InputError(
            f"this batch still has {count(waiting, 'open item')}, so it is not written over",
            source=str(path),
            hint=Hint(
                "fill it in and take it back with {call}, or name another {out}; open items stay "
                "drawn",
                call=Call("label add", "TABLE", "BATCH"),
            ),
        )


def add_batch(
    session: LabelSession, labels: Sequence[FilledLabel], who: str, source: str
) -> dict[str, int]:
    """Keep the labels of a batch; the same batch taken twice changes nothing."""
    states = {"i" + state.item.key.code: state for state in session.states()}
    past: set[str] = set()
    for entry in labels:
        state = states.get(entry.item)
        if state is None:
            raise InputError(
                f"item {entry.item!r} was not drawn from this table",
                source=source,
                row=entry.row,
                hint=Hint(
                    "label the batch that {call} wrote for this very table with the same "
                    "{question}, {answer}, {model} and {confidence}, or name its "
                    "store with {labels}",
                    call=Call("label next", "TABLE"),
                ),
            )
        if entry.item in past:
            raise InputError("an item occurs twice in the batch", source=source, row=entry.row)
        past.add(entry.item)
        key = state.item.key
        pairs = (entry.question_id, key.question_id), (entry.answer, key.answer)
        if not all(same_text(*pair) for pair in pairs):
            raise InputError(
                f"the item stands for question {key.question_id!r}, answer {key.answer!r}, and the "
                f"batch has {entry.question_id!r}, {entry.answer!r}",
                source=source,
                row=entry.row,
                hint="sort whole rows of a batch, not single columns",
            )
    added = changed = 0
    for entry in labels:
        state = states[entry.item]
        earlier = state.labels.get(who)
        if earlier == entry.label and entry.note is None:
            continue
        session.store.label(state.item.id, who, entry.label, note=entry.note)
        added += earlier is None
        changed += earlier is not None
    return {"labels": added, "changed": changed}


def labelled_frame(session: LabelSession) -> pl.DataFrame:
    """Return the rows whose answer is labelled, with outcome and weight, as a flat table."""
    rows = session.labelled_rows()
    nested = [name for name, kind in rows.schema.items() if kind.is_nested()]
    return rows.drop(nested)
