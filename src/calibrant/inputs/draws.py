"""Draws with a meaning and a grade, from a study, a log or tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.inputs.logs import ForeignTables
from calibrant.records import Study, read_table, scan_table, source_name
from calibrant.records.tables import column_names

__all__ = [
    "class_numbers",
    "draws_with_classes",
    "holds_draws",
    "meaning_scores",
    "question_texts",
]

_TEXT_COLUMNS = ("text", "question_text", "question", "prompt")
_ROLES = {"question": "question_id", "model": "model", "correct": "correct"}
_KEY = ["question_id", "model", "purpose", "draw"]


def draws_with_classes(
    data: Any, columns: Mapping[str, Any] | None = None, by: Sequence[str] = ()
) -> pl.DataFrame | None:
    """Return one row per draw (question_id, model, class_id, correct), or None without draws.

    Parameters
    ----------
    data
        A study that holds draws and semantics, a foreign log, or one or several tables with a
        column ``class_id`` (numbers or texts; null where a draw holds no answer).
    columns
        Names of the columns of question, model and correct where they differ.
    by
        Columns of the questions that groups are made of; a study has them in another table.

    Examples
    --------
    >>> table = pl.DataFrame({"qid": [1, 1], "class_id": ["a", "b"], "correct": [1, 0]})
    >>> draws_with_classes(table, {"question": "qid"})["question_id"].to_list()
    ['1', '1']
    """
    if isinstance(data, str | Path) and Study.is_study(data):
        return _study_draws(Study(data), by)
    if isinstance(data, ForeignTables):
        return data.draws_with_classes()
    tables = list(data) if isinstance(data, list | tuple) else [data]
    if not tables or not all(holds_draws(table, columns) for table in tables):
        return None
    several = len(tables) > 1
    read = [_table_draws(table, columns or {}, several=several) for table in tables]
    return pl.concat(read, how="diagonal_relaxed")


def holds_draws(data: Any, columns: Mapping[str, Any] | None = None) -> bool:
    """Return whether this is a table of draws with their classes."""
    names = column_names(scan_table(data), data)
    question = (columns or {}).get("question") or "question_id"
    return "class_id" in names and question in names


def _study_draws(study: Study, by: Sequence[str]) -> pl.DataFrame | None:
    if not (study.has("draws") and study.has("semantics")):
        return None
    answers = study.read("draws")
    wanted = [name for name in ("answer", "stated_confidence") if name in answers.columns]
    draws = study.read("semantics").join(answers.select(*_KEY, *wanted), on=_KEY, how="left")
    draws = draws.filter(pl.col("purpose") == "answer")
    if by and study.has("questions"):
        questions = study.read("questions")
        known = [name for name in by if name in questions.columns and name not in draws.columns]
        draws = draws.join(
            questions.select("question_id", *known),
            on="question_id",
            how="left",
            maintain_order="left",
        )
    return draws


def _table_draws(data: Any, columns: Mapping[str, Any], *, several: bool) -> pl.DataFrame:
    table = read_table(data)
    for role, name in _ROLES.items():
        given = columns.get(role)
        if given is None or given == name:
            continue
        if given not in table.columns:
            raise InputError(
                f"there is no column {given!r}",
                source=source_name(data),
                hint=did_you_mean(given, table.columns),
            )
        table = table.drop(name, strict=False).rename({given: name})
    if "correct" not in table.columns:
        raise InputError(
            "a table of draws needs a grade per draw: a column correct",
            source=source_name(data),
        )
    if "model" not in table.columns:
        named = several and isinstance(data, str | Path)
        model = Path(data).name.split(".")[0] if named else "model"
        table = table.with_columns(model=pl.lit(model))
    return table.with_columns(pl.col("question_id", "model").cast(pl.String))


def question_texts(data: Any, draws: pl.DataFrame) -> pl.DataFrame | None:
    """Return the questions' texts (question_id, text) where the data has them."""
    if isinstance(data, ForeignTables):
        found = data.questions
    elif isinstance(data, str | Path) and Study.is_study(data):
        if not Study(data).has("questions"):
            return None
        found = Study(data).read("questions")
    else:
        found = draws
    column = next((name for name in _TEXT_COLUMNS if name in found.columns), None)
    if column is None:
        return None
    pair = pl.col("question_id").cast(pl.String), pl.col(column).cast(pl.String).alias("text")
    return found.select(pair).unique("question_id", keep="first", maintain_order=True)


def meaning_scores(draws: pl.DataFrame, *, keep: Sequence[str] = ()) -> pl.DataFrame:
    """Return Sem1 and Sem2 of each question and model as scores, for what takes scores.

    Parameters
    ----------
    draws
        One row per draw, see `draws_with_classes`.
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
        pool = pool_draws(
            part["question_id"].to_numpy(),
            class_numbers(part["class_id"]),
            part["correct"].cast(pl.Float64).to_numpy(),
        )
        found = question_scores(pool, splits="exact")
        for method, confidence, grade in (
            ("sem1", found.sem1, found.label1),
            ("sem2", found.sem2, found.label2),
        ):
            parts.append(
                pl.DataFrame(
                    {
                        "question_id": found.ids.astype(str),
                        "model": part["model"][0],
                        "method": method,
                        "confidence": confidence,
                        "correct": grade,
                    }
                )
            )
    scores = pl.concat(parts)
    known = [name for name in keep if name in draws.columns and name not in scores.columns]
    if not known:
        return scores
    features = draws.select("question_id", *known).unique("question_id", keep="first")
    return scores.join(features, on="question_id", how="left", maintain_order="left")


def class_numbers(column: pl.Series) -> Any:
    """Return classes as numbers, NaN for a draw without an answer; texts are numbered."""
    if column.dtype == pl.String:
        column = column.replace("", None).cast(pl.Categorical).to_physical()
    return column.cast(pl.Float64).to_numpy()
