"""Text tables as people save them: their encoding, line ends, quotes and ids are checked first."""

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from calibrant.core.errors import InputError, error_source
from calibrant.data.formats import (
    MARKED,
    file_format,
    first_bytes,
    once_per_file,
    packed_by,
    plain_text,
    separator_of,
)
from calibrant.data.loose_tables import (
    Loose,
    is_loose,
    loose_text,
    refuse_joined_rows,
    refuse_open_quotes,
    workbook,
)
from calibrant.data.reading.names import columns_called, model_columns

# Columns of names and answers: `1`, `01` and `1.0` are three of them, and `4.1` is not `4.10`.
_NAMES = frozenset({"question_id", "model", "method", "answer", "judge", "author"})
_HEAD, _END = 65_536, 4_096
_LONGEST_HEADER = 16_777_216
# Numbers that begin with 0 or have more digits than a whole number holds; digits of other scripts.
_ODD, _FOREIGN = r"^\s*[+-]?(?:0\d|\d{19})", r"[^\x00-\x7f]"


def scan_text_table(
    path: Path, *, names: Collection[str] = (), groups: Collection[str] = ()
) -> pl.LazyFrame:
    """Return a lazy view of a text table; all rows are looked at before a type is chosen.

    UTF-16, the line ends of old Macintosh files and workbooks are read as well; lines above the
    header and rows of totals are left out, and `text_notes` tells it. Columns with numbers such as
    `01` stay text, because `1` and `01` are two ids. A second column of a name gets a number, and
    quotes that join several rows into one are refused.

    Parameters
    ----------
    path
        The file.
    names
        Columns that hold names of questions, models or methods, besides those whose own name says
        so: they are read as they are written, whatever number or truth value they look like.
    groups
        Columns whose values name groups: decimal numbers in them are read as they are written.
    """
    with error_source(str(path)):
        kind = _kind_of(path)
    if kind.schema is None:
        # Reading says what is wrong.
        return _lazy(path, kind.separator, kind.as_is, infer_schema_length=None)
    stripped = {name: name.strip() or name for name in kind.schema}
    by_name = {*names, *name_columns([*stripped.values()])}
    # A name of these types would be written in another way than it was read.
    rewritten = {n for n, d in kind.schema.items() if d.is_float() or d == pl.Boolean()}
    as_written = {n for n in rewritten if stripped[n] in by_name}
    as_written |= {n for n, d in kind.schema.items() if stripped[n] in groups and d.is_float()}
    schema = {n: pl.String() if n in as_written else d for n, d in kind.schema.items()}
    table = _lazy(path, kind.separator, kind.as_is, schema=schema)
    return table.rename(stripped) if any(name != name.strip() for name in stripped) else table


def read_cells(path: Path) -> pl.DataFrame:
    """Return a text table with every cell as it is written, after the same checks."""
    with error_source(str(path)):
        kind = _kind_of(path)
        if loose := _loose(path):
            names = next(csv.reader(io.StringIO(loose.text.decode())))
            check_repeated(re.sub(r" \[\d+\]$", "", name) for name in names)
    table = _lazy(path, kind.separator, kind.as_is, infer_schema=False).collect()
    return table.rename({name: name.strip() or name for name in table.columns})


def text_notes(path: Path) -> tuple[str, ...]:
    """Return what was left out of a text table or a workbook before it was read."""
    loose = _loose(path)
    return loose.notes if loose else ()


def name_columns(columns: list[str]) -> list[str]:
    """Return the columns that hold names of questions, models or methods, told by their own.

    Examples
    --------
    >>> name_columns(["question_id", "Model Name", "confidence"])
    ['question_id', 'Model Name']
    """
    usual = {*model_columns(columns), *columns_called("question_id", columns)}
    return [column for column in columns if column in _NAMES or column in usual]


_Bytes = TypeVar("_Bytes", bytes, mmap.mmap)


class _Kind(NamedTuple):
    """What a look at a text table has shown; `schema` is None where it cannot be read."""

    separator: str
    schema: Mapping[str, pl.DataType] | None
    as_is: bool


@once_per_file
def _kind_of(path: Path) -> _Kind:
    """Look at a table once."""
    loose = _loose(path)
    packing, head = packed_by(path), b"" if loose else _header(path)
    marked, one_kind = head.startswith(MARKED), b"\r" not in head or b"\n" in head
    as_is = loose is None and not marked and one_kind and packing in (None, "gzip")
    if not marked:
        _without_zeros(head)
    if not as_is:
        head = _plain(path)[: len(head) or _HEAD]
    separator = "," if loose else separator_of(_first_line(head))
    if packing is None and as_is and path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            lines_in_cells = refuse_open_quotes(_without_zeros(data), separator)
    else:
        lines_in_cells = refuse_open_quotes(_without_zeros(_plain(path)), separator)
    schema = _schema(path, separator, as_is=as_is)
    if schema is not None and lines_in_cells:
        refuse_joined_rows(schema, separator, _lazy(path, separator, as_is, infer_schema=False))
    return _Kind(separator, schema, as_is)


def _without_zeros(data: _Bytes) -> _Bytes:
    """Return bytes, or refuse those in which one is zero."""
    if data.find(b"\x00") >= 0:
        rule = "the text holds zero bytes: it is no UTF-8 table"
        raise InputError(rule, hint="save the table as UTF-8")
    return data


def _header(path: Path) -> bytes:
    """Return the start of the file with its whole first line: thousands of columns make it long."""
    for size in (_HEAD, _LONGEST_HEADER):
        head = first_bytes(path, size)
        if len(head) < size or re.search(rb"[\r\n]", head.lstrip(b"\r\n")):
            return head
    rule = f"the first line has more than {_LONGEST_HEADER >> 20} MB: this is no header of a table"
    raise InputError(rule, hint="give a file whose first line names the columns")


@partial(once_per_file, most=8)
def _loose(path: Path) -> Loose | None:
    """Return a table that has more than a header and rows without the rest; None for others."""
    with error_source(str(path)):
        if file_format(path) == "workbook":
            return workbook(path)
        head = _header(path)
        marked = head.startswith(MARKED)
        if b"\x00" in head and not marked:
            return None
        old = not marked and not _is_utf8(head)
        text = _plain_text(path) if marked or old else b""
        start = (text[:_LONGEST_HEADER] or head).decode("utf-8", "replace")
        start = start if len(text or head) < _HEAD else start.rpartition("\n")[0] or start
        last = "" if packed_by(path) and not text else _last_line(path, text)
        if not old:
            whole = (text or _plain_text(path)) if is_loose(start, last) else None
            return None if whole is None else loose_text(whole.decode("utf-8", "replace"))
        # What cannot be read in these letters either is said by whoever reads it.
        with suppress(UnicodeDecodeError):
            note = "It is written in the letters of Windows-1252."
            return loose_text(text.decode("cp1252"), (note,))
        return None


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # A letter may be cut at the end of what is looked at.
        return error.start > len(head) - 4
    return True


def _last_line(path: Path, text: bytes) -> str:
    """Return the last line that holds something."""
    end = text[-_END:]
    if not text:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END))
            end = file.read()
    return (end.decode("utf-8", "replace").rstrip().splitlines() or [""])[-1]


def _plain(path: Path) -> bytes:
    """Return the table as UTF-8 with the usual line ends, without what is no row of it."""
    loose = _loose(path)
    return _plain_text(path) if loose is None else loose.text


def _plain_text(path: Path) -> bytes:
    return plain_text(path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _first_line(head: bytes) -> str:
    line = re.split(rb"[\r\n]", head.lstrip(b"\r\n"), maxsplit=1)[0]
    return line.decode("utf-8", "replace")


def check_names(head: bytes, separator: str) -> None:
    """Refuse a header that gives two columns one name."""
    # A quoted name may hold a line end: the header is what a reader of rows takes for one.
    text = io.StringIO(head.decode("utf-8", "replace").lstrip("\r\n"), newline="")
    try:
        names = next(csv.reader(text, delimiter=separator), [])
    except csv.Error:
        names = _first_line(head).split(separator)
    check_repeated(names)


def check_repeated(names: Iterable[str]) -> None:
    """Refuse names of columns of which one comes twice."""
    for name, count in Counter(map(str.strip, names)).items():
        if name and count > 1:
            rule = f"the header names the column {name!r} {count} times"
            raise InputError(rule, hint="rename one of them")


def _lazy(path: Path, separator: str, as_is: bool, **options: Any) -> pl.LazyFrame:
    if as_is:
        return pl.scan_csv(path, separator=separator, glob=False, **options)
    return pl.read_csv(io.BytesIO(_plain(path)), separator=separator, **options).lazy()


def _schema(path: Path, separator: str, *, as_is: bool) -> dict[str, pl.DataType] | None:
    """Return the type of every column, or None where they cannot be read.

    Whole numbers of which one begins with 0, or has more digits than a number holds, are text. So
    are numbers with digits of another script, which are taken for numbers and then not read.
    """
    try:
        schema = dict(_lazy(path, separator, as_is, infer_schema_length=None).collect_schema())
        tests = {
            name: _FOREIGN if dtype.is_float() else f"{_FOREIGN}|{_ODD}"
            for name, dtype in schema.items()
            if dtype.is_numeric()
        }
        checks = [pl.col(name).str.contains(test).any() for name, test in tests.items()]
        texts = _lazy(path, separator, as_is, infer_schema=False)
        hits = texts.select(checks).collect().to_dicts() if checks else [{}]
    except pl.exceptions.PolarsError:
        return None
    return {name: pl.String() if hits[0].get(name) else dtype for name, dtype in schema.items()}
