"""Rows for the report's browser of questions: what was asked, answered, graded and claimed."""

from __future__ import annotations

from typing import Any

import polars as pl

from calibrant.confidence import ranking_methods
from calibrant.records import Study

_QUESTIONS_SHOWN = 2_000
_ANSWERS_SHOWN = 6
_LETTERS_SHOWN = 300
_SCORES_SHOWN = 16
_FACET_VALUES = 60
# Columns of questions that are no property to filter by.
_NO_FACETS = ("question_id", "text", "references", "choices", "context")


def study_questions(study: Study) -> tuple[list[dict[str, Any]], str]:
    """Return the questions of a study with their answers, and a sentence on what is shown.

    The most confidently wrong come first. Pages must stay small: at most 2,000 questions with the
    six most frequent meanings per model and 16 confidences, and texts cut at 300 letters; the
    sentence says so where that applies.
    """
    if not (study.has("questions") and study.has("draws") and study.has("semantics")):
        return [], ""
    questions = study.read("questions")
    scores = _probabilities(study)
    shown = _ranked(questions, scores).head(_QUESTIONS_SHOWN)
    ids = shown["question_id"].implode()
    answers, told = _answers(study, ids), _scores(scores, ids)
    facets = _facets(questions)
    rows = [
        {
            "id": row["question_id"],
            "text": _cut(row["text"]),
            "answers": answers.get(row["question_id"], []),
            "scores": told.get(row["question_id"], []),
            "facets": {name: row[name] for name in facets if row[name] is not None},
        }
        for row in shown.iter_rows(named=True)
    ]
    note = f"All {questions.height:,} questions."
    if questions.height > _QUESTIONS_SHOWN:
        note = f"{_QUESTIONS_SHOWN:,} of {questions.height:,} questions, most confidently wrong."
    note += f" Up to {_ANSWERS_SHOWN} meanings per model; long texts are cut."
    return rows, note


def _probabilities(study: Study) -> pl.DataFrame:
    """Return confidences that are probabilities: only they say how sure an answer was."""
    empty = {"question_id": pl.String, "model": pl.String, "method": pl.String}
    if not study.has("scores"):
        return pl.DataFrame(schema={**empty, "confidence": pl.Float64, "correct": pl.Float64})
    table = study.read("scores").filter(
        pl.col("confidence").is_between(0, 1) & pl.col("correct").is_not_null()
    )
    ranking = sorted(ranking_methods())
    return table.filter(~pl.col("method").is_in(ranking)).select(
        *empty, "confidence", pl.col("correct").cast(pl.Float64)
    )


def _ranked(questions: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    wrong = scores.filter(pl.col("correct") == 0)
    worst = wrong.group_by("question_id").agg(pl.col("confidence").max().alias("_worst"))
    joined = questions.join(worst, on="question_id", how="left", maintain_order="left")
    ranked = joined.sort("_worst", descending=True, nulls_last=True, maintain_order=True)
    return ranked.drop("_worst")


def _facets(questions: pl.DataFrame) -> list[str]:
    """Return columns with a few values each: groups to filter by."""
    kinds = (pl.String, pl.Boolean, pl.Categorical)
    return [
        name
        for name, kind in questions.schema.items()
        if name not in _NO_FACETS
        and (kind in kinds or kind.is_integer())
        and 1 < questions[name].n_unique() <= _FACET_VALUES
    ]


def _scores(scores: pl.DataFrame, ids: pl.Series) -> dict[str, list[dict[str, Any]]]:
    """Return the confidences of each question, the most confidently wrong first."""
    table = (
        scores.filter(pl.col("question_id").is_in(ids))
        .with_columns(pl.col("confidence").round(3))
        .sort("correct", "confidence", descending=[False, True], maintain_order=True)
        .group_by("question_id", maintain_order=True)
        .head(_SCORES_SHOWN)
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(row.pop("question_id"), []).append(row)
    return found


def _answers(study: Study, ids: pl.Series) -> dict[str, list[dict[str, Any]]]:
    key = ["question_id", "model", "purpose", "draw"]
    table = (
        study.read("semantics")
        .join(study.read("draws").select(*key, "answer"), on=key, how="left")
        .filter(
            (pl.col("purpose") == "answer")
            & pl.col("answer").is_not_null()
            & pl.col("question_id").is_in(ids)
        )
        .group_by("question_id", "model", "class_id", maintain_order=True)
        .agg(
            pl.len().alias("draws"),
            pl.col("answer").mode().sort().first(),
            pl.col("correct").first(),
        )
        .sort("draws", descending=True, maintain_order=True)
        .group_by("question_id", "model", maintain_order=True)
        .head(_ANSWERS_SHOWN)
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(row["question_id"], []).append(
            {
                "model": row["model"],
                "answer": _cut(row["answer"]),
                "draws": row["draws"],
                "correct": row["correct"],
            }
        )
    return found


def _cut(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= _LETTERS_SHOWN else text[:_LETTERS_SHOWN] + " ..."
