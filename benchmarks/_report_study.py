"""A large study without a model: questions, draws, meanings and scores from one seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from calibrant.data import Study

ROWS = 300
METHODS = ("consistency", "verb", "p_true_prob")
_ANSWERS = ("the first of the answers", "another one", "a third", "the fourth")


def write_large_study(folder: Path, *, questions: int, draws: int) -> Study:
    """Write the tables of a study with one model and `draws` answers per question."""
    rng = np.random.default_rng(0)
    study = Study(folder)
    (folder / "tables").mkdir(parents=True)
    study.config_path.write_text(
        'name = "a large study"\nquestions = "q.jsonl"\n'
        '[[models]]\nname = "small"\nclient = "embedded"\n',
        encoding="utf-8",
    )
    ids = np.char.add("q", np.arange(questions).astype(str))
    share = rng.dirichlet([3, 1, 0.5, 0.5], questions)
    picks = rng.random((questions, draws, 1)) > share.cumsum(1)[:, None, :]
    classes = picks.sum(2).clip(0, 3).ravel()
    asked = pl.DataFrame({"question_id": ids}).with_columns(
        text=pl.format("Question {}: which of these answers is the right one?", "question_id"),
        references=pl.lit([["the first of the answers"]], dtype=pl.List(pl.List(pl.String))),
    )
    answers = pl.DataFrame(
        {
            "question_id": np.repeat(ids, draws),
            "model": "small",
            "purpose": "answer",
            "draw": np.tile(np.arange(draws), questions),
            "text": np.array(_ANSWERS)[classes],
        }
    ).with_columns(answer="text")
    meanings = answers.select("question_id", "model", "purpose", "draw").with_columns(
        class_id=pl.Series(classes), correct=pl.Series(classes == 0), grader=pl.lit("rules")
    )
    scores = pl.DataFrame(
        {
            "question_id": ids,
            "model": "small",
            "answer": np.array(_ANSWERS)[share.argmax(1)],
            "confidence": share.max(1).round(4),
            "correct": (share.argmax(1) == 0).astype(float),
        }
    )
    study.write("questions", asked)
    study.write("draws", answers)
    study.write("semantics", meanings)
    study.write("scores", pl.concat([scores.with_columns(method=pl.lit(m)) for m in METHODS]))
    return study


def many_models(models: int, methods: tuple[str, ...]) -> pl.DataFrame:
    """Return scores of many models of rising accuracy, each with several confidences."""
    rng = np.random.default_rng(0)
    hard = rng.random(ROWS)
    frames = []
    for place in range(models):
        right = (rng.random(ROWS) > hard * (1.4 - place / models)).astype(float)
        for number, method in enumerate(methods):
            said = np.clip(1 - hard * (0.4 + 0.3 * number) + rng.normal(0, 0.1, ROWS), 0, 1)
            frames.append(
                pl.DataFrame(
                    {
                        "question_id": [f"q{i}" for i in range(ROWS)],
                        "model": f"model-{place:03}",
                        "method": method,
                        "confidence": said.round(4),
                        "correct": right,
                    }
                )
            )
    return pl.concat(frames)
