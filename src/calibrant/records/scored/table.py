"""A checked scores table, whole and in blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.records.guesses import require_column
from calibrant.records.reading import Reading
from calibrant.records.scored.weights import row_weights

CLUSTER = "cluster_id"
"""Column that says which rows depend on each other, where one was named."""


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """The rows of one model, method and group, as arrays.

    `units` holds an integer code per question where a question has several rows, or per cluster
    where rows of one depend on each other, else None. `cluster` holds the codes of clusters alone.
    `unscored` holds the grades of rows without a confidence: they count for the accuracy.
    """

    keys: Mapping[str, str]
    confidence: npt.NDArray[np.floating[Any]]
    correct: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    units: npt.NDArray[np.int64] | None
    frame: pl.DataFrame
    cluster: npt.NDArray[np.int64] | None = None
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
    as if it held weights, which nobody said it does.
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

    @property
    def graded(self) -> pl.DataFrame:
        """All rows that have a grade; the confidence is NaN where it is missing."""
        parts = [part for part in (self.frame, self.unscored) if part.height]
        return pl.concat(parts, how="diagonal_relaxed") if len(parts) > 1 else self.frame

    @property
    def emptied(self) -> list[str]:
        """Models of which every row was left out; their count alone would not name them."""
        out = [part for part in (self.rejected, self.weightless) if "model" in part.columns]
        named = {str(name) for part in out for name in part["model"].drop_nulls().unique()}
        return sorted(named - {*map(str, self.frame["model"].unique())})

    def only(self, **wanted: Collection[str] | None) -> Scores:
        """Return the rows of some models or methods, `None` for all; so of those left out."""
        chosen = {column: list(names) for column, names in wanted.items() if names is not None}
        if not chosen:
            return self

        def kept(part: pl.DataFrame) -> pl.DataFrame:
            named = {column: names for column, names in chosen.items() if column in part.columns}
            return part.filter(*(pl.col(column).is_in(names) for column, names in named.items()))

        return self.each(kept)

    def each(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Scores:
        """Return the table with its rows changed, those that are left out too."""
        return replace(
            self,
            frame=change(self.frame),
            rejected=change(self.rejected),
            unscored=change(self.unscored),
            weightless=change(self.weightless),
        )

    def blocks(self, *, by: Sequence[str] = ()) -> Iterator[ScoreBlock]:
        """Yield a block per (model, method), then per value of each column in `by`."""
        for column in by:
            require_column(column, self.frame.columns, self.source, role="by")
        # Row numbers that stand for missing ids cannot repeat: no need to look for repeats.
        unique = "question_id" in self.assumed
        for pair in self.frame.partition_by(["model", "method"], maintain_order=True):
            unscored = self._unscored_like(pair, "model", "method")
            yield _block(pair, (), unscored, unique=unique)
            for column in by:
                for part in pair.partition_by(column, maintain_order=True):
                    own = _alike(unscored, part, column)
                    yield _block(part, (column,), own, unique=unique)

    def _unscored_like(self, pair: pl.DataFrame, *columns: str) -> pl.DataFrame:
        rows = self.unscored
        return _alike(rows, pair, *columns) if rows.height else rows


def _alike(rows: pl.DataFrame, part: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the rows that have the values of this part in some columns."""
    if not rows.height:
        return rows
    return rows.filter(*(pl.col(name).eq_missing(part[name][0]) for name in columns))


def _block(
    frame: pl.DataFrame, by: Sequence[str], unscored: pl.DataFrame, *, unique: bool
) -> ScoreBlock:
    first = frame.row(0, named=True)
    keys = {name: str(first[name]) for name in ("model", "method", *by)}
    ids = frame["question_id"]
    repeated = not unique and ids.n_unique() < frame.height
    cluster = _codes(frame[CLUSTER]) if CLUSTER in frame.columns else None
    units = _codes(ids) if repeated else None
    return ScoreBlock(
        keys=keys,
        confidence=frame["confidence"].to_numpy(),
        correct=frame["correct"].to_numpy(),
        weights=row_weights(frame),
        units=units if cluster is None else cluster,
        frame=frame,
        cluster=cluster,
        unscored=unscored,
    )


def _codes(values: pl.Series) -> npt.NDArray[np.int64]:
    return values.rank("dense").cast(pl.Int64).to_numpy() - 1
