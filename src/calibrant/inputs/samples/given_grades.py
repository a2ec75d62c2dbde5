"""Grades that come with sampled answers: a list beside the list of answers, or one per draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import polars as pl

from calibrant.core.errors import InputError
from calibrant.inputs.draws import divided_note, majority_grade

GRADE = "correct"
"""Column of the grades that were given, in a table of draws."""


def is_list(table: pl.DataFrame, name: str) -> bool:
    """Return whether a column holds lists, or JSON text of them as in a CSV file."""
    if isinstance(table.schema[name], pl.List):
        return True
    if table.schema[name] != pl.String:
        return False
    return parsed_list(table[name].drop_nulls().first()) is not None


def listed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the table with a column of JSON text read as lists of texts."""
    if table.schema[name] != pl.String or not is_list(table, name):
        return table
    cells = [[str(item) for item in parsed_list(text) or []] for text in table[name].fill_null("")]
    return table.with_columns(pl.Series(name, cells, dtype=pl.List(pl.String)))


def parsed_list(text: Any) -> list[Any] | None:
    """Return the list that a cell of a CSV file holds as JSON, or None."""
    if not isinstance(text, str) or not text.lstrip().startswith("["):
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list) else None


def with_grades(table: pl.DataFrame, roles: Mapping[str, str], source: str) -> pl.DataFrame:
    """Return the table with true or false per draw in the column of grades.

    Parameters
    ----------
    table
        A list of answers per row with a list of grades, or an answer per row with its grade.
    roles
        Columns by role: ``samples`` and ``correct``.
    source
        Name of the table in messages.

    Examples
    --------
    >>> table = pl.DataFrame({"a": [["4", "5"]], "g": [[1, 0]]})
    >>> with_grades(table, {"samples": "a", "correct": "g"}, "t")["g"].to_list()
    [[True, False]]
    """
    name, samples = roles[GRADE], roles["samples"]
    table = listed(table, name)
    lists = isinstance(table.schema[samples], pl.List)
    if lists != isinstance(table.schema[name], pl.List):
        raise InputError(
            f"{samples!r} and {name!r} do not agree: one grade per answer is needed",
            source=source,
            hint="give a list of grades beside each list of answers, or one grade per row",
        )
    if lists:
        differs = table[samples].list.len() != table[name].list.len()
        if differs.any():
            row = int(differs.arg_true()[0])
            sizes = (len(table[column][row]) for column in (samples, name))
            raise InputError("{} answers have {} grades".format(*sizes), source=source, row=row + 1)
    grade = pl.col(name).explode() if lists else pl.col(name)
    flat = table.select(grade.cast(pl.String).str.to_lowercase().alias("grade"))["grade"]
    known = flat.replace_strict(_GRADES, default=None, return_dtype=pl.Boolean)
    odd = flat.filter(known.is_null() & flat.is_not_null())
    if odd.len():
        raise InputError(
            f"a grade of an answer is 0 or 1, got {odd[0]!r} in {name!r}", source=source
        )
    element = pl.element().cast(pl.String).str.to_lowercase()
    read = element.replace_strict(_GRADES, default=None, return_dtype=pl.Boolean)
    if lists:
        return table.with_columns(pl.col(name).list.eval(read))
    return table.with_columns(known.alias(name))


_MEANING = ["question_id", "model", "class_id"]
_GRADES = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


def graded_by_given(
    draws: pl.DataFrame, semantics: pl.DataFrame, given: pl.DataFrame, key: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return draws without grades, classes with the grades that were given, and what to note.

    A class keeps its draws and gets one grade, see `majority_grade`: a draw without a grade, or
    with another one than most of its class, has that of its class.

    Parameters
    ----------
    draws, semantics
        Tables as in a study.
    given
        Draws with the column of grades.
    key
        Columns that name a draw.
    """
    own = pl.col("class_id").is_not_null()
    found = given.select(*key, pl.col(GRADE).alias("_given"))
    graded = semantics.join(found, on=key, how="left", maintain_order="left").with_columns(
        pl.when(own).then(majority_grade("_given", _MEANING)).alias(GRADE)
    )
    notes = divided_note(graded, "_given", _MEANING)
    told = own & pl.col("_given").eq_missing(pl.col(GRADE)) & pl.col(GRADE).is_not_null()
    graded = graded.with_columns(
        pl.when(told)
        .then(pl.lit("given"))
        .when(pl.col(GRADE).is_not_null())
        .then(pl.lit("given to its meaning"))
        .otherwise("grader")
        .alias("grader"),
        # A grade that was given is not the grader's own: it has no chance.
        pl.when(pl.col(GRADE).is_null()).then("chance").alias("chance"),
    )
    return draws.drop(GRADE, strict=False), graded.drop("_given"), notes
