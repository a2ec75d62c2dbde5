"""Sampled answers in the shapes people have them: read into questions and draws.

A list of answers per question, a row per draw, the output of a batch endpoint or another log with
a file of references beside it, calibrant's own tables. Columns that are not named are guessed, and
the guesses are told.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, error_source, require_known
from calibrant.core.hints import Hint
from calibrant.data import Study, read_table, source_name
from calibrant.data.formats import is_study
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.data.questions import load_questions
from calibrant.data.reading.names import WORDS, name_roles
from calibrant.data.score_table import models_by_file
from calibrant.data.sources.draws import GRADE, is_list, listed, parsed_list, with_grades
from calibrant.data.study import DRAWS

_MODEL = "model"
# Names known not to be right, however alike they look: the grader and the classes use them.
_SIBLINGS = "siblings"


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Names of columns by role; None leaves the choice to their content."""

    samples: str | None = None
    reference: str | None = None
    question: str | None = None
    model: str | None = None
    correct: str | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """Questions with their references, and one row per sampled answer.

    `columns` says which column plays which role, `guessed` which of these were not named by the
    caller, `notes` what else a reader should know, `beside` in which file the references are.
    """

    questions: pl.DataFrame
    draws: pl.DataFrame
    shape: str
    columns: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    beside: str | None = None


def read_samples(
    data: Any, columns: SampleColumns | None = None, *, references: Any = None
) -> Samples:
    """Read sampled answers of any known shape.

    Parameters
    ----------
    data
        A table (csv, jsonl, parquet, dataframe), a log, a study, or several tables.
    columns
        Names of columns where they should not be guessed.
    references
        File of questions with their right answers, in any layout of `calibrant.data.questions`, for
        data that has none.

    Examples
    --------
    >>> cells = {"question": ["2 + 2?"], "answers": [["4", "four", "5"]], "gold": ["4"]}
    >>> table = pl.DataFrame(cells)
    >>> found = read_samples(table)
    >>> found.shape, found.draws.height, found.questions["references"].to_list()
    ('list per question', 3, [[['4']]])
    """
    target_names = columns or SampleColumns()
    parts = list(data) if isinstance(data, list | tuple) else [data]
    known_values = references is not None
    models = models_by_file(parts) if len(parts) > 1 else [None]
    names = zip(parts, models, strict=True)
    read = [
        _read_one(part, target_names, model or _MODEL, known=known_values) for part, model in names
    ]
    samples = read[0] if len(read) == 1 else _joined(read)
    if references is not None:
        with error_source(source_name(references)):
            samples = match_references(samples, load_questions(references))
        if isinstance(references, str | Path):
            samples = replace(samples, beside=str(references))
    with error_source(source_name(parts[0])):
        _require(samples)
    return samples


def _read_one(data: Any, target: SampleColumns, model: str, *, known: bool) -> Samples:
    if isinstance(data, str | Path):
        if is_study(data):
            study = Study(data)
            for name in ("questions", "draws"):
                if not study.has(name):
                    raise InputError(f"the study has no {name}", source=str(study.path))
            draws = study.read("draws").filter(pl.col("purpose") == "answer")
            return Samples(study.read("questions"), draws, "study")
        if recognise(data) is not None:
            log = read_log(data)
            draws = log.draws.select(n for n in DRAWS.columns if n in log.draws.columns)
            draws = draws.with_columns(text=pl.coalesce("text", "answer"))
            note = f"{len(log.problems)} parts of the log could not be read"
            return Samples(log.questions, draws, log.kind, notes=(note,) if log.problems else ())
    with error_source(source_name(data)):
        return _from_table(read_table(data), target, model, known=known)


# -- tables ------------------------------------------------------------------------------------


def _from_table(table: pl.DataFrame, target: SampleColumns, model: str, *, known: bool) -> Samples:
    if table.is_empty():
        raise InputError("the table holds no rows")
    wide = [name.strip() for name in (target.samples or "").split(",")]
    if len(wide) > 1 and {*wide} <= {*table.columns}:
        # Draws side by side are a list per question.
        table = table.with_columns(pl.concat_list(wide).alias(target.samples or "")).drop(wide)
    roles, guessed = _roles(table, target)
    table = listed(table, roles["samples"])
    if target.correct is not None:
        require_known([target.correct], table.columns, "there is no column {}")
    # Grades are taken where they are named, or there while no right answer is.
    if target.correct or (GRADE in table.columns and "reference" not in roles and not known):
        roles[GRADE] = target.correct or GRADE
        guessed += () if target.correct else (GRADE,)
        table = with_grades(table, roles)
    in_lists = isinstance(table.schema[roles["samples"]], pl.List)
    table = _with_ids(table, roles, in_lists)
    if "model" not in roles:
        table = table.with_columns(pl.lit(model).alias("__model"))
    names = table.rename(
        {roles["samples"]: "__text", **({roles["model"]: "__model"} if "model" in roles else {})}
    )
    draws = _draws(names, roles, in_lists)
    questions = _questions(names, roles)
    shape = "list per question" if in_lists else "row per draw"
    kinds = {name: name_roles(name) for name in table.columns if name not in roles.values()}
    free = [n for n, kind in kinds.items() if kind.logprob >= 2 or kind.confidence >= 2]
    note = f"Not used: {', '.join(free)}. Of a table of samples, texts and grades are read."
    return Samples(questions, draws, shape, roles, guessed, (note,) if free else ())


def _roles(table: pl.DataFrame, target: SampleColumns) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the column of each role, and the roles that were guessed."""
    roles: dict[str, str] = {}
    guessed = []
    for role, usual in WORDS["samples"].items():
        names = usual.split()
        values = getattr(target, role, None)
        if values is not None:
            rule = f"there is no column {{}}; the table has {', '.join(table.columns)}"
            require_known([values], table.columns, rule)
            roles[role] = values
            continue
        selection = {*roles.values(), *astuple(target)}
        free = [name for name in names if name in table.columns and name not in selection]
        if role == "samples":
            # A list is a better guess than a text: `answer` may be the reference.
            free.sort(key=lambda name: not is_list(table, name))
        if free:
            roles[role] = free[0]
            guessed.append(role)
    if "samples" not in roles:
        raise InputError(
            f"no column of sampled answers was found among {', '.join(table.columns)}",
            hint=Hint("name it: {samples} COLUMN, or leave out {references} and {reference}"),
        )
    return roles, tuple(guessed)


def _with_ids(table: pl.DataFrame, roles: dict[str, str], listed: bool) -> pl.DataFrame:
    """Add ``__id``: the question's id, or its text, or in a list per question its row."""
    if "question" in roles:
        return table.with_columns(pl.col(roles["question"]).cast(pl.String).alias("__id"))
    if "text" in roles:
        return table.with_columns(pl.col(roles["text"]).cast(pl.String).alias("__id"))
    if listed:
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String)
        return table.with_columns(__id=pl.lit("row ") + numbers)
    raise InputError(
        "a row per draw needs a column that says which question it answers; the table has "
        + ", ".join(table.columns),
        hint=Hint("name it: {question} COLUMN"),
    )


def _draws(table: pl.DataFrame, roles: Mapping[str, str], listed: bool) -> pl.DataFrame:
    extra = [name for name in DRAWS.optional if name in table.columns and name != "answer"]
    key, graded = ["question_id", "model"], [GRADE] if GRADE in roles else []
    draws = table.select(
        pl.col("__id").alias("question_id"),
        pl.col("__model").cast(pl.String).fill_null(_MODEL).alias("model"),
        pl.lit("answer").alias("purpose"),
        *([pl.col(roles["draw"]).alias("draw")] if "draw" in roles and not listed else []),
        pl.col("__text").alias("text"),
        *(pl.col(roles[name]).alias(name) for name in graded),
        *([] if listed else extra),
    )
    if listed:
        draws = draws.explode("text", *graded)
    number = pl.int_range(pl.len()).over(key)
    kind = draws.schema.get("draw")
    if kind is None or not kind.is_integer() or draws.select(*key, "draw").is_duplicated().any():
        draws = draws.with_columns(number.alias("draw"))
    text = pl.col("text").cast(pl.String).fill_null("")
    return draws.with_columns(pl.col("draw").cast(pl.Int64), text)


def _questions(table: pl.DataFrame, roles: Mapping[str, str]) -> pl.DataFrame:
    """One row per question: text, references, siblings and further columns that are no lists."""
    first = table.unique("__id", keep="first", maintain_order=True)
    used = {*roles.values(), "__id", "__text", "__model", *DRAWS.columns}
    features = [
        name
        for name, kind in first.schema.items()
        if name not in used and (name == _SIBLINGS or not isinstance(kind, pl.List | pl.Struct))
    ]
    text = pl.col(roles["text"]).cast(pl.String).fill_null("") if "text" in roles else pl.lit("")
    questions = first.select(question_id="__id", text=text)
    if "reference" in roles:
        cells = [as_references(cell) for cell in first[roles["reference"]].to_list()]
        references = pl.Series("references", cells, dtype=pl.List(pl.List(pl.String)))
        questions = questions.with_columns(references)
    return questions.with_columns(first[name] for name in features if name not in questions.columns)


def as_references(cell: Any) -> list[list[str]] | None:
    """Return the right answers of a question: a list holds spellings of one right answer.

    Examples
    --------
    >>> as_references("Paris"), as_references(["USA", "US"]), as_references([["a"], ["b"]])
    ([['Paris']], [['USA', 'US']], [['a'], ['b']])
    """
    parsed = parsed_list(cell)
    cell = cell if parsed is None else parsed
    if cell is None or cell == "" or cell == []:
        return None
    if not isinstance(cell, Sequence) or isinstance(cell, str):
        return [[str(cell)]]
    if all(isinstance(item, Sequence) and not isinstance(item, str) for item in cell):
        return [[str(alias) for alias in item] for item in cell]
    return [[str(item) for item in cell if item is not None]]


def _joined(read: Sequence[Samples]) -> Samples:
    questions = pl.concat([part.questions for part in read], how="diagonal_relaxed")
    draws = pl.concat([part.draws for part in read], how="diagonal_relaxed")
    key = ["question_id", "model", "purpose", "draw"]
    # Files with further draws of the same model go on counting.
    draws = draws.with_columns(pl.int_range(pl.len()).over("question_id", "model").alias("draw"))
    return replace(
        read[0],
        questions=questions.unique("question_id", keep="first", maintain_order=True),
        draws=draws.unique(key, keep="first", maintain_order=True),
        notes=tuple(note for part in read for note in part.notes),
    )


def _require(samples: Samples) -> None:
    if not samples.draws.height:
        raise InputError("there are no sampled answers")
    if GRADE in samples.draws.columns:
        return
    known_values = "references" in samples.questions.columns
    if not known_values or not samples.questions["references"].is_not_null().any():
        raise InputError(
            "no question has a right answer to grade by",
            hint=Hint(
                "name their column: {reference} COLUMN, their file: {references} FILE, or the "
                "column of grades: {correct} COLUMN"
            ),
        )


# What people put between a question's id and the number of the draw.
_DRAW = re.compile(
    r"^(.*?)[-_:#/.|@ ]{1,3}(?:draw|sample|gen|attempt|run|n|s)?[-_:#=]{,2}\d{1,9}$", re.I
)
_SHOWN = 3


def match_references(samples: Samples, questions: pl.DataFrame) -> Samples:
    """Return the samples under the ids of the questions in a file of references.

    An id that is not in the file may be a question's id with a draw number behind it.
    """
    ids = questions["question_id"].cast(pl.String).to_list()
    renamed = matched_ids(samples.draws["question_id"].unique(maintain_order=True).to_list(), ids)
    missing = [name for name, question in renamed.items() if question is None]
    if len(missing) == len(renamed):
        raise InputError(
            f"no answer belongs to a question of the references: the answers are for "
            f"{', '.join(missing[:_SHOWN])}, the references for {', '.join(ids[:_SHOWN])}",
            hint="give both the same question ids",
        )
    name = pl.col("question_id").replace_strict(renamed, return_dtype=pl.String)
    draws = samples.draws.with_columns(name).drop_nulls("question_id")
    key = ["question_id", "model"]
    if draws.select(*key, "draw").is_duplicated().any():
        draws = draws.with_columns(pl.int_range(pl.len()).over(key).alias("draw"))
    notes = list(samples.notes)
    if missing:
        notes.append(f"{len(missing)} answered questions have no reference and are left out")
    return replace(samples, questions=questions, draws=draws, notes=tuple(notes))


def matched_ids(answered: Iterable[str], questions: Iterable[str]) -> dict[str, str | None]:
    """Return the question of each id that answers have.

    Examples
    --------
    >>> matched_ids(["q1", "q2-7", "q3_draw12", "q9"], ["q1", "q2", "q3"])
    {'q1': 'q1', 'q2-7': 'q2', 'q3_draw12': 'q3', 'q9': None}
    """
    ids, matched = set(questions), dict[str, str | None]()
    for name in answered:
        parts = None if name in ids else _DRAW.match(name)
        question = name if parts is None else parts.group(1)
        matched[name] = question if question in ids else None
    return matched
