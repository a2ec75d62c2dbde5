"""Draws with a meaning and a grade: grades that were given, one per meaning, scores of meanings."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from calibrant.core.errors import InputError


def drawn_again(draws: pl.DataFrame) -> pl.DataFrame | None:
    """Return the draws of models that answered some question more than once; None without any.

    How often an answer comes back is what calibration over meanings is about.
    """
    twice = draws.group_by("model", "question_id").len().filter(pl.col("len") > 1)
    rows = draws.join(twice.select("model").unique(), on="model", how="semi")
    return rows if rows.height else None


def with_silent(scores: pl.DataFrame, draws: pl.DataFrame) -> pl.DataFrame:
    """Return scores with a row without a confidence for every answer that a method says nothing of.

    Examples
    --------
    >>> draws = pl.DataFrame({"question_id": ["a", "b"], "model": ["m", "m"], "answer": ["1", "2"]})
    >>> scores = draws.head(1).with_columns(method=pl.lit("verb"), confidence=0.5)
    >>> with_silent(scores, draws)["confidence"].to_list()
    [0.5, None]
    """
    unit = ["question_id", "model"]
    if not {*unit, "method"} <= {*scores.columns}:
        return scores
    extra = [name for name in ("answer", "correct") if name in draws.columns]
    answers = draws.select(*unit, *extra).unique(unit, keep="first", maintain_order=True)
    pairs = scores.select("model", "method").unique(maintain_order=True)
    every = answers.join(pairs, on="model", maintain_order="left")
    silent = every.join(scores, on=[*unit, "method"], how="anti", maintain_order="left")
    return pl.concat([scores, silent], how="diagonal_relaxed") if silent.height else scores


def majority_grade(grade: str, same: Sequence[str]) -> pl.Expr:
    """Return the grade of most graded draws of a meaning; where they tie, of its first graded one.

    Parameters
    ----------
    grade
        Column with true, false, or null for a draw without a grade.
    same
        Columns that are equal in draws of one meaning.

    Examples
    --------
    >>> table = pl.DataFrame({"c": [0, 0, 0, 1, 1, 2], "g": [True, False, True, False, True, None]})
    >>> table.select(majority_grade("g", ["c"]))["g"].to_list()
    [True, True, True, False, False, None]
    """
    share = pl.col(grade).mean().over(same)
    first = pl.col(grade).drop_nulls().first().over(same)
    most = pl.when(share > 0.5).then(True).when(share < 0.5).then(False)
    return most.otherwise(first).alias(grade)


def divided_note(draws: pl.DataFrame, grade: str, same: Sequence[str]) -> list[str]:
    """Say how many meanings hold right and wrong draws, and which grade they have.

    Examples
    --------
    >>> table = pl.DataFrame({"c": [0, 0, 1], "g": [True, False, True]})
    >>> divided_note(table, "g", ["c"])[0][:55]
    'meanings with draws graded right and draws graded wrong'
    """
    graded = draws.drop_nulls([*same, grade]).group_by(same).agg(share=pl.col(grade).mean())
    divided = graded.filter(pl.col("share").is_between(0, 1, closed="none"))
    if not divided.height:
        return []
    tied = divided.filter(pl.col("share") == 0.5).height
    ties = f", and where they tie ({tied:,}) that of its first draw" if tied else ""
    return [
        f"meanings with draws graded right and draws graded wrong: {divided.height:,} of "
        f"{graded.height:,}. Each counts as one meaning, with the grade of most of its draws{ties}"
    ]


def meaning_scores(draws: pl.DataFrame, *, keep: Sequence[str] = ()) -> pl.DataFrame:
    """Return Sem1 and Sem2 of each question and model as scores, for what takes scores.

    Parameters
    ----------
    draws
        One row per draw: question_id, model, class_id, correct.
    keep
        Columns of the questions to keep, for groups.

    Examples
    --------
    >>> table = pl.DataFrame({"question_id": ["q"] * 4, "model": ["m"] * 4,
    ...     "class_id": ["a", "a", "a", "b"], "correct": [1, 1, 1, 0]})
    >>> meaning_scores(table).select("method", "confidence", "correct").rows()
    [('sem1', 0.75, 1.0), ('sem2', 0.5, 0.75)]
    """
    # Loaded here: most inputs hold no draws.
    from calibrant.metrics.semantic import pool_draws, question_scores

    parts = []
    for part in draws.partition_by("model", maintain_order=True):
        ids, classes = part["question_id"].to_numpy(), class_numbers(part["class_id"])
        pool = pool_draws(ids, classes, part["correct"].cast(pl.Float64).to_numpy())
        sem = question_scores(pool, splits="exact")
        keys = {"question_id": sem.ids.astype(str), "model": part["model"][0]}
        for method, confidence, grade in (
            ("sem1", sem.sem1, sem.label1),
            ("sem2", sem.sem2, sem.label2),
        ):
            confidences = {"method": method, "confidence": confidence, "correct": grade}
            parts.append(pl.DataFrame(keys | confidences))
    scores = pl.concat(parts)
    selection = [name for name in keep if name in draws.columns and name not in scores.columns]
    if not selection:
        return scores
    features = draws.select("question_id", *selection).unique("question_id", keep="first")
    return scores.join(features, on="question_id", how="left", maintain_order="left")


def class_numbers(column: pl.Series) -> Any:
    """Return classes as numbers, NaN for a draw without an answer; texts are numbered."""
    if column.dtype == pl.String:
        column = column.replace("", None).cast(pl.Categorical).to_physical()
    return column.cast(pl.Float64).to_numpy()


GRADE = "correct"
"""Column of the grades that were given, in a table of draws."""


def is_list(table: pl.DataFrame, name: str) -> bool:
    """Return whether a column holds lists, or JSON text of them as in a CSV file."""
    if table.schema[name] != pl.String:
        return isinstance(table.schema[name], pl.List)
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
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, list) else None


def with_grades(table: pl.DataFrame, roles: Mapping[str, str]) -> pl.DataFrame:
    """Return the table with true or false per draw in the column of grades.

    Parameters
    ----------
    table
        A list of answers per row with a list of grades, or an answer per row with its grade.
    roles
        Columns by role: ``samples`` and ``correct``.

    Examples
    --------
    >>> table = pl.DataFrame({"a": [["4", "5"]], "g": [[1, 0]]})
    >>> with_grades(table, {"samples": "a", "correct": "g"})["g"].to_list()
    [[True, False]]
    """
    name, samples = roles[GRADE], roles["samples"]
    table = listed(table, name)
    lists = isinstance(table.schema[samples], pl.List)
    if lists != isinstance(table.schema[name], pl.List):
        raise InputError(
            f"{samples!r} and {name!r} do not agree: one grade per answer is needed",
            hint="give a list of grades beside each list of answers, or one grade per row",
        )
    if lists:
        differs = table[samples].list.len() != table[name].list.len()
        if differs.any():
            row = int(differs.arg_true()[0])
            sizes = (len(table[column][row]) for column in (samples, name))
            raise InputError("{} answers have {} grades".format(*sizes), row=row + 1)
    words = table[name].explode() if lists else table[name]
    words = words.cast(pl.String).str.to_lowercase()
    odd = words.filter(~words.is_in([*_GRADES]))
    if odd.len():
        raise InputError(f"a grade of an answer is 0 or 1, got {odd[0]!r} in {name!r}")
    word = (pl.element() if lists else pl.col(name)).cast(pl.String).str.to_lowercase()
    grade = word.replace_strict(_GRADES, default=None, return_dtype=pl.Boolean)
    return table.with_columns(pl.col(name).list.eval(grade) if lists else grade)


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
    in_class = pl.col("class_id").is_not_null()
    grades = given.select(*key, pl.col(GRADE).alias("_given"))
    graded = semantics.join(grades, on=key, how="left", maintain_order="left").with_columns(
        pl.when(in_class).then(majority_grade("_given", _MEANING)).alias(GRADE)
    )
    notes = divided_note(graded, "_given", _MEANING)
    finite = pl.col(GRADE).is_not_null()
    equal = in_class & pl.col("_given").eq_missing(pl.col(GRADE)) & finite
    given_by = (
        pl.when(equal).then(pl.lit("given")).when(finite).then(pl.lit("given to its meaning"))
    )
    # A grade that was given is not the grader's own: it has no chance.
    chance = pl.when(~finite).then("chance").alias("chance")
    graded = graded.with_columns(given_by.otherwise("grader").alias("grader"), chance)
    return draws.drop(GRADE, strict=False), graded.drop("_given"), notes
