"""Reading tables: files by their content, dataframes of any library; and cells fit to be opened."""

import glob
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from calibrant.core.errors import IN_MEMORY, InputError
from calibrant.data import formats
from calibrant.data.formats import limit, limit_hint
from calibrant.data.json_tables import bad_row, json_notes, scan_json
from calibrant.data.places import fetched, read_database
from calibrant.data.text_tables import scan_text_table, text_notes

# Damaged pages of a parquet file make polars panic, which is no error of its own.
UNREADABLE = (PolarsError, PanicException, OSError)
WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": pl.DataFrame.write_csv,
    ".jsonl": pl.DataFrame.write_ndjson,
}
"""What writes a table, by the ending of its file."""


def source_name(source: Any) -> str:
    """Return how messages call a source, or several: by their paths, or as tables in memory.

    Examples
    --------
    >>> source_name(["a.csv", {"confidence": [0.5]}, {"confidence": [0.7]}])
    'a.csv, 2 tables in memory'
    """
    several = source if isinstance(source, list | tuple) else [source]
    paths = [str(item) for item in several if isinstance(item, str | Path)]
    nameless = len(several) - len(paths)
    tables = f"{nameless} tables in memory" if nameless > 1 else IN_MEMORY
    return ", ".join([*paths, tables] if nameless else paths)


def scan_table(
    source: Any, *, names: Collection[str] = (), groups: Collection[str] = ()
) -> pl.LazyFrame:
    """Return a lazy view of a table, so that only the columns in use are ever loaded.

    Parameters
    ----------
    source
        Path of a csv, jsonl, json, parquet, Arrow or SQLite file (text may be packed by gzip,
        zstd, bzip2 or xz), ``FILE.db#TABLE`` or ``FILE.db#SELECT ..``, a URL of one, a folder or
        glob of parquet files, any dataframe that narwhals knows, or a mapping of columns.
    names, groups
        Columns of a text table that hold names; see `scan_text_table`.
    """
    if isinstance(source, str | Path):
        path = fetched(str(source)) if formats.is_fetched(source) else Path(source)
        return _scan_path(path, names, groups)
    if isinstance(source, pl.LazyFrame):
        return source
    if isinstance(source, pl.DataFrame):
        return source.lazy()
    if isinstance(source, Mapping):
        return _from_columns(source)
    if "duckdb" in type(source).__module__ and hasattr(source, "pl"):
        return source.pl().lazy()  # type: ignore[no-any-return]
    # Loaded here: most tables are files, and it takes longer to load than they do.
    import narwhals as nw

    try:
        frame = nw.from_native(source, eager_only=True)
    except TypeError:
        raise InputError(
            f"a table is a path, a dataframe or a mapping of columns, got {type(source).__name__}"
        ) from None
    except nw.exceptions.DuplicateError as error:
        rule = f"two columns of the table have one name: {reason_of(error)}"
        raise InputError(rule, hint="rename one of them") from None
    try:
        polars: pl.DataFrame = frame.to_polars()
    except (*UNREADABLE, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the dataframe cannot be read: {reason_of(error)}") from None
    return polars.lazy()


# Signs of pandas for what is missing; they are known by name, since pandas need not be there.
_MISSING = frozenset({"NAType", "NaTType"})


def plain_array(values: Any) -> Any:
    """Return values as an array; masked ones are missing, not what lies under the mask.

    Examples
    --------
    >>> plain_array(np.ma.masked_array([0.5, 0.9], mask=[False, True]))
    array([0.5, nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    kind = np.float64 if values.dtype.kind in "biuf" else object
    return np.ma.filled(values.astype(kind), np.nan if kind is np.float64 else None)


def _from_columns(source: Mapping[str, Any]) -> pl.LazyFrame:
    masked = np.ma.MaskedArray
    columns = {n: plain_array(x) if isinstance(x, masked) else x for n, x in source.items()}
    refused = (PolarsError, TypeError, ValueError, OverflowError)
    with suppress(*refused):
        frame = pl.DataFrame(columns)
        if pl.Object not in frame.dtypes:
            return frame.lazy()
    try:
        return pl.DataFrame({name: _simple(values) for name, values in columns.items()}).lazy()
    except refused as error:
        sized = {
            n: x for n, x in columns.items() if hasattr(x, "__len__") and not isinstance(x, str)
        }
        if len({len(values) for values in sized.values()}) > 1:
            lengths = ", ".join(f"{name} {len(values):,}" for name, values in sized.items())
            raise InputError(f"the columns of a table have equal lengths, got {lengths}") from None
        raise InputError(f"the columns make no table: {error}") from None


def _simple(values: Any) -> Any:
    """Return a column of objects as a list in which None alone is missing, and numbers as such."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return values.astype(np.float64)
    if not isinstance(values, list | tuple | np.ndarray):
        return values
    return [None if type(value).__name__ in _MISSING else value for value in values]


def reason_of(error: BaseException) -> str:
    """Return why a table could not be read, on one line."""
    if isinstance(error, PanicException):
        return "its data are damaged"
    return " ".join(str(error).split())


_TEXTS = ("csv", "workbook")


def table_notes(source: Any) -> tuple[str, ...]:
    """Return what was left out of a file, or taken apart, before it was a table."""
    path = Path(source) if isinstance(source, str | Path) else None
    if path is None or not path.is_file():
        return ()
    kind = formats.file_format(path)
    if kind in _TEXTS:
        return text_notes(path)
    return json_notes(path) if kind in ("json", "jsonl") else ()


def read_table(source: Any, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the table, or just `columns` of it, as a polars frame."""
    lazy = scan_table(source)
    if columns is not None:
        lazy = lazy.select(columns)
    return collect(lazy, source)


def collect(lazy: pl.LazyFrame, source: Any) -> pl.DataFrame:
    """Collect a lazy table; what polars cannot read becomes a message that names the file."""
    try:
        return lazy.collect(engine="streaming")
    except UNREADABLE as error:
        raise unreadable(error, source) from None


def unreadable(error: BaseException, source: Any) -> InputError:
    """Return what to say of a table that cannot be read: which row, where that can be told."""
    fault = bad_row(Path(source)) if isinstance(source, str | Path) else None
    row, why = fault or (None, reason_of(error))
    part = "table" if row is None else "row"
    hint = "fix the row, or save the table as parquet"
    hint = "save the table again, as parquet if you can" if row is None else hint
    rule = f"the {part} cannot be read: {why}"
    return InputError(rule, source=source_name(source), row=row, hint=hint)


LOOKED_AT = 20_000
"""Rows that a reading is decided by; numbers are made of all."""


def some_rows(lazy: pl.LazyFrame, source: Any) -> pl.DataFrame:
    """Return rows from all over a table, with all columns."""
    height = collect(lazy.select(pl.len()), source).item()
    step = -(-height // LOOKED_AT)
    return collect(lazy if step < 2 else lazy.gather_every(step), source)


def column_names(lazy: pl.LazyFrame, source: Any) -> list[str]:
    """Return the columns of a lazy table."""
    try:
        return lazy.collect_schema().names()
    except UNREADABLE as error:
        raise unreadable(error, source) from None


def _scan_path(path: Path, names: Collection[str], groups: Collection[str]) -> pl.LazyFrame:
    database, what = formats.database_part(path)
    if what:
        return read_database(database, what).lazy()
    if any(mark in str(path) for mark in "*?[") and not path.exists():
        return _scan_pattern(path, names, groups)
    formats.require_there(path)
    if path.is_dir():
        if not formats.entries_below(path, ".parquet"):
            raise InputError("the folder holds no parquet files", source=str(path))
        return _scan_parquet(path)
    kind = formats.file_format(path)
    if kind == "parquet":
        return _scan_parquet(path)
    if kind == "sqlite":
        return read_database(path, "").lazy()
    formats.require_unpackable(path)
    try:
        if kind == "arrow":
            return _within_budget(pl.scan_ipc(path, glob=False), path)
        if kind in _TEXTS:
            return scan_text_table(path, names=names, groups=groups)
        return scan_json(path)
    except UNREADABLE as error:
        raise unreadable(error, path) from None


def _within_budget(lazy: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    """Refuse an Arrow file whose buffers are packed and would become too large."""
    rows = lazy.select(pl.len()).collect().item()
    # A flat number takes 8 bytes at most; a file that is not packed is as large as its columns.
    unpacked, size = rows * 8 * len(lazy.collect_schema()), path.stat().st_size
    if unpacked > max(limit("unpacked_bytes"), 8 * size):
        rule = f"the Arrow data unpacks to about {unpacked:,} bytes"
        raise InputError(rule, source=str(path), hint=limit_hint("unpacked_bytes"))
    return lazy


def _scan_pattern(path: Path, names: Collection[str], groups: Collection[str]) -> pl.LazyFrame:
    files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    if not files:
        raise InputError("no file matches this pattern", source=str(path), hint="check the path")
    if all(file.is_file() and formats.file_format(file) != "parquet" for file in files):
        parts = [_scan_path(file, names, groups) for file in files]
        return pl.concat(parts, how="diagonal_relaxed")
    return _scan_parquet(path)


def _scan_parquet(path: Path) -> pl.LazyFrame:
    try:
        # What exists is meant as it is written: names may hold brackets.
        return pl.scan_parquet(path, glob=not path.is_file() and "[" not in path.name)
    except UNREADABLE as error:
        reason = reason_of(error)
        raise InputError(f"the parquet data cannot be read: {reason}", source=str(path)) from None


def with_fields(lazy: pl.LazyFrame, wanted: Iterable[str | None]) -> pl.LazyFrame:
    """Add columns for wanted names such as ``classifier.confidence``, fields of nested columns.

    Examples
    --------
    >>> table = pl.LazyFrame({"judge": [{"sure": 0.9}, {"sure": 0.4}]})
    >>> with_fields(table, ["judge.sure", None]).collect()["judge.sure"].to_list()
    [0.9, 0.4]
    """
    names = [part.strip() for text in wanted if text for part in text.split(",") if "." in part]
    if not names:
        return lazy
    schema = lazy.collect_schema()
    added = (_field(name, schema) for name in names if name not in schema)
    return lazy.with_columns(expression for expression in added if expression is not None)


def _field(name: str, schema: pl.Schema) -> pl.Expr | None:
    first, *tail = name.split(".")
    kind = schema.get(first)
    expression = pl.col(first)
    for part in tail:
        fields = {field.name: field.dtype for field in getattr(kind, "fields", [])}
        if part not in fields:
            return None
        kind, expression = fields[part], expression.struct.field(part)
    return expression.alias(name)


def with_question_columns(
    rows: pl.DataFrame, questions: pl.DataFrame, names: Iterable[str]
) -> pl.DataFrame:
    """Return rows in their order, with columns of the questions that they are about."""
    columns = questions.select("question_id", *names)
    return rows.join(columns, on="question_id", how="left", maintain_order="left")


def joined_id(columns: Sequence[str]) -> pl.Expr:
    r"""Return the id that columns make up together: different values give different ids.

    Examples
    --------
    >>> table = pl.DataFrame({"set": ["a|b", "a", "a"], "number": ["c", "b|c", "b"]})
    >>> table.select(id=joined_id(["set", "number"]))["id"].to_list()
    ['a\\|b|c', 'a|b\\|c', 'a|b']
    """
    parts = [pl.col(name).cast(pl.String) for name in columns]
    if len(parts) == 1:
        return parts[0]
    # The mark between them is escaped within, and so is what escapes it.
    escaped = [part.str.replace_all(r"([\\|])", r"\$1") for part in parts]
    return pl.concat_str(escaped, separator="|")


# Signs of full width are signs to some spreadsheets; characters without width hide what follows.
_FORMULA = r"^[\s\x{200b}-\x{200d}\x{feff}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|^[\t\r\n]"


def neutral_cells(frame: pl.DataFrame, *, keep: Collection[str] = ()) -> pl.DataFrame:
    """Return the table with an apostrophe before each text that a spreadsheet would run.

    Such texts begin with = + - @ or a tab. Numbers stay as they are. So do names of columns that
    are kept; others are treated like any text.

    Parameters
    ----------
    frame
        The table.
    keep
        Columns that are read back by calibrant, such as ids: they stay as they are.

    Examples
    --------
    >>> frame = pl.DataFrame({"answer": ["=1+1", "-0.5", "Paris", None]})
    >>> neutral_cells(frame)["answer"].to_list()
    ["'=1+1", '-0.5', 'Paris', None]
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String and name not in keep]
    # A zero byte ends a text for many programs, and no table with one is read back.
    frame = frame.with_columns(pl.col(texts).str.replace_all("\0", "\\0", literal=True))
    frame = frame.with_columns(
        pl.when(
            pl.col(name).str.contains(_FORMULA)
            & pl.col(name).str.strip_chars().cast(pl.Float64, strict=False).is_null()
        )
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    )
    names = pl.Series(frame.columns)
    runs = names.filter(names.str.contains(_FORMULA) & ~names.is_in(list(keep)))
    return frame.rename({name: f"'{name}" for name in runs})
