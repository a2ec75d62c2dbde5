"""Which columns of a streamed table are summed, and how a text table is streamed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.records.batches import Columns, named_columns, opened_file, parquet_files
from calibrant.records.formats import file_format, is_url
from calibrant.records.part_sums import SumPlan
from calibrant.stats.sums.mergeable import cell_grid


@dataclass(frozen=True, slots=True)
class Streamed:
    """A table to stream: where it is, its columns, and the column of question ids if any."""

    source: str
    plan: SumPlan
    question: str | None


@contextmanager
def as_parquet(
    source: str, *, columns: Mapping[str, str | None], by: tuple[str, ...]
) -> Iterator[str]:
    """Yield the table as parquet: itself, or a text table rewritten to a temporary file.

    Names of models, methods and groups stay as they are written in it.
    """
    path = Path(source)
    if is_url(source) or not path.is_file() or file_format(path) == "parquet":
        yield source
        return
    kind = file_format(path)
    if kind == "json":
        raise InputError("a json array cannot be streamed", source=source, hint="save it as jsonl")
    from calibrant.records.tables import UNREADABLE, scan_table, unreadable

    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        copy = Path(folder) / "table.parquet"
        try:
            names = [columns[role] for role in ("model", "method", "question")]
            table = scan_table(path, names=[name for name in names if name], groups=by)
            table.sink_parquet(copy, compression="lz4")
        except UNREADABLE as error:
            raise unreadable(error, source) from None
        yield str(copy)


def sum_plan(
    source: str,
    *,
    bins: int,
    by: tuple[str, ...],
    percent: bool,
    drop: bool,
    columns: Mapping[str, str | None],
) -> Streamed:
    """Find the columns of a table and return what is to be summed.

    Parameters
    ----------
    columns
        Column names by role (confidence, correct, model, method, question, answer) or None.
    """
    files = parquet_files(source)
    names = named_columns(files, source)
    wanted = columns["confidence"] or "confidence"
    chosen = (wanted,) if wanted in names else tuple(part.strip() for part in wanted.split(","))
    for name in chosen:
        _required("confidence", name, names, source)
    for name in by:
        _required("by", name, names, source)
    if "weights" in names:
        raise InputError(
            "the table has a column 'weights', which a streamed audit cannot use",
            source=source,
            hint=Hint("leave out {engine} to work in memory, or rename the column"),
        )
    model, method = (_optional(role, columns[role], names, source) for role in ("model", "method"))
    question, answer = (
        _optional(role, columns[short], names, source)
        for role, short in (("question_id", "question"), ("answer", "answer"))
    )
    labels = tuple(dict.fromkeys(name for name in (model, method, *by) if name is not None))
    read = Columns(
        chosen,
        _required("correct", columns["correct"], names, source),
        labels,
        None if answer is None or _never_null(answer, files) else answer,
    )
    plan = SumPlan(read, cell_grid(bins), model, method, by, percent, drop)
    return Streamed(source, plan, question)


def _required(role: str, name: str | None, names: list[str], source: str) -> str:
    wanted = name or role
    if wanted not in names:
        raise InputError(
            f"there is no column {wanted!r} for {role}",
            source=source,
            hint=did_you_mean(wanted, names),
        )
    return wanted


def _optional(role: str, name: str | None, names: list[str], source: str) -> str | None:
    if name is not None:
        return _required(role, name, names, source)
    return role if role in names else None


def _never_null(column: str, files: list[str]) -> bool:
    """Return whether the files' own statistics say that the column has no missing value."""
    for file in files:
        with opened_file(file) as opened:
            metadata = opened.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            parts = map(group.column, range(group.num_columns))
            held = [part.statistics for part in parts if part.path_in_schema == column]
            if not all(found and found.has_null_count and not found.null_count for found in held):
                return False
    return True
