"""Record batches: a table of any size as parts that are read, checked and forgotten.

A part is a run of row groups of one parquet file. Which parts there are depends on the files
alone, and a part is read by its file name and row groups, so that any process, or any machine
that sees the files, can read it.
"""

import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import polars as pl
from msgspec import Struct

from calibrant.core.errors import InputError, require_known
from calibrant.core.names import optional_import
from calibrant.data.formats import entries_below, is_url

# Parts of about this many rows: enough to read ahead, few enough to share out evenly.
PART_ROWS = 4_000_000
# Rows that are checked and counted at a time; with fewer the sums take longer to add than to make.
BATCH_ROWS = 500_000
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class FilePart(Struct, frozen=True):
    """Some row groups of a file; `first_row` counts from 1 within the file.

    `partition` holds the columns that the folder names give (``year=2026/part-0.parquet``).
    """

    number: int
    file: str
    row_groups: tuple[int, ...]
    first_row: int
    rows: int
    partition: tuple[tuple[str, str | None], ...] = ()


class BatchColumns(Struct, frozen=True):
    """Which columns a part is read for; `labels` are read as text (models, methods, groups)."""

    confidence: tuple[str, ...]
    correct: str
    labels: tuple[str, ...] = ()
    answer: str | None = None

    @property
    def names(self) -> list[str]:
        """Return every column once."""
        answer = () if self.answer is None else (self.answer,)
        return list(dict.fromkeys((*self.confidence, self.correct, *self.labels, *answer)))


def label_column(name: str) -> str:
    """Return where `read_part` puts the texts of a label: its column may be one of numbers, too."""
    return f"label {name}"


def parquet_files(source: str | Path) -> list[str]:
    """Return the parquet files of a file, a folder (with its subfolders), a glob or a URL.

    Files are in order of their names. A URL is listed through fsspec with the credentials that
    its protocol finds in the environment.

    Examples
    --------
    >>> parquet_files("no/such/*.parquet")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: no/such/*.parquet: no parquet file matches
    """
    text = str(source)
    if is_url(text):
        files = _url_files(text)
    elif any(mark in text for mark in "*?[") and not Path(text).exists():
        files = sorted(name for name in glob.glob(text, recursive=True) if Path(name).is_file())
    elif Path(text).is_dir():
        files = [str(path) for path in entries_below(text, ".parquet")]
    else:
        files = [text] if Path(text).is_file() else []
    if not files:
        raise InputError("no parquet file matches", source=text)
    return files


def _url_files(url: str) -> list[str]:
    fsspec = optional_import("fsspec", extra="scale", purpose=f"reading {url}")
    try:
        system, path = fsspec.core.url_to_fs(url)
        if any(mark in path for mark in "*?["):
            names = system.glob(path)
        else:
            names = [path] if system.isfile(path) else system.find(path)
    except Exception as error:  # noqa: BLE001 - every protocol's library has errors of its own
        raise InputError(
            f"the address cannot be opened: {error}",
            source=url,
            hint="check the address, the credentials, and that its protocol is installed (s3fs "
            "for s3://, gcsfs for gs://)",
        ) from None
    return sorted(system.unstrip_protocol(name) for name in names if name.endswith(".parquet"))


def table_parts(source: str | Path, columns: BatchColumns) -> list[FilePart]:
    """Return the parts of a table, in order; every file is checked to have the columns."""
    parts: list[FilePart] = []
    for file in parquet_files(source):
        partition = tuple(partition_of(file, str(source)).items())
        with opened_file(file) as handle:
            names = [*_names(handle, file), *(name for name, _ in partition)]
            require_known(columns.names, names, "there is no column {}", source=file)
            about = handle.metadata
            sizes = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        first = 1
        for groups in _runs(sizes):
            rows = sum(sizes[group] for group in groups)
            parts.append(FilePart(len(parts), file, groups, first, rows, partition))
            first += rows
    return parts


def _runs(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield runs of row groups of about `PART_ROWS` rows."""
    run: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        if run and rows + size > PART_ROWS:
            yield tuple(run)
            run, rows = [], 0
        run.append(group)
        rows += size
    if rows:
        yield tuple(run)


def partition_of(file: str, source: str) -> dict[str, str | None]:
    """Return the columns in the folder names below the source; None where a value is missing.

    Examples
    --------
    >>> partition_of("runs/model=a/day=1/x.parquet", "runs")
    {'model': 'a', 'day': '1'}
    """
    root = source.split("*")[0].rpartition("/")[0] if "*" in source else source.rstrip("/")
    inside = file[len(root) :] if file.startswith(root) else file
    pairs = [folder.partition("=") for folder in inside.split("/")[:-1]]
    return {
        name: None if value == _NO_VALUE else unquote(value) for name, sign, value in pairs if sign
    }


def named_columns(files: Sequence[str], source: str) -> list[str]:
    """Return the columns of parquet files, those that folder names give at the end."""
    with opened_file(files[0]) as handle:
        return [*_names(handle, files[0]), *partition_of(files[0], source)]


def number_of_rows(files: Iterable[str]) -> int:
    """Return how many rows parquet files have, by their own word."""
    total = 0
    for file in files:
        with opened_file(file) as source:
            total += source.metadata.num_rows
    return total


@contextmanager
def _reading(file: str) -> Iterator[None]:
    """Say what cannot be read in a file where the library finds it damaged."""
    arrow = optional_import("pyarrow", extra="scale", purpose="streaming parquet files")
    try:
        yield
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"the parquet data cannot be read: {error}", source=file) from None


def _names(source: Any, file: str) -> list[str]:
    """Return the columns of an opened file; its schema is read when it is asked for."""
    with _reading(file):
        return list(source.schema_arrow.names)


def opened_bytes(file: str) -> BinaryIO:
    """Open a file or an address to read its bytes."""
    if not is_url(file):
        return open(file, "rb")
    fsspec = optional_import("fsspec", extra="scale", purpose=f"reading {file}")
    return cast("BinaryIO", fsspec.open(file, "rb").open())


def opened_file(file: str, labels: Sequence[str] = ()) -> Any:
    """Open a parquet file; the columns `labels` are read as codes, each text only once."""
    parquet = optional_import("pyarrow.parquet", extra="scale", purpose="streaming parquet files")
    with _reading(file):
        handle: Any = opened_bytes(file) if is_url(file) else file
        return parquet.ParquetFile(handle, read_dictionary=list(labels) or None)


def first_rows(file: str, names: Sequence[str] | None = None, most: int | None = None) -> Any:
    """Return rows of a file as a table of pyarrow: all of them, or its first.

    Parameters
    ----------
    file
        The file.
    names
        Columns; None for all.
    most
        How many rows; None for all.
    """
    with opened_file(file) as handle, _reading(file):
        if names is not None:
            require_known(names, handle.schema_arrow.names, "there is no column {}", source=file)
        if most is None or not handle.metadata.num_rows:
            return handle.read(columns=names)
        import pyarrow as arrow

        batches = islice(handle.iter_batches(batch_size=most, columns=names), 1)
        return arrow.Table.from_batches(batches)


def read_part(part: FilePart, columns: BatchColumns) -> Iterator[pl.DataFrame]:
    """Yield the batches of a part in order, not yet checked; labels are texts."""
    shared = dict(part.partition)
    stored = [name for name in columns.names if name not in shared]
    first = part.first_row
    arrow = optional_import("pyarrow", extra="scale", purpose="streaming parquet files")
    with opened_file(part.file, [name for name in columns.labels if name not in shared]) as source:
        try:
            records = source.iter_batches(
                batch_size=BATCH_ROWS,
                row_groups=part.row_groups,
                columns=stored,
                use_threads=False,
            )
            for table in _joined(records):
                yield _batch(table, columns, part)
                first += table.num_rows
        except (arrow.ArrowException, OSError, UnicodeError) as error:
            raise InputError(
                f"the parquet data cannot be read: {error}", source=part.file, row=first
            ) from None


def _joined(records: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of about `BATCH_ROWS` rows: what is read ends with each row group."""
    import pyarrow as arrow

    waiting: list[Any] = []
    for record in records:
        waiting.append(record)
        if sum(each.num_rows for each in waiting) >= BATCH_ROWS:
            yield arrow.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield arrow.Table.from_batches(waiting)


def _batch(table: Any, columns: BatchColumns, part: FilePart) -> pl.DataFrame:
    import pyarrow.types as kinds

    for name in (*columns.confidence, columns.correct):
        kind = table.schema.field(name).type
        if not (kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)):
            rule = f"a streamed audit reads numbers, the column {name!r} holds {kind}"
            hint = "store confidence and outcome as numbers, or audit a table that fits in memory"
            raise InputError(rule, source=part.file, hint=hint)
    batch, shared = pl.DataFrame(table), dict(part.partition)
    labels = {
        label_column(name): pl.lit(shared[name], pl.Categorical)
        if name in shared
        else _texts(batch[name])
        for name in columns.labels
    }
    return batch.with_columns(**labels)


def _texts(labels: pl.Series) -> pl.Series:
    """Return labels as texts; what is no text reads as Python shows it."""
    if labels.dtype not in (pl.String, pl.Categorical, pl.Enum):
        values = labels.drop_nulls().unique()
        texts = [str(value) for value in values.to_list()]
        labels = labels.replace_strict(values, texts, default=None, return_dtype=pl.String)
    return labels.cast(pl.Categorical)
