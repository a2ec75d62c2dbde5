"""Which columns name models and questions, and which models stand side by side."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TypeAlias, TypeVar

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.cells import Column, is_text
from calibrant.data.reading.names import (
    bare,
    columns_called,
    model_columns,
    name_roles,
    token_weights,
    tokens,
)

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
        columns = [name for name in columns if _may_hold_names(table[name])]
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
    counts = {name: rows[name].n_unique() for name in rows.columns if _may_name(rows[name])}
    counts = {name: count for name, count in counts.items() if count > 1}
    few_texts = [name for name, count in counts.items() if _may_be_models(rows[name], count)]
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


def _may_hold_names(column: pl.Series) -> bool:
    """Return whether a column that is called models may hold their names, not texts or scores."""
    return not column.dtype.is_float() and column.n_unique() <= max(_SOME, _MANY * column.len())


def _may_name(column: pl.Series) -> bool:
    kind = column.dtype
    named = not (kind.is_float() or kind.is_nested() or kind.is_temporal() or kind == pl.Boolean)
    return named and not column.null_count()


def _rough_count(table: pl.DataFrame, names: Sequence[str]) -> int:
    """Return about how many values there are; of many columns hardly one names questions."""
    column = table[names[0]]
    if len(names) > 1 or not (column.dtype.is_integer() or column.dtype == pl.String):
        return table.select(names).n_unique()
    rough: int = column.to_frame().select(pl.first().approx_n_unique()).item()
    return rough


def _may_be_models(column: pl.Series, count: int) -> bool:
    """Return whether a column holds few texts, and its name says nothing else."""
    few = is_text(column.dtype) and count <= _FEW
    return few and not columns_called("run", [column.name]) and not name_roles(column.name).known


# -- models side by side -----------------------------------------------------------------------

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
    selection = [piece for piece in pieces if not _says(piece, roles)]
    return "".join(selection).strip(" \t_-–.,:;/|?!%()[]{}") if len(selection) < len(pieces) else ""


def _says(piece: str, roles: frozenset[str]) -> bool:
    return bool(tokens(piece)) and not _roleless(piece, roles)


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
        return _by_place(columns, said, outcomes)
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


def _by_place(
    columns: Sequence[Column],
    confidence: Iterable[SaidCandidate],
    outcomes: Iterable[OutcomeCandidate],
) -> list[Beside]:
    """Return numbers that each have the same outcome column right after them: `ok`, `ok [2]`."""
    by_said, by_outcome = {c.column: c for c in confidence}, {o.column: o for o in outcomes}
    matches = [
        (re.sub(r" \[\d+\]$", "", left.name), by_said[left.name], by_outcome[right.name])
        for left, right in pairwise(columns)
        if left.name in by_said and right.name in by_outcome and not left.roles.other
    ]
    called = {re.sub(r" \[\d+\]$", "", outcome.column) for _, _, outcome in matches}
    return matches if len(matches) >= 2 and len(called) == 1 else []
