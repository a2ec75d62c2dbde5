"""The scores table: one row per question, model and method, checked rule by rule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.error_source import error_source
from calibrant.core.errors import InputError
from calibrant.records.columns import joined_id, with_fields
from calibrant.records.roles import ROLES, require_column, resolve_roles
from calibrant.records.row_errors import counts_text, row_error
from calibrant.records.rules import PERCENTAGES, RULES, broken_rule
from calibrant.records.tables import collect, column_names, scan_table, source_name
from calibrant.records.weights import row_weights, split_weightless

__all__ = ["ScoreBlock", "Scores", "load_scores"]

_MISSING_TEXT = ["", "na", "n/a", "nan", "null", "none"]
_ROWS_NAMED = 10
_NO_TEXT = pl.lit(None, pl.String)


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """The rows of one model, method and group, as arrays.

    `units` holds an integer code per question where a question has several rows, else None.
    """

    keys: Mapping[str, str]
    confidence: npt.NDArray[np.floating[Any]]
    correct: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    units: npt.NDArray[np.int64] | None
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Scores:
    """A checked scores table.

    `dropped` counts rows left out by rule, `dropped_rows` names the first few of each
    (1-based data rows), `rejected` holds all of them with the column ``rule`` (and text that is
    no number in ``confidence_text``, ``correct_text`` or ``weights_text``). `assumed` lists
    the roles that no column filled: the question id is then the row number, the model
    ``"model"`` and the method the name of the confidence column. `guessed` names the columns that
    were taken for a role because of what they are called. `weightless` holds the rows of weight 0,
    which are not there for any question about the table.
    """

    frame: pl.DataFrame
    source: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    dropped_rows: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    rejected: pl.DataFrame = field(default_factory=pl.DataFrame)
    assumed: tuple[str, ...] = ()
    guessed: Mapping[str, str] = field(default_factory=dict)
    weightless: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def emptied(self) -> list[str]:
        """Models of which every row was left out; their count alone would not name them."""
        out = [part for part in (self.rejected, self.weightless) if "model" in part.columns]
        named = {str(name) for part in out for name in part["model"].drop_nulls().unique()}
        return sorted(named - {*map(str, self.frame["model"].unique())})

    def blocks(self, *, by: Sequence[str] = ()) -> Iterator[ScoreBlock]:
        """Yield a block per (model, method), then per value of each column in `by`."""
        for column in by:
            require_column(column, self.frame.columns, self.source, role="by")
        for pair in self.frame.partition_by(["model", "method"], maintain_order=True):
            # Row numbers that stand for missing ids cannot repeat: no need to look for repeats.
            unique = "question_id" in self.assumed
            yield _block(pair, (), unique=unique)
            for column in by:
                for part in pair.partition_by(column, maintain_order=True):
                    yield _block(part, (column,), unique=unique)


def load_scores(
    source: Any,
    *,
    confidence: str | None = None,
    correct: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    weights: str | None = None,
    on_invalid: str = "error",
    labels: str = "required",
    graded: bool = False,
    scale: str = "fraction",
    repeats: bool = False,
    non_probability: Collection[str] = (),
    features: Sequence[str] | None = None,
    by: Sequence[str] = (),
) -> Scores:
    """Read and check a scores table.

    Parameters
    ----------
    source
        Path, dataframe or mapping of columns; or a list of them, read one after the other. Where
        a file of a list has no model column, its name is the model.
    confidence, correct, model, method, question, answer, weights
        Column names. Default: the names of the scores schema. `question` may name several
        columns, separated by commas, that make up the id together; `confidence` may name
        several columns, each of which becomes a method.
    on_invalid
        ``"error"`` stops at the first row that breaks a rule; ``"drop"`` leaves such rows out
        and counts them.
    labels
        ``"required"``, or ``"optional"`` where rows without an outcome are wanted (labelling).
    graded
        Allow outcomes between 0 and 1.
    scale
        ``"fraction"``, or ``"percent"`` to divide the confidence by 100.
    repeats
        Several rows of one question are repeated answers, not an error.
    non_probability
        Methods whose score is not a probability: their range is not checked.
    features
        Further columns to keep; None keeps all.
    by
        Those of them whose values name groups: in a text table `1.1` and `1.10` are two.

    Examples
    --------
    >>> table = {"confidence": [0.9, 0.4, 1.7], "correct": [1, 0, 1]}
    >>> load_scores(table, on_invalid="drop").dropped
    {'confidence_above_1': 1}
    >>> load_scores(table)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.OutOfRangeError: a table in memory, row 3: the confidence must be at \
most 1 (confidence = 1.7); 1 of 3 rows break a rule: confidence_above_1 1
      -> if the column holds percentages, divide it by 100, or use scale="percent" with audit \
and compare; otherwise use on_invalid="drop" to leave such rows out and have them counted
    """
    _check_choice("on_invalid", on_invalid, ("error", "drop"))
    _check_choice("labels", labels, ("required", "optional"))
    _check_choice("scale", scale, ("fraction", "percent"))
    options = {name: value for name, value in locals().items() if name != "source"}
    if isinstance(source, list | tuple):
        return _load_many(source, options)
    name = source_name(source)
    lazy = scan_table(source, names=_named_columns(model, method, question), groups=by)
    asked = (confidence, correct, model, method, question, answer, weights, *(features or ()))
    lazy = with_fields(lazy, asked)
    names = column_names(lazy, source)
    with error_source(name):
        roles = resolve_roles(
            names,
            None,
            confidence=confidence,
            correct=correct,
            question_id=question,
            model=model,
            method=method,
            answer=answer,
            weights=weights,
        )
    frame = collect(_select(lazy, names, roles, features, name), source)
    if frame.height == 0:
        raise InputError("the table has no rows", source=name)
    frame = _typed(frame, scale)
    checked = _checked(
        frame,
        name,
        on_invalid=on_invalid,
        repeats=repeats or not roles["question_id"],
        rule=broken_rule(
            non_probability=frozenset(non_probability),
            graded=graded,
            labels=labels == "required",
            answer=bool(roles["answer"]),
        ),
    )
    assumed = tuple(role for role in ("question_id", "model", "method") if not roles[role])
    given = {"confidence": confidence, "correct": correct, "model": model}
    guessed = {
        role: roles[role][0]
        for role, name in given.items()
        if name is None and roles[role] not in ([], [role])
    }
    return replace(checked, assumed=assumed, guessed=guessed)


def _load_many(sources: Sequence[Any], options: Mapping[str, Any]) -> Scores:
    if not sources:
        raise InputError("at least one table is needed")
    if len(sources) == 1:
        return _named_after_file(load_scores(sources[0], **options), sources[0])
    parts = []
    for number, source in enumerate(sources, start=1):
        # A table in memory has no name: which of them it is must be said all the same.
        name = source if isinstance(source, str | Path) else f"table {number} of {len(sources)}"
        with error_source(str(name)):
            part = _named_after_file(load_scores(source, **options), source)
        parts.append(replace(part, source=str(name)))
    dropped: dict[str, int] = {}
    rows: dict[str, list[str]] = {}
    for part in parts:
        for rule, count in part.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + count
            rows.setdefault(rule, []).extend(f"{part.source}:{n}" for n in part.dropped_rows[rule])
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    if "weights" in frame.columns:
        # Every row of a table without weights counts once.
        frame = frame.with_columns(pl.col("weights").fill_null(1.0))
    keys = ["model", "method", "question_id"]
    if not options["repeats"] and frame.select(pl.struct(keys).is_duplicated().any()).item():
        again = frame.filter(pl.struct(keys).is_duplicated()).row(0, named=True)
        raise InputError(
            f"two tables hold the same question, model and method: {[again[key] for key in keys]}",
            source=source_name(sources),
            hint=RULES["duplicate_row"].hint,
        )
    rejected, weightless = (
        pl.concat([getattr(part, name) for part in parts], how="diagonal_relaxed")
        for name in ("rejected", "weightless")
    )
    return Scores(frame, source_name(sources), dropped, rows, rejected, weightless=weightless)


def _named_after_file(scores: Scores, source: Any) -> Scores:
    if not isinstance(source, str | Path) or "model" not in scores.assumed:
        return scores
    frame = scores.frame.with_columns(model=pl.lit(Path(source).name.split(".")[0]))
    return replace(scores, frame=frame)


def _named_columns(*wanted: str | None) -> list[str]:
    """Return the columns that are asked for: a list of them, or one whose name has a comma."""
    return [name for text in wanted if text for name in (text, *map(str.strip, text.split(",")))]


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, got {value!r}")


def _select(
    lazy: pl.LazyFrame,
    names: list[str],
    roles: Mapping[str, list[str]],
    features: Sequence[str] | None,
    source: str,
) -> pl.LazyFrame:
    """Select the roles under their own names, the features beside them, rows numbered from 1."""
    used = {columns[0] for role, columns in roles.items() if len(columns) == 1}
    used.update(roles["confidence"])
    if features is None:
        features = [name for name in names if name not in used and name not in ROLES]
    extra = [
        require_column(name, names, source, role="a group or a feature")
        for name in dict.fromkeys(features)
        if name not in ROLES
    ]
    row = pl.col("_row")
    columns = [
        row.cast(pl.Int64),
        pl.col(roles["correct"][0]).alias("correct"),
        (joined_id(ids) if (ids := roles["question_id"]) else row.cast(pl.String)).alias(
            "question_id"
        ),
        (pl.col(roles["model"][0]).cast(pl.String) if roles["model"] else pl.lit("model")).alias(
            "model"
        ),
        *(pl.col(roles[role][0]).alias(role) for role in ("answer", "weights") if roles[role]),
        *(pl.col(name) for name in extra),
    ]
    lazy = lazy.with_row_index("_row", offset=1)
    many = len(roles["confidence"]) > 1
    return pl.concat(
        [lazy.select(*columns, *_scored(name, roles, many=many)) for name in roles["confidence"]]
    )


def _scored(column: str, roles: Mapping[str, list[str]], *, many: bool) -> list[pl.Expr]:
    named = pl.col(roles["method"][0]).cast(pl.String()) if roles["method"] else pl.lit(column)
    if roles["method"] and many:
        named = pl.concat_str([named, pl.lit(column)], separator=":")
    return [pl.col(column).alias("confidence"), named.alias("method")]


def _typed(frame: pl.DataFrame, scale: str) -> pl.DataFrame:
    """Read numbers, remembering the text of cells that hold none."""
    frame = _number(frame, "confidence", keep_single=True)
    if scale == "percent":
        frame = frame.with_columns(pl.col("confidence") / 100)
    frame = _number(frame, "correct", flags=True)
    if "weights" not in frame.columns:
        return frame.with_columns(weights=pl.lit(1.0), _weights_text=_NO_TEXT, _weighted=False)
    return _number(frame, "weights").with_columns(_weighted=pl.lit(True))


def _number(
    frame: pl.DataFrame, column: str, *, flags: bool = False, keep_single: bool = False
) -> pl.DataFrame:
    mark, dtype = f"_{column}_text", frame.schema[column]
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        text = pl.col(column).cast(pl.String).str.strip_chars()
        lowered = text.str.to_lowercase()
        number = text.cast(pl.Float64, strict=False)
        if flags:
            word = lowered.replace_strict({"true": 1.0, "false": 0.0}, default=None)
            number = pl.coalesce(word, number)
        missing = lowered.is_in(_MISSING_TEXT) | text.is_null()
        value = pl.when(~missing).then(number).alias(column)
        return frame.with_columns(
            value, pl.when(~missing & number.is_null()).then(text).alias(mark)
        )
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"the column for {column} must hold numbers, it holds {dtype}")
    # Single precision is kept: binning knows that 0.7 stored in 32 bits was meant as 0.7.
    keep = keep_single and dtype == pl.Float32
    number = pl.col(column) if keep else pl.col(column).cast(pl.Float64)
    return frame.with_columns(number, _NO_TEXT.alias(mark))


def _checked(
    frame: pl.DataFrame, source: str, *, on_invalid: str, repeats: bool, rule: pl.Expr
) -> Scores:
    frame = frame.with_columns(rule.alias("rule"))
    if not repeats:
        frame = frame.with_columns(_with_duplicates())
    bad = frame.filter(pl.col("rule").is_not_null())
    if bad.height == 0:
        return _clean(frame, source)
    if on_invalid == "error" or bad["rule"].eq("duplicate_row").any():
        raise row_error(bad, source, total=frame.height)
    kept = frame.filter(pl.col("rule").is_null())
    if kept.height == 0:
        above = bad["rule"].eq("confidence_above_1").all()
        raise InputError(
            f"no row keeps the rules: {counts_text(bad)}",
            source=source,
            hint=PERCENTAGES if above else "check the columns",
        )
    counts = dict(bad["rule"].value_counts(sort=True, name="n").iter_rows())
    rows = {
        name: bad.filter(pl.col("rule") == name)["_row"].head(_ROWS_NAMED).to_list()
        for name in counts
    }
    found = _clean(kept, source)
    return replace(found, dropped=counts, dropped_rows=rows, rejected=_rejected(bad))


def _rejected(bad: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are left out; a cell that is no number stays as it was written."""
    written = [
        pl.col(f"_{role}_text").alias(f"{role}_text")
        for role in ("confidence", "correct", "weights")
        if bad[f"_{role}_text"].is_not_null().any()
    ]
    hidden = [name for name in bad.columns if name.startswith("_") and name != "_row"]
    return bad.with_columns(written).drop(hidden).rename({"_row": "row"})


def _with_duplicates() -> pl.Expr:
    """Mark second and later valid rows of a question; choosing one of them would be a guess."""
    valid = pl.col("rule").is_null()
    seen = valid.cast(pl.Int64).cum_sum().over("model", "method", "question_id")
    return pl.when(valid & (seen > 1)).then(pl.lit("duplicate_row")).otherwise("rule").alias("rule")


def _clean(frame: pl.DataFrame, source: str) -> Scores:
    weighted = bool(frame["_weighted"].any())
    hidden = [name for name in frame.columns if name.startswith("_") or name == "rule"]
    clean = frame.drop(hidden if weighted else [*hidden, "weights"])
    if not weighted:
        return Scores(clean, source)
    kept, weightless = split_weightless(clean)
    return Scores(kept, source, weightless=weightless)


def _block(frame: pl.DataFrame, by: Sequence[str], *, unique: bool) -> ScoreBlock:
    first = frame.row(0, named=True)
    keys = {name: str(first[name]) for name in ("model", "method", *by)}
    ids = frame["question_id"]
    repeated = not unique and ids.n_unique() < frame.height
    return ScoreBlock(
        keys=keys,
        confidence=frame["confidence"].to_numpy(),
        correct=frame["correct"].to_numpy(),
        weights=row_weights(frame),
        units=ids.rank("dense").cast(pl.Int64).to_numpy() - 1 if repeated else None,
        frame=frame,
    )
