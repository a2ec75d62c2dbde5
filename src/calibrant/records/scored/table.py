"""A checked scores table, whole and in blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.records.roles import require_column
from calibrant.records.scored.weights import row_weights


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
    which are not there for any question about the table. `paired_by_row`: the tables have no
    ids, and row 1 of each is taken as one question. `likely_weights` names a column that is called
    as if it held weights, which nobody said it does.
    """

    frame: pl.DataFrame
    source: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    dropped_rows: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    rejected: pl.DataFrame = field(default_factory=pl.DataFrame)
    assumed: tuple[str, ...] = ()
    guessed: Mapping[str, str] = field(default_factory=dict)
    weightless: pl.DataFrame = field(default_factory=pl.DataFrame)
    paired_by_row: bool = False
    likely_weights: str | None = None

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
            weightless=change(self.weightless),
        )

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
