"""What may be the confidence, the outcome, the models and the questions of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TypeAlias, TypeVar

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.reading.cells import Column, is_text
from calibrant.data.reading.names import (
    bare,
    columns_called,
    model_columns,
    name_roles,
    token_weights,
    tokens,
)
from calibrant.data.reading.scales import RANKS


class SaidCandidate(Struct):
    """What may be the confidence.

    Attributes
    ----------
    column
        The column; several, separated by commas, hold a class probability each.
    score
        How strongly name and content speak for it.
    named
        How strongly the name alone does.
    scale
        How it is written.
    values
        The confidences of the rows that are looked at.
    doubt
        What has to be asked before it is used; empty where nothing is.
    notes
        What is said about the way it is read.
    """

    column: str
    score: float
    named: float
    scale: str
    values: Floats
    doubt: str = ""
    notes: tuple[str, ...] = ()
    probs: str = ""

    @property
    def ranked(self) -> bool:
        """Whether the values have an order alone."""
        return self.scale in RANKS


class OutcomeCandidate(Struct):
    """What may be the outcome: a column, or an answer beside what would have been right."""

    column: str
    score: float
    values: Floats
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    doubt: str = ""
    notes: tuple[str, ...] = ()
    answer: str = ""
    gold: str = ""
    graded: bool = False
    inverted: bool = False
    verified: bool = False
    closed: bool = True
    happened: bool = False
    leftover: bool = False
    conflict: OutcomeCandidate | None = None
    same: str = ""

    @property
    def pair(self) -> bool:
        """Whether two columns are held against each other."""
        return bool(self.gold)


class Match(Struct, frozen=True):
    """How a confidence and an outcome go together on the rows that are looked at."""

    n: int
    right: float
    said: float
    auroc: float
    z: float


def match(said: SaidCandidate, outcome: OutcomeCandidate) -> Match:
    """Return rows, share right, mean confidence and how well the confidence ranks."""
    p, y = said.values, outcome.values
    inside = np.isfinite(p) if said.ranked else (p >= -1e-9) & (p <= 1 + 1e-6)
    overlap = inside & np.isfinite(y)
    p, y = p[overlap], y[overlap]
    if not p.size:
        return Match(0, np.nan, np.nan, 0.5, 0.0)
    mean = np.nan if said.ranked else float(p.mean())
    return Match(int(p.size), float(y.mean()), mean, *_ranked(p, y > 0.5))


def _ranked(p: Floats, right: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float]:
    """Return the area under the curve and how many standard errors it is from chance."""
    ones, zeros = int(right.sum()), int((~right).sum())
    if not ones or not zeros:
        return 0.5, 0.0
    _, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    area = float((rank[right].sum() - ones * (ones + 1) / 2) / (ones * zeros))
    return area, (area - 0.5) / float(np.sqrt((ones + zeros + 1) / (12 * ones * zeros)))


def agreement(left: OutcomeCandidate, right: OutcomeCandidate) -> tuple[int, float]:
    """Return how many rows both speak of, and the share in which they say the same."""
    overlap = np.isfinite(left.values) & np.isfinite(right.values)
    count = int(overlap.sum())
    equal = float((left.values[overlap] == right.values[overlap]).mean()) if count else 0.0
    return count, equal


def say_the_same(left: OutcomeCandidate, right: OutcomeCandidate) -> bool:
    """Return whether two outcomes are one."""
    count, equal = agreement(left, right)
    return count > 5 and equal > 0.98


class ReadingChoice(Struct):
    """One way to read a table."""

    said: tuple[SaidCandidate, ...]
    outcome: OutcomeCandidate
    score: float
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    match: Match | None = None
    models: tuple[str, ...] = ()
    outcomes: tuple[OutcomeCandidate, ...] = ()

    @property
    def matches(self) -> list[Match]:
        """How each confidence goes with its outcome."""
        return [match(*both) for both in zip(self.said, self.each_outcome, strict=True)]

    @property
    def each_outcome(self) -> tuple[OutcomeCandidate, ...]:
        """The outcome of each confidence."""
        return self.outcomes or (self.outcome,) * len(self.said)


# -- models and questions -----------------------------------------------------------------------

Peek: TypeAlias = Callable[[Sequence[str]], pl.DataFrame]
"""Reads some columns of a table, where their names leave a doubt."""
# Models have this share of all rows that they could have, and questions so many rows, if what a
# column holds is to tell which it names; a column of answers or topics has never so many by chance.
_CROSSED, _SHARED = 0.6, 4 / 3
_FEW, _SOME, _MANY = 30, 20, 0.5


def model_column(
    names: Sequence[str], peek: Peek, *, by_name: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Return the column that is called models, and others that name the same ones.

    Models are never pooled: which of several columns is meant is asked. Where a name is enough,
    a single column is not read.
    """
    # A name is read more easily than an id.
    columns = sorted(
        model_columns(names), key=lambda name: (name != "model", bare(name).endswith("id"))
    )
    if columns and not (by_name and len(columns) == 1):
        table = peek(columns)
        # What is called models may hold texts or scores.
        few = [c.name for c in table if c.n_unique() <= max(_SOME, _MANY * table.height)]
        columns = [name for name in few if not table.schema[name].is_float()]
    if len(columns) < 2:
        return next(iter(columns), None), ()
    table = table.select(columns).unique()
    counts = {name: table[name].n_unique() for name in columns}
    most = max(counts.values())
    # One name per row of the others: what differs is told apart, what is constant adds nothing.
    if table.height > most or any(1 < count < most for count in counts.values()):
        modes = [Hint("{model}", model=name) for name in columns[:4]]
        text = ", ".join(f"{{{place}}}" for place in range(len(modes)))
        rule = f"{len(columns)} columns may be the model: {', '.join(columns)}"
        raise InputError(rule, hint=Hint(f"say which: {text}", *modes))
    finest, *equal = (name for name in columns if counts[name] == most)
    return finest, tuple(equal)


def models_and_questions(
    rows: pl.DataFrame, columns: Mapping[str, Sequence[str]], peek: Peek
) -> tuple[str | None, list[str]]:
    """Return the columns of models and of questions that are told by what they hold.

    Parameters
    ----------
    rows
        Rows that are looked at, with the columns that play no other role.
    columns
        Columns by role so far: where the model or the question is among them, the other is told.
    peek
        Reads columns with all their rows.

    Examples
    --------
    >>> rows = pl.DataFrame({"c1": ["u", "v"] * 9, "c2": [n // 2 for n in range(18)], "c3": "x"})
    >>> models_and_questions(rows, {}, rows.select)
    ('c1', ['c2'])
    """
    keys = [*columns.get("model", ()), *columns.get("method", ())]
    ids = [*columns.get("question_id", ())]
    # Counted once: with many columns this takes as long as reading them.
    kinds = ((column, column.dtype) for column in rows if not column.null_count())
    usable = (c for c, k in kinds if not (k.is_float() or k.is_nested() or k.is_temporal()))
    counts = {column.name: column.n_unique() for column in usable if column.dtype != pl.Boolean}
    counts = {name: count for name, count in counts.items() if count > 1}
    texts = (n for n in counts if is_text(rows.schema[n]) and counts[n] <= _FEW)
    # Names that say something else name no models.
    few_texts = (n for n in texts if not columns_called("run", [n]) and not name_roles(n).known)
    models = [keys] if keys else [[name] for name in few_texts]
    questions = [ids] if ids else [[name] for name in counts]
    if not models or not questions:
        return None, []
    table = peek([*dict.fromkeys(name for part in (*models, *questions) for name in part)])
    sizes = {part: table.select(part).n_unique() for part in map(tuple, models)}
    rough = {many: _rough_count(table, many) for many in map(tuple, questions)}
    for few, many in product(sizes, rough):
        # A model has one row for a question, so that there are as many questions as rows of one,
        # and hardly one for each row.
        least, most_rows = 0.9 * table.height / sizes[few], 1.1 * table.height / _SHARED
        if sizes[few] < 2 or not least <= rough[many] <= most_rows:
            continue
        size = table.select(many).n_unique()
        shared = table.height >= _SHARED * size and sizes[few] < size
        most = bool(keys) or table.height >= _CROSSED * sizes[few] * size
        both = [*dict.fromkeys((*few, *many))]
        if shared and most and table.select(both).n_unique() == table.height:
            return (None if keys else few[0]), ([] if ids else [*many])
    return None, []


def _rough_count(table: pl.DataFrame, names: Sequence[str]) -> int:
    """Return about how many values there are; of many columns hardly one names questions."""
    column = table[names[0]]
    if len(names) > 1 or not (column.dtype.is_integer() or column.dtype == pl.String):
        return table.select(names).n_unique()
    rough: int = column.to_frame().select(pl.first().approx_n_unique()).item()
    return rough


SAID_ROLES, GRADE_ROLES = frozenset({"confidence", "logprob"}), frozenset({"right", "wrong"})
_LEAST = 1.5
Beside = tuple[str, SaidCandidate, OutcomeCandidate]
_Candidate = TypeVar("_Candidate", SaidCandidate, OutcomeCandidate)


def model_of(name: str, roles: frozenset[str]) -> str:
    """Return a name without the words for a role; empty where nothing is left.

    Examples
    --------
    >>> model_of("GPT-4o confidence (%)", frozenset({"confidence"})), model_of("conf", SAID_ROLES)
    ('GPT-4o', '')
    """
    bare = re.sub(r"\s*[(\[{][^)\]}]*[)\]}]", "", name)
    bare = bare if _roleless(bare, roles) else re.sub(r"[(\[{)\]}]", " ", name)
    pieces = re.split(r"([\s_.:/|?!,;–-]+)", bare)
    selection = [piece for piece in pieces if not tokens(piece) or _roleless(piece, roles)]
    return "".join(selection).strip(" \t_-–.,:;/|?!%()[]{}") if len(selection) < len(pieces) else ""


def _roleless(name: str, roles: frozenset[str]) -> bool:
    return any(not roles & {*token_weights(word)} and word != "is" for word in tokens(name))


def models_beside(
    columns: Sequence[Column], said: Iterable[SaidCandidate], outcomes: Iterable[OutcomeCandidate]
) -> list[Beside]:
    """Return the confidence and outcome of each model, where at least two have both."""
    said = [c for c in said if c.score >= _LEAST]
    outcomes = [o for o in outcomes if o.score >= _LEAST and not o.pair]
    by_model, graded = _by_key(said, SAID_ROLES), _by_key(outcomes, GRADE_ROLES)
    pair = [key for key in by_model if key in graded]
    alone = all(len(by_model[key]) == 1 == len(graded[key]) for key in pair)
    if len(pair) < 2 or not alone or _some_are_left(said, outcomes, pair):
        # Numbers that each have the same outcome column right after them: `ok`, `ok [2]`.
        by_said, by_outcome = {c.column: c for c in said}, {o.column: o for o in outcomes}
        matches = [
            (re.sub(r" \[\d+\]$", "", left.name), by_said[left.name], by_outcome[right.name])
            for left, right in pairwise(columns)
            if left.name in by_said and right.name in by_outcome and not left.roles.other
        ]
        called = {re.sub(r" \[\d+\]$", "", outcome.column) for _, _, outcome in matches}
        return matches if len(matches) >= 2 and len(called) == 1 else []
    place = {column.name: n for n, column in enumerate(columns)}
    models = sorted(
        ((by_model[k][0], graded[k][0]) for k in pair), key=lambda two: place[two[0].column]
    )
    return [(model_of(c.column, SAID_ROLES), c, o) for c, o in models]


def _by_key(candidates: Iterable[_Candidate], roles: frozenset[str]) -> dict[str, list[_Candidate]]:
    """Return candidates by the model that their names say."""
    by_model: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        if model := model_key(candidate.column, roles):
            by_model.setdefault(model, []).append(candidate)
    return by_model


def model_key(name: str, roles: frozenset[str]) -> str:
    """Return what names of one model's columns share; empty where a name says a role alone."""
    return " ".join(tokens(model_of(name, roles)))


def _some_are_left(
    confidence: Sequence[SaidCandidate], outcomes: Sequence[OutcomeCandidate], pair: Sequence[str]
) -> bool:
    """Return whether a strong confidence has no outcome of its model: then somebody is asked."""
    matched = {c.column for c in confidence if model_key(c.column, SAID_ROLES) in pair}
    strong = {c.column for c in confidence if c.score >= 3}
    plain = sum(o.score >= 2.6 and not model_of(o.column, GRADE_ROLES) for o in outcomes)
    return bool(strong - matched) or 0 < plain < len(outcomes) - len(matched)
