"""The questions that every kind of input answers, and the head of every result document."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError, OutOfRangeError, error_source
from calibrant.core.hints import Hint
from calibrant.core.version import __version__
from calibrant.data import Study, load_scores, scan_table, source_name
from calibrant.data.formats import database_part, entries_below, is_fetched, is_study
from calibrant.data.places import fetched
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.tables import collect, column_names

if TYPE_CHECKING:
    from calibrant.data import Scores
    from calibrant.data.sources.drawn_labels import Grades
    from calibrant.data.sources.options import AuditOptions


def document_head(
    kind: str,
    data: Any = None,
    *,
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    source: str | None = None,
) -> dict[str, Any]:
    """Return schema, version, source, input files, seed and settings, the same for every verb.

    Parameters
    ----------
    kind
        Kind of the document, for example ``groups``.
    data
        What the verb was given: a path, a study folder, dataframes, a list of these, or None
        where a verb has no input.
    seed
        Seed, where the verb draws at random.
    settings
        Options that change the numbers.
    source
        How messages call the data, where that is known better than by its type.

    Examples
    --------
    >>> head = document_head("plan", seed=3, settings={"precision": 0.05})
    >>> head["schema"], head["source"], head["input"], head["seed"], head["settings"]
    ('calibrant.plan/1', None, [], 3, {'precision': 0.05})
    """
    return {
        "schema": f"calibrant.{kind}/1",
        "version": __version__,
        "source": source or _source(data),
        "input": input_files(data),
        "seed": seed,
        "settings": settings or {},
    }


def origin_of(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a saved policy or map keeps of where it came from: data and version."""
    return {name: head[name] for name in ("source", "input", "version")}


def today() -> str:
    """Return the day on which something is made, everywhere the same."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def recorded(arguments: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Return the options of a verb as a document keeps them: plain, and in the order named.

    Parameters
    ----------
    arguments
        The options by name, with whatever else the verb holds.
    names
        Which of them, apart by spaces; one that ends in ``?`` is left out where it is None.

    Examples
    --------
    >>> recorded({"features": ("a", "b"), "save": Path("x.json"), "by": None}, "features save by?")
    {'features': ['a', 'b'], 'save': 'x.json'}
    """
    return {
        name.rstrip("?"): _plain(arguments[name.rstrip("?")])
        for name in names.split()
        if not name.endswith("?") or arguments[name[:-1]] is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path | dt.date):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list | tuple) else value


def input_files(data: Any) -> list[dict[str, Any]]:
    """Return path, bytes and SHA-256 of every file that `data` names.

    A study stands for its tables, a folder or pattern for its parquet files; dataframes and
    streams name no file, and a file that is not there is the reader's to refuse.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("confidence,correct")
    ...     [(entry["bytes"], entry["sha256"][:12]) for entry in input_files(path)]
    [(18, '9fb77369eac4')]
    """
    return [
        _facts(path) | ({"path": str(item)} if is_fetched(str(item)) else {})
        for item in _items(data)
        for path in _files(item)
    ]


def _source(data: Any) -> str | None:
    if isinstance(data, Iterator):
        return "a stream of tables"
    return source_name([_path_of(item) for item in _items(data)]) or None


def _items(data: Any) -> Sequence[Any]:
    """Return the single inputs; a stream is not touched, since reading it would use it up."""
    if data is None:
        return ()
    return data if isinstance(data, list | tuple) else [data]


def _path_of(item: Any) -> Any:
    return item.path if isinstance(item, Study) else item


def _files(item: Any) -> Iterable[Path]:
    item = _path_of(item)
    if not isinstance(item, str | Path):
        return []
    path = fetched(str(item)) if is_fetched(item) else database_part(item)[0]
    if is_study(path):
        return sorted((path / "tables").glob("*.parquet"))
    if path.is_dir():
        return entries_below(path, ".parquet")
    if path.is_file():
        return [path]
    if any(mark in str(item) for mark in "*?["):
        return sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    return []


def _facts(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from None
    return {"path": str(path), "bytes": path.stat().st_size, "sha256": digest}


# Calibrators that take any number; the others need a confidence to start from.
ANY_SCORE = ("platt", "isotonic")
_REFUSAL = -1.0
# Squares of larger scores are beyond what a computer holds.
_LARGEST = 1e100


def scores_outside(data: Any, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
    """Return how many scores of each method lie outside [0, 1]; methods without any are absent.

    A lone -1 among confidences is a code for a refusal and no score: it does not count, and the
    rule against it stays.

    Examples
    --------
    >>> table = {"confidence": [-1.0, 0.2, 7.5], "correct": [0, 1, 1]}
    >>> scores_outside(table, ReadingOptions(), "platt")
    {'confidence': 1}
    """
    outside: dict[str, int] = {}
    for source in data if isinstance(data, list | tuple) else [data]:
        names = column_names(scan_table(source), source)
        columns = _columns(asked.confidence, names)
        for column in columns:
            for name, count in _counts(source, names, column, asked, several=len(columns) > 1):
                outside[name] = outside.get(name, 0) + count
    if outside and recalibrate not in ANY_SCORE:
        name, count = next(iter(outside.items()))
        raise InputError(
            f"{recalibrate} calibration takes confidences in [0, 1], and {count:,} of {name} lie "
            "outside",
            source=source_name(data),
            hint=Hint("{recalibrate} takes any score", recalibrate=" or ".join(ANY_SCORE)),
        )
    return outside


def _columns(confidence: str | None, names: list[str]) -> list[str]:
    request = confidence or "confidence"
    parts = [request] if request in names else [part.strip() for part in request.split(",")]
    # What is not there is the reader's to refuse, by name.
    return [part for part in parts if part in names]


def _counts(
    source: Any, names: list[str], column: str, request: ReadingOptions, *, several: bool
) -> list[tuple[str, int]]:
    key = request.method or "method"
    name = pl.col(key).cast(pl.String) if key in names else pl.lit(column)
    if key in names and several:
        name = pl.concat_str([name, pl.lit(column)], separator=":")
    value = pl.col(column).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    most = 100 if request.scale == "percent" else 1
    outside = value.is_finite() & ~value.is_between(0, most) & (value != _REFUSAL)
    numbers = scan_table(source).with_row_index("row", offset=1).select("row", value.alias("value"))
    far = numbers.filter(pl.col("value").is_finite() & (pl.col("value").abs() > _LARGEST)).head(1)
    for row, number in collect(far, source).iter_rows():
        rule = f"a score must lie within -1e100 and 1e100 ({column} = {number})"
        hint = "mend the value, or leave the row out"
        raise InputError(rule, source=source_name(source), row=row, hint=hint)
    table = scan_table(source).select(name.alias("name"), outside.alias("outside"))
    counts = table.filter("outside").group_by("name", maintain_order=True).len()
    return list(collect(counts, source).iter_rows())


def with_way_out(error: InputError) -> InputError:
    """Return the error of a score outside [0, 1] with what to do where it is meant as a score."""
    if not isinstance(error, OutOfRangeError):
        return error
    advice = "if it is a score and no probability, use {recalibrate}, which makes it one"
    mode = Hint(advice, recalibrate="platt")
    hint = error.hint + "; " + mode if error.hint else mode
    return InputError(error.rule, source=error.source, row=error.row, hint=hint)


AuditedTable: TypeAlias = "tuple[Any, ReadingOptions, Sequence[str] | None]"
_UNREADABLE, _PROBLEMS_NAMED = "unreadable_in_log", 10
_TEXT_COLUMNS = ("text", "question_text", "question", "prompt")


class Input(ABC):
    """An input that was opened: nobody below asks what kind it is.

    Attributes
    ----------
    given
        What names the input in documents and messages; None for arrays.
    """

    given: Any = None
    notes: Sequence[str] = ()
    """What every block should say about how its rows were read."""
    non_probability: frozenset[str] = frozenset()
    """Methods of this input whose score only ranks."""
    whole_record = False
    """Whether refusals and grades that are shares are part of the record."""

    pool_rows: int | None = None
    """Answers that the labelled ones were drawn from; None where nothing was drawn."""
    unreadable: Sequence[str] = ()
    """Where and why something of a log could not be read at all."""

    def head(self, kind: str, *, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the head of a document about this input."""
        return document_head(kind, self.given, seed=seed, settings=settings)

    def with_rules(self, options: AuditOptions) -> AuditOptions:
        """Return the options of an audit with the rules that this kind of input goes by.

        A study and a log hold refusals, and grades that are shares: rows that break a rule are
        left out and counted unless the caller says otherwise.
        """
        if not self.whole_record:
            return options
        request = options.table
        repeats, on_invalid = request.repeats or self.has_repeats(), request.on_invalid or "drop"
        table = replace(request, graded=True, repeats=repeats, on_invalid=on_invalid)
        return replace(options, table=table)

    def scores(self, options: AuditOptions, rankings: Collection[str]) -> Scores:
        """Read and check the rows; `options` have the rules of this input, see `with_rules`."""
        try:
            with error_source(self.error_name):
                table, request, selection = self.audited(options.table, options.by)
                checked = load_scores(
                    table,
                    **asdict(request),
                    features=selection,
                    by=options.by,
                    non_probability=rankings,
                    ranks=True,
                )
        except InputError as error:
            raise with_way_out(error) from None
        return self.with_unreadable(checked)

    @property
    def error_name(self) -> str | None:
        """How an error that names no file names this input: by its path, where it has one."""
        return str(self.given) if isinstance(self.given, str | Path) else None

    def has_repeats(self) -> bool:
        """Return whether rows of one question are repeated answers to it."""
        return False

    def with_unreadable(self, scores: Scores) -> Scores:
        """Return scores of this input that count what could not be read at all, too."""
        if not self.unreadable:
            return scores
        counts = {**scores.dropped, _UNREADABLE: len(self.unreadable)}
        names = {**scores.dropped_rows, _UNREADABLE: self.unreadable[:_PROBLEMS_NAMED]}
        return dataclasses.replace(scores, dropped=counts, dropped_rows=names)

    @abstractmethod
    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the table that an audit reads, how it is read, and further columns; None: all."""

    def probabilities_table(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table of scores for verbs that take probabilities, and how it is read."""
        return self.audited(asked, ())[:2]

    def every_row(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table with all rows, for whoever looks at them, and how it is read."""
        return self.probabilities_table(asked)

    def questions(self) -> pl.DataFrame | None:
        """Return the table of the questions where there is one of its own."""
        return None

    def compared(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table that a comparison reads, and how it is read."""
        return self.audited(asked, ())[:2]

    def candidates(self) -> Any:
        """Return the table of candidates that lies beside the scores, or None."""
        return None

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether there is a confidence, not draws with their meanings alone."""
        return True

    def names_methods(self, asked: ReadingOptions) -> bool:
        """Return whether rows may carry the name of a method, not a plain confidence alone."""
        return True

    def require_usable(self) -> None:
        """Say what is missing where there is no confidence or no grade at all."""

    def scores_outside(self, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
        """Count, by method, scores outside [0, 1] that recalibration is to turn into some."""
        return {}

    def grades(self) -> Grades | None:
        """Return the grades that this program made itself; None where outcomes were given."""
        return None

    def draws(self, asked: ReadingOptions, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return one row per draw (question_id, model, class_id, correct), or None without draws.

        `by` names columns of the questions that groups are made of.
        """
        return None

    def holds_only_draws(self, asked: ReadingOptions) -> bool:
        """Return whether this is a table of draws with their classes and no confidence."""
        return False

    def question_texts(self, draws: pl.DataFrame) -> pl.DataFrame | None:
        """Return the questions' texts (question_id, text) where the input has them."""
        table = self.questions()
        table = draws if table is None else table
        column = next((name for name in _TEXT_COLUMNS if name in table.columns), None)
        if column is None:
            return None
        pair = pl.col("question_id").cast(pl.String), pl.col(column).cast(pl.String).alias("text")
        return table.select(pair).unique("question_id", keep="first", maintain_order=True)
