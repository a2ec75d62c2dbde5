"""The four tables and their versions. Further columns are carried along as features."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from calibrant.core.document import dump_document, kind_of, load_document, load_toml
from calibrant.core.errors import InputError, SchemaError, did_you_mean
from calibrant.data.formats import is_study
from calibrant.data.tables import UNREADABLE, reason_of

_TEXT, _WHOLE, _REAL, _FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
TOP_TOKENS = pl.List(pl.Struct({"token": _TEXT, "logprob": _REAL}))
"""Type of the most probable tokens at one place."""


class TableSchema(Struct, frozen=True):
    """Names and types of a table; `required` columns must be there."""

    name: str
    version: int
    required: Mapping[str, pl.DataType]
    optional: Mapping[str, pl.DataType] = {}

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """All declared columns."""
        return {**self.required, **self.optional}


QUESTIONS = TableSchema(
    "questions",
    1,
    {"question_id": _TEXT, "text": _TEXT},
    {
        "references": pl.List(pl.List(_TEXT)),
        "kind": _TEXT,
        "choices": pl.List(_TEXT),
        "domain": _TEXT,
        "k": _WHOLE,
    },
)
DRAWS = TableSchema(
    "draws",
    1,
    {"question_id": _TEXT, "model": _TEXT, "purpose": _TEXT, "draw": _WHOLE, "text": _TEXT},
    {
        "answer": _TEXT,
        "finish_reason": _TEXT,
        "token_logprobs": pl.List(_REAL),
        "first_token_top_logprobs": TOP_TOKENS,
        "temperature": _REAL,
        "seed": _WHOLE,
        "prompt_tokens": _WHOLE,
        "completion_tokens": _WHOLE,
        "cost": _REAL,
        "latency_s": _REAL,
        "request_id": _TEXT,
    },
)
SEMANTICS = TableSchema(
    "semantics",
    1,
    {"question_id": _TEXT, "model": _TEXT, "draw": _WHOLE, "class_id": _WHOLE},
    {"purpose": _TEXT, "correct": _FLAG, "reason": _TEXT, "grader": _TEXT, "chance": _REAL},
)
SCORES = TableSchema(
    "scores",
    1,
    {"confidence": _REAL, "correct": _REAL},
    {"question_id": _TEXT, "model": _TEXT, "method": _TEXT, "answer": _TEXT, "weights": _REAL},
)


class TabularTask(Struct, frozen=True):
    """How a row becomes a question.

    Parameters
    ----------
    target
        Column of the outcome.
    positive
        Value of the outcome for which the right answer is Yes.
    question
        What is asked after the description of the row.
    columns
        Column to sentence, in the order they are written; ``{value}`` is filled in.
    values
        Column to (value to words), for coded values.
    introduction
        What comes before the sentences.
    """

    target: str
    positive: Any
    question: str
    columns: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]] = {}
    introduction: str = "Here is what is known about one case."


TABLES = {schema.name: schema for schema in (QUESTIONS, DRAWS, SEMANTICS, SCORES)}


def check_table(frame: pl.DataFrame, schema: TableSchema, *, source: str) -> pl.DataFrame:
    """Return the frame with declared columns cast to their types, or say what is wrong.

    Casting is strict: a value that does not fit its type is an error, never null.
    """
    for name in schema.required:
        if name not in frame.columns:
            raise SchemaError(
                f"the {schema.name} table (version {schema.version}) needs a column {name!r}",
                source=source,
                hint=did_you_mean(name, frame.columns),
            )
    casts = [
        pl.col(name).cast(declared)
        for name, declared in schema.columns.items()
        if frame.schema.get(name, pl.Null()) not in (declared, pl.Null)
    ]
    try:
        return frame.with_columns(casts)
    except pl.exceptions.PolarsError as error:
        raise SchemaError(
            f"the {schema.name} table has a column of another type: {error}", source=source
        ) from None


_VERSION_KEY = "calibrant.table"


class Study:
    """A folder with ``study.toml``, ``ledger.sqlite``, ``tables/``, ``results/``, ``report.html``.

    Parameters
    ----------
    path
        The folder. It is not created until something is written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def config_path(self) -> Path:
        """Path of ``study.toml``."""
        return self.path / "study.toml"

    @property
    def ledger_path(self) -> Path:
        """Path of the ledger, the only part that costs money to rebuild."""
        return self.path / "ledger.sqlite"

    @property
    def report_path(self) -> Path:
        """Path of the report."""
        return self.path / "report.html"

    @property
    def config(self) -> dict[str, Any]:
        """The parsed ``study.toml``."""
        if not self.config_path.is_file():
            raise InputError(
                "no study found: there is no study.toml",
                source=str(self.path),
                hint=f"create one with `calibrant init {self.path}`",
            )
        return load_toml(self.config_path.read_bytes(), source=str(self.config_path))

    def table_path(self, name: str) -> Path:
        """Path of a table."""
        return self.path / "tables" / f"{name}.parquet"

    def has(self, name: str) -> bool:
        """Return whether the study holds this table."""
        return self.table_path(name).is_file()

    def read(self, name: str) -> pl.DataFrame:
        """Return a table; another version is refused, never read as if it were this one."""
        path = self.table_path(name)
        if not path.is_file():
            raise InputError(
                f"the study has no {name} table yet",
                source=str(self.path),
                hint=f"run `calibrant run {self.path}` first",
            )
        try:
            frame = pl.read_parquet(path)
        except UNREADABLE as error:
            raise InputError(
                f"the table cannot be read: {reason_of(error)}",
                source=str(path),
                hint="a study's tables are written anew by `calibrant run`, or copy the file again",
            ) from None
        if name not in TABLES:
            return frame
        expected = f"{name}/{TABLES[name].version}"
        stored = pl.read_parquet_metadata(path).get(_VERSION_KEY, expected)
        if stored != expected:
            raise SchemaError(
                f"this version reads {expected}, the table is {stored}",
                source=str(path),
                hint="install the version of calibrant that wrote it, or run the study again",
            )
        return check_table(frame, TABLES[name], source=str(path))

    def write(self, name: str, frame: pl.DataFrame) -> Path:
        """Write a table with its schema version; a half-written file is never left behind."""
        path = self.table_path(name)
        metadata = {}
        if name in TABLES:
            frame = check_table(frame, TABLES[name], source=name)
            metadata = {_VERSION_KEY: f"{name}/{TABLES[name].version}"}
        return _whole(path, lambda partial: frame.write_parquet(partial, metadata=metadata))

    def write_result(self, kind: str, document: Mapping[str, object]) -> Path:
        """Write a result document as ``results/<kind>.json``."""
        path = self.path / "results" / f"{kind}.json"
        return _whole(path, lambda partial: partial.write_bytes(dump_document(document)))

    def results(self) -> dict[str, dict[str, Any]]:
        """Return the result documents by file name, in order of name."""
        documents = {}
        for path in sorted((self.path / "results").glob("*.json")):
            document = load_document(path)
            kind_of(document)
            documents[path.stem] = document
        return documents


def as_study(data: Any) -> Study | None:
    """Return the study that something is or names, or None."""
    if isinstance(data, str | Path) and is_study(data):
        return Study(data)
    return data if isinstance(data, Study) else None


def _whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Write a file beside its place and move it there: a half-written one is never left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    write(partial)
    return partial.replace(path)
