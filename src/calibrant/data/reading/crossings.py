"""Which columns name models and questions: each model has one row for most questions."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.reading.cells import is_text
from calibrant.data.reading.names import bare, columns_called, model_columns, name_roles

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
    if not columns or (by_name and len(columns) == 1):
        return (columns[0] if columns else None), ()
    table = peek(columns)
    columns = [name for name in columns if _may_hold_names(table[name])]
    if len(columns) < 2:
        return (columns[0] if columns else None), ()
    table = table.select(columns).unique()
    counts = {name: table[name].n_unique() for name in columns}
    most = max(counts.values())
    # One name per row of the others: what differs is told apart, what is constant adds nothing.
    if table.height > most or any(1 < count < most for count in counts.values()):
        modes = [Hint("{model}", model=name) for name in columns[:4]]
        text = ", ".join(f"{{{place}}}" for place in range(len(modes)))
        raise InputError(
            f"{len(columns)} columns may be the model: {', '.join(columns)}",
            hint=Hint(f"say which: {text}", *modes),
        )
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
