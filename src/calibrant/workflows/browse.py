"""Rows for the report's browser of questions: what was asked, answered, graded and claimed."""

from __future__ import annotations

from typing import Any

import polars as pl

from calibrant.records import Study

__all__ = ["study_questions"]

_QUESTIONS_SHOWN = 2_000
_ANSWERS_SHOWN = 6
_LETTERS_SHOWN = 300


def study_questions(study: Study) -> tuple[list[dict[str, Any]], str]:
    """Return the questions of a study with their answers, and a sentence on what is shown.

    Pages must stay small: at most 2,000 questions with the six most frequent meanings per
    model, and texts cut at 300 letters; the sentence says so where that applies.
    """
    if not (study.has("questions") and study.has("draws") and study.has("semantics")):
        return [], ""
    questions = study.read("questions")
    shown = questions.head(_QUESTIONS_SHOWN)
    ids = shown["question_id"].implode()
    answers = _answers(study, ids)
    scores = _scores(study, ids)
    rows = [
        _row(row, answers.get(row["question_id"], []), scores.get(row["question_id"], ""))
        for row in shown.iter_rows(named=True)
    ]
    note = f"All {questions.height:,} questions."
    if questions.height > _QUESTIONS_SHOWN:
        note = f"The first {_QUESTIONS_SHOWN:,} of {questions.height:,} questions."
    note += f" Up to {_ANSWERS_SHOWN} meanings per model; long texts are cut."
    return rows, note


def _row(question: dict[str, Any], answers: list[dict[str, Any]], scores: str) -> dict[str, Any]:
    text = _cut(question["text"])
    words = " ".join([question["question_id"], text, *(a["answer"] for a in answers), scores])
    return {
        "id": question["question_id"],
        "text": text,
        "answers": answers,
        "scores": scores,
        "search": words.lower(),
    }


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


def _scores(study: Study, ids: pl.Series) -> dict[str, str]:
    if not study.has("scores"):
        return {}
    table = study.read("scores").filter(
        pl.col("question_id").is_in(ids) & pl.col("confidence").is_not_null()
    )
    lines = table.select(
        "question_id",
        pl.format(
            "{} {}: {}", pl.col("model"), pl.col("method"), pl.col("confidence").round(2)
        ).alias("line"),
    )
    grouped = lines.group_by("question_id", maintain_order=True).agg(pl.col("line").str.join("; "))
    return dict(grouped.iter_rows())


def _cut(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= _LETTERS_SHOWN else text[:_LETTERS_SHOWN] + " ..."
