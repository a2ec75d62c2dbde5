"""A table of a judge's scores and people's: ratings, yes/no, words in an order, or pairs.

Empty cells of people are items that nobody rated. Which column is meant is named by the reader;
what its cells mean is told by all of them together, and asked where two readings are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import Array, Indices, Mask
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint
from calibrant.data.judge_batches import with_batch
from calibrant.data.judge_cells import RatingScale
from calibrant.data.judge_shape import JudgeColumns, by_person, called, likely_columns, side_columns
from calibrant.data.judge_verdicts import Verdicts
from calibrant.data.logs.json_text import KINDS, ReadOptions
from calibrant.data.logs.log import ForeignLog
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.data.reading.names import WORDS
from calibrant.data.tables import read_table

__all__ = ["JudgeColumns", "JudgeTable", "RatingScale", "likely_columns", "read_judge_table"]

# From this share on, ratings are taken to stand only where somebody changed a verdict.
_ALL_CHANGED = 0.95


def read_judge_table(data: Any, columns: JudgeColumns, rated: Sequence[Any] = ()) -> JudgeTable:
    """Return the judge table that `data` holds, or say what is unclear and what to type.

    Batches that people `rated` fill the cells of the rows that they name.
    """
    frame, log = _opened(data)
    notes = [] if log is None else log.remarks()
    _refuse_corrections(log, columns.human)
    single = [columns.first, columns.swapped, columns.model, columns.question, columns.answer]
    verdicts = [*columns.judge, *columns.human, *filter(None, single[:2])]
    if twice := [name for name in verdicts if verdicts.count(name) > 1]:
        raise InputError(f"{twice[0]!r} is named in two roles: a column is one of them")
    frame, columns = by_person(frame, columns, notes)
    several = [*columns.judge, *columns.human, *columns.pairs, *columns.features]
    require_known([*several, *filter(None, single)], frame.columns, "there is no column {}")
    for batch in rated:
        frame = with_batch(frame, batch, columns.human)
    return JudgeTable(frame, columns, notes)


def open_judged(data: Any) -> pl.DataFrame:
    """Return a table as it is; of another tool's log a column for all that anybody said."""
    return _opened(data)[0]


def proposed_columns(data: Any) -> tuple[list[str], dict[str, list[str]]]:
    """Return all columns, and those of judges and people: by the log, else by name and cells."""
    frame, log = _opened(data)
    roles = {} if log is None else log.roles
    roles_of_log = {
        role: [name for name in frame.columns if roles.get(name) == word]
        for role, word in (("judge", "judge"), ("human", "people"))
    }
    return frame.columns, likely_columns(frame) | {
        k: names for k, names in roles_of_log.items() if names
    }


def _opened(data: Any) -> tuple[pl.DataFrame, ForeignLog | None]:
    kind = recognise(data, scores=True) if isinstance(data, str | Path) else None
    if kind is None:
        return read_table(data), None
    log = read_log(data, kind=kind, options=ReadOptions(opinions=True))
    if not log.opinions:
        rule = f"nobody scored an answer in this log ({KINDS[kind]['what']})"
        raise InputError("; ".join([rule, *log.remarks()[:1]]))
    return pl.DataFrame(log.opinions, infer_schema_length=None), log


def _refuse_corrections(log: ForeignLog | None, people: Sequence[str]) -> None:
    """Refuse ratings that only stand where a verdict was changed: they say nothing of the rest."""
    corrections = {} if log is None else log.corrections
    for name in people:
        changes = corrections.get(name, [])
        if changes and sum(changes) >= _ALL_CHANGED * len(changes):
            rule = f"{sum(changes):,} of {len(changes):,} ratings of {name} change the verdict"
            hint = "let people rate a random choice of rows, those that they agree with too"
            raise InputError(f"{rule}: where people agreed, nobody wrote it down", hint=hint)


def _codes(frame: pl.DataFrame, columns: Sequence[str | None]) -> tuple[tuple[str, ...], Indices]:
    """Return the names in these columns, and which stands where."""
    texts = pl.col([name for name in columns if name]).cast(pl.String).fill_null("")
    cells: Array = frame.select(texts).to_numpy().astype(str)
    names, codes = np.unique(cells, return_inverse=True)
    return tuple(names.tolist()), codes.reshape(frame.height, -1)


class JudgeTable(Verdicts):
    """Scores and ratings of the same items, as numbers; `frame` has the rows they come from.

    `rows` are their numbers in the table that was read, from 1; `scores` and `people`, NaN where
    there is none, have a row per item, `item` is a code of what it is about. `sides` holds codes of
    `models`: one column for ratings, two for pairs, or none. Of pairs `first` is 1 where the first
    side was shown first, and `swapped` the verdict in the other order. `left_out` counts rows
    without a score and rows that stand there twice, and `notes` say what is to be known of the
    reading: cells that could not be read are counted.
    """

    def __init__(self, frame: pl.DataFrame, columns: JudgeColumns, notes: list[str]) -> None:
        super().__init__(frame, _with_guesses(frame, columns), notes)
        columns, values = self.columns, self.values
        scored = np.all([np.isfinite(values[name]) for name in columns.judge], axis=0)
        twice = scored & _repeated(frame, [*self.cells])
        counts = {"no score of the judge": (~scored).sum(), "the same row again": twice.sum()}
        self.left_out = {reason: int(count) for reason, count in counts.items() if count}
        scored &= ~twice
        self.people = np.column_stack([values[name][scored] for name in columns.human])
        self.scores = {name: values[name][scored] for name in columns.judge}
        self._require_both()
        self.human_scale = self.scales[columns.human[0]]
        self.rows = np.flatnonzero(scored) + 1
        self.first, self.swapped = (
            self.side_verdicts([name])[name][scored] if name else None
            for name in (columns.first, columns.swapped)
        )
        self.frame = frame.filter(pl.Series(scored))
        pairs = columns.pairs if self.kind == "pairs" else [columns.model]
        self.models, self.sides = _codes(self.frame, pairs)
        if len(self.models) < 2:
            self.models, self.sides = (), self.sides[:, :0]
        item = _codes(self.frame, [columns.question])[1]
        self.item = item[:, 0] if columns.question else np.arange(self.rows.size)

    def _require_both(self) -> None:
        """Refuse a table without scores or ratings, and roles that are turned around."""
        columns, values = self.columns, self.values
        if not len(self.people):
            raise InputError("no row has a score of the judge")
        judge, person = columns.judge[0], columns.human[0]
        if not np.isfinite(self.people).any():
            rule = f"no row has a rating by people (column {', '.join(columns.human)})"
            hint = "let people rate about 100 rows, chosen at random, and leave the others empty"
            raise InputError(rule, hint=hint)
        share = np.isfinite(values[judge]).mean()
        if share < 0.5 and np.isfinite(values[person]).all():
            rule = f"{person} has a value in every row and {judge} in {share:.0%} of them"
            hint = Hint(
                "if {0} is the judge, use {judge} {human}", person, judge=person, human=judge
            )
            raise InputError(rule, hint=hint)
        if columns.swapped and len(columns.judge) > 1:
            rule = "the other order is that of one judge, and several are named"
            raise InputError(f"{rule} (beside {judge})")


def _with_guesses(frame: pl.DataFrame, columns: JudgeColumns) -> JudgeColumns:
    """Return the columns with those that their names and cells give away."""
    used = (*columns.judge, *columns.human, *columns.pairs)
    rest = [name for name in frame.columns if name not in used]
    matches: dict[str, Any] = {role: called(rest, role) for role in WORDS["judged"]}
    if columns.pairs:
        matches["model"] = None
    elif not (columns.model or columns.scale or columns.human_scale) and (
        sides := side_columns(frame, rest)
    ):
        matches |= {"pairs": sides, "model": None}
    return replace(columns, **{k: v for k, v in matches.items() if v and not getattr(columns, k)})


def _repeated(frame: pl.DataFrame, verdicts: Sequence[str]) -> Mask:
    """Return which rows repeat an earlier one, where the other columns tell all rows apart."""
    flat = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    context = [name for name in flat if name not in verdicts]
    first = frame.select(pl.struct(flat).is_first_distinct()).to_series()
    again = frame.height - int(first.sum())
    distinct = again and context and frame.select(context).n_unique() == frame.height - again
    return (~first & bool(distinct)).to_numpy()
