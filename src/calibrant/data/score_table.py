"""A checked scores table: whole, in blocks, made of several, with mended confidences."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import structs

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.places import bare_name
from calibrant.data.reading import Reading, joined_readings
from calibrant.data.reading.roles import require_column
from calibrant.data.recalibration_map import (
    MENDED,
    RecalibrationMap,
    load_maps,
    names_of,
)
from calibrant.data.rules import RULES

CLUSTER = "cluster_id"
"""Column that says which rows depend on each other, where one was named."""
_NUMBERS_OF_ROWS = frozenset({"_row", "_place"})


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """The rows of one model, method and group, as arrays.

    `units` holds an integer code per question where a question has several rows, or per cluster
    where rows of one depend on each other, else None. `cluster` holds the codes of clusters alone.
    `unscored` holds the grades of rows without a confidence: they count for the accuracy.
    """

    keys: Mapping[str, str]
    confidence: npt.NDArray[np.floating[Any]]
    correct: Floats
    weights: Floats | None
    units: Ints | None
    frame: pl.DataFrame
    cluster: Ints | None = None
    unscored: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def graded(self) -> ScoreBlock:
        """All rows that have a grade, with a confidence or without; that is 0 everywhere."""
        rows = pl.concat([self.frame, self.unscored], how="diagonal_relaxed")
        return _block(rows.with_columns(confidence=pl.lit(0.0)), (), pl.DataFrame(), unique=False)


@dataclass(frozen=True, slots=True)
class Scores:
    """A checked scores table.

    `dropped` counts rows left out by rule, `dropped_rows` names the first few of each
    (1-based data rows), `rejected` holds all of them with the column ``rule`` (and text that is
    no number in ``confidence_text``, ``correct_text`` or ``weights_text``). `assumed` lists
    the roles that no column filled: the question id is then the row number, the model
    ``"model"`` and the method the name of the confidence column. `reading` says which column
    plays which role, and what was guessed. `unscored` holds rows that are graded and have no
    confidence (NaN), with the columns of `frame`. `weightless` holds the rows of weight 0, which
    are not there for any question about the table. `paired_by_row`: the tables have no
    ids, and row 1 of each is taken as one question. `likely_weights` names a column that is called
    as if it held weights, which nobody said it does. `drawn_from`: rows of the pool that these
    were drawn from at random.
    """

    frame: pl.DataFrame
    source: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    dropped_rows: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    rejected: pl.DataFrame = field(default_factory=pl.DataFrame)
    assumed: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading)
    unscored: pl.DataFrame = field(default_factory=pl.DataFrame)
    weightless: pl.DataFrame = field(default_factory=pl.DataFrame)
    paired_by_row: bool = False
    likely_weights: str | None = None
    drawn_from: int | None = None

    @property
    def graded(self) -> pl.DataFrame:
        """All rows that have a grade; the confidence is NaN where it is missing."""
        parts = [part for part in (self.frame, self.unscored) if part.height]
        return pl.concat(parts, how="diagonal_relaxed") if len(parts) > 1 else self.frame

    @property
    def emptied(self) -> list[str]:
        """Models of which every row was left out; their count alone would not name them."""
        out = [part for part in (self.rejected, self.weightless) if "model" in part.columns]
        names = {str(name) for part in out for name in part["model"].drop_nulls().unique()}
        return sorted(names - {*map(str, self.frame["model"].unique())})

    def only(self, **wanted: Collection[str] | None) -> Scores:
        """Return the rows of some models or methods, `None` for all; so of those left out."""
        choice = {column: list(names) for column, names in wanted.items() if names is not None}
        if not choice:
            return self
        part = self.each(
            lambda rows: rows.filter(
                *(pl.col(name).is_in(choice[name]) for name in choice if name in rows.columns)
            )
        )
        if "model" not in self.rejected.columns:
            return part
        # A row that breaks several rules counts once: which others it broke is not kept.
        rules = Counter(part.rejected["rule"].to_list())
        by_name = {*self.rejected["rule"].to_list()}
        peers = {rule: n for rule, n in self.dropped.items() if rule not in by_name}
        return replace(part, dropped={**rules, **peers})

    def each(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Scores:
        """Return the table with its rows changed, those that are left out too."""
        parts = ("frame", "rejected", "unscored", "weightless")
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in parts}
        return replace(self, **changed)

    def blocks(self, *, by: Sequence[str] = ()) -> Iterator[ScoreBlock]:
        """Yield a block per (model, method), then per value of each column in `by`."""
        names = [name for name in self.frame.columns if name not in _NUMBERS_OF_ROWS]
        for column in by:
            require_column(column, names, self.source, role="a group")
        # Row numbers that stand for missing ids cannot repeat: no need to look for repeats.
        unique = "question_id" in self.assumed
        keys = ["model", "method"]
        # A table of one block is not copied: that takes longer than its sums.
        alone = all(self.frame[key].n_unique() == 1 for key in keys)
        for pair in [self.frame] if alone else self.frame.partition_by(keys, maintain_order=True):
            unscored = _alike(self.unscored, pair, "model", "method")
            yield _block(pair, (), unscored, unique=unique)
            for column in by:
                for part in pair.partition_by(column, maintain_order=True):
                    part_unscored = _alike(unscored, part, column)
                    yield _block(part, (column,), part_unscored, unique=unique)


def _alike(rows: pl.DataFrame, part: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the rows that have the values of this part in some columns."""
    same = (pl.col(name).eq_missing(part[name][0]) for name in columns)
    return rows.filter(*same) if rows.height else rows


def _block(
    frame: pl.DataFrame, by: Sequence[str], unscored: pl.DataFrame, *, unique: bool
) -> ScoreBlock:
    keys = {name: str(frame[name][0]) for name in ("model", "method", *by)}
    ids, columns = frame["question_id"], (frame["confidence"], frame["correct"])
    cluster = _codes(frame[CLUSTER]) if CLUSTER in frame.columns else None
    units = cluster
    if cluster is None and not unique and ids.n_unique() < frame.height:
        units = _codes(ids)
    said, right = (column.to_numpy() for column in columns)
    return ScoreBlock(keys, said, right, row_weights(frame), units, frame, cluster, unscored)


def _codes(values: pl.Series) -> Ints:
    return values.rank("dense").cast(pl.Int64).to_numpy() - 1


ROW_KEYS = ["model", "method", "question_id"]


def named_model(scores: Scores, name: str | None) -> Scores:
    """Return a table that has no model column as that of a model, with the rows it lost."""
    if name is None or "model" not in scores.assumed:
        return scores
    return _with_columns(scores, model=pl.lit(name))


def joined_scores(parts: Sequence[Scores], source: str, *, repeats: bool) -> Scores:
    """Return tables that were read one after the other as one.

    Row numbers that stand for missing ids mean the same question in every table only where all
    tables are equally long and none holds another's model and method. Else each has its own.

    Parameters
    ----------
    parts
        The tables, each with its source.
    source
        What they are called together.
    repeats
        Several rows of one question are repeated answers, not an error.
    """
    numbered = ["question_id" in part.assumed for part in parts]
    # Row 1 of each table may be one question, and so on.
    heights = {p.frame.height + p.rejected.height + p.weightless.height for p in parts}
    models = pl.concat([part.frame.select(ROW_KEYS[:2]).unique() for part in parts])
    paired = all(numbered) and len(heights) == 1 and not models.is_duplicated().any()
    if not paired:
        own = (pl.lit(f"{part.source}:") + pl.col("question_id") for part in parts)
        every = zip(parts, numbered, own, strict=True)
        parts = [_with_columns(p, question_id=ids) if alone else p for p, alone, ids in every]
    frame = _stacked(part.frame for part in parts)
    if "weights" in frame.columns:
        # Every row of a table without weights counts once.
        frame = frame.with_columns(pl.col("weights").fill_null(1.0))
    if not repeats and frame.select(pl.struct(ROW_KEYS).is_duplicated().any()).item():
        again = frame.select(ROW_KEYS).filter(pl.struct(ROW_KEYS).is_duplicated()).row(0)
        rule = f"two tables hold the same question, model and method: {[*again]}"
        raise InputError(rule, source=source, hint=RULES["duplicate_row"].hint)
    rows: dict[str, list[str]] = {}
    for part in parts:
        for rule, numbers in part.dropped_rows.items():
            rows.setdefault(rule, []).extend(f"{part.source}:{number}" for number in numbers)
    return Scores(
        frame,
        source,
        dict(sum((Counter(part.dropped) for part in parts), Counter[str]())),
        rows,
        _stacked(part.rejected for part in parts),
        assumed=("question_id",) if all(numbered) and not paired else (),
        reading=joined_readings([part.reading for part in parts]),
        unscored=_stacked(part.unscored for part in parts),
        weightless=_stacked(part.weightless for part in parts),
        paired_by_row=paired,
        likely_weights=next((part.likely_weights for part in parts if part.likely_weights), None),
    )


def _with_columns(scores: Scores, **columns: pl.Expr) -> Scores:
    """Return the table with columns in place of others; a part without rows may have none."""
    return scores.each(lambda part: part.with_columns(**columns) if part.width else part)


def _stacked(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(list(tables), how="diagonal_relaxed")


def split_weightless(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that weigh something, and those of weight 0, which count for nothing."""
    nothing = pl.col("weights") == 0
    mask = frame.filter(~nothing)
    if mask.height == 0:
        raise InputError("the weights must not all be 0")
    return mask, frame.filter(nothing)


def row_weights(frame: pl.DataFrame) -> Floats | None:
    """Return the weights of rows; such as are all alike weigh nothing."""
    if "weights" not in frame.columns:
        return None
    weights = frame["weights"].to_numpy()
    return None if weights.min() == weights.max() else weights


def models_by_file(sources: Sequence[Any]) -> list[str | None]:
    """Return a name for the model of each file; None for what is no file.

    Files of one name in several folders are told apart by these: as one name they would be one
    model.

    Examples
    --------
    >>> models_by_file(["runs/llama-3.1.csv", "runs/llama-3.2.csv.gz", {"confidence": []}])
    ['llama-3.1', 'llama-3.2', None]
    >>> models_by_file(["runs/a/scores.csv", "runs/b/scores.csv"])
    ['a/scores', 'b/scores']
    >>> models_by_file(["scores.csv", "scores.parquet"])
    ['scores.csv', 'scores.parquet']
    """
    files = [str(source) for source in sources if isinstance(source, str | Path)]
    if not files:
        return [None] * len(sources)
    # A URL is taken as it is written, a file from the root on.
    parts = (file if "://" in file else Path(os.path.abspath(file)).as_posix() for file in files)
    paths = [part.split("/") for part in parts]
    shared = 0
    while all(len(path) > shared + 1 for path in paths) and len({p[shared] for p in paths}) == 1:
        shared += 1
    below = [path[shared:] for path in paths]
    for names in (
        [bare_name(path[-1]) for path in paths],
        ["/".join([*path[:-1], bare_name(path[-1])]) for path in below],
        ["/".join(path) for path in below],
    ):
        if len(set(names)) == len(names):
            remainder = iter(names)
            return [next(remainder) if isinstance(s, str | Path) else None for s in sources]
    twice = next(file for file, path in zip(files, paths, strict=True) if paths.count(path) > 1)
    raise InputError("the file is given twice", source=twice, hint="give each file once")


def rejected_rows(bad: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are left out; a cell that is no number stays as it was written."""
    texts = [f"_{role}_text" for role in ("confidence", "correct", "weights")]
    text = [pl.col(name).alias(name[1:]) for name in texts if bad[name].count()]
    hidden = [name for name in bad.columns if name.startswith("_") and name != "_row"]
    return bad.with_columns(text).drop(hidden).rename({"_row": "row"})


def scales_of_maps(path: str | Path, scale: str | None) -> str | dict[str, str | None] | None:
    """Return the scale named, or that of each judge whose map the file holds, by its column.

    Under no name stands the scale of other columns, where the judges share one.
    """
    scales = {fitted.method: fitted.judge_scale for fitted in load_maps(path)}
    distinct = {*scales.values()}
    if scale is not None and (unlike := distinct - {None, scale}):
        rule = Hint("{scale} is not the scale that the map reads, {0}", *unlike, scale=scale)
        raise InputError(rule, source=str(path), hint=Hint("leave out {scale}"))
    if scale is not None or distinct == {None}:
        return scale
    return {**scales, "": next(iter(distinct)) if len(distinct) == 1 else None}


def mended_scores(scores: Scores, path: str | Path) -> Scores:
    """Return the scores with mended confidences; the reading says so, and where it is doubtful.

    Parameters
    ----------
    scores
        A checked table.
    path
        A file that `mend` saved. Its maps are taken by model and method; a single one also serves
        a table with a single model and method, whatever these are called.
    """
    maps, frame = load_maps(path), scores.frame
    keys = frame.select("model", "method").unique(maintain_order=True).rows()
    confidence = frame["confidence"].to_numpy().copy()
    gaps, doubts = [], []
    for model, method in keys:
        fitted = _map_of(maps, model, method, alone=len(keys) == 1, source=str(path))
        rows = ((frame["model"] == model) & (frame["method"] == method)).to_numpy()
        name = f"{model}: " if len(keys) > 1 else ""
        if fitted.verdict != MENDED:
            gaps.append(f"{name}nothing is promised of this map ({fitted.verdict})")
        if fitted.columns is not None:
            gaps.append(f"{name}the map's columns ({', '.join(fitted.columns.names)}) are not read")
        if fitted.method != method and fitted.fitted_on.get("labels_by") == "people":
            gaps.append(f"{name}the map is of the judge {fitted.method}, not of {method}")
        stated_confidence = confidence[rows]
        confidence[rows] = fitted.probabilities(stated_confidence)
        if fitted.reference and (shift := fitted.check(stated_confidence.tolist())).shifted:
            doubts.append(name + shift.text)
    note = " ".join([f"Confidences are mended by {path}.", *(f"{part}." for part in gaps), *doubts])
    corrected = frame.with_columns(confidence=pl.Series(np.asarray(confidence)))
    return replace(scores, frame=corrected, reading=structs.replace(scores.reading, mended=note))


def _map_of(
    maps: Sequence[RecalibrationMap], model: str, method: str, *, alone: bool, source: str
) -> RecalibrationMap:
    """Return the map of a model and method, or refuse: a map of another model promises nothing."""
    # The map of a judge is of no model: it scores the answers of all.
    of_model = [fitted for fitted in maps if fitted.model in (model, "")]
    of_both = [fitted for fitted in of_model if fitted.method == method]
    for fitting in (of_both, of_model, maps if alone else ()):
        if len(fitting) == 1:
            return fitting[0]
    hint = Hint("make one of this model's labels with `calibrant mend`, or leave out {mend}")
    rule = f"there is no map for {model} ({method}); the file has {names_of(maps)}"
    raise InputError(rule, source=source, hint=hint)
