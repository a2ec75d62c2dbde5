"""Confidence methods over 100,000 questions of 20 draws each."""

from __future__ import annotations

import time

import numpy as np
import polars as pl

from benchmarks.harness import Page, median_seconds
from calibrant.answers.confidence import (
    METHODS,
    DrawBlock,
    DrawTable,
    Options,
    compact_table,
    score_table,
)

QUESTIONS, DRAWS, MEANINGS = 100_000, 20, 8


def study_tables(questions: int, draws: int, *, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return simulated draws (answers, greedy, verb, votes) and their semantics."""
    rng = np.random.default_rng(seed)
    answers = _purpose("answer", questions, draws, rng, tokens=3)
    greedy = _purpose("greedy", questions, 1, rng, tokens=3, temperature=0.0)
    verb = _purpose("verb", questions, draws, rng)
    verb = verb.with_columns(
        pl.Series("stated_confidence", rng.integers(1, 21, questions * draws) / 20)
    )
    votes = _purpose("p_true", questions, draws, rng)
    votes = votes.with_columns(
        pl.Series("answer", np.where(rng.random(questions * draws) < 0.7, "True", "False"))
    )
    frame = pl.concat([answers, greedy, verb, votes], how="diagonal")
    graded = ["class_id", "correct"]
    key = ["question_id", "model", "purpose", "draw"]
    return frame.drop(graded), frame.select(*key, *graded)


def _purpose(
    name: str,
    questions: int,
    draws: int,
    rng: np.random.Generator,
    *,
    tokens: int = 0,
    temperature: float = 1.0,
) -> pl.DataFrame:
    size = questions * draws
    weights = 1.0 / np.arange(1, MEANINGS + 1)
    meaning = rng.choice(MEANINGS, size=size, p=weights / weights.sum())
    question = np.repeat(np.arange(questions), draws)
    columns: dict[str, object] = {
        "question_id": pl.Series(question).cast(pl.String),
        "model": pl.repeat("m", size, eager=True),
        "purpose": pl.repeat(name, size, eager=True),
        "draw": np.tile(np.arange(draws), questions),
        "text": pl.Series(meaning).cast(pl.String),
        "temperature": np.full(size, temperature),
        "class_id": meaning,
        "correct": meaning == (question % MEANINGS),
    }
    if tokens:
        logs = -rng.exponential(0.5, size=(size, tokens))
        columns["token_logprobs"] = pl.Series(logs).arr.to_list()
    return pl.DataFrame(columns)


def main() -> None:
    page = Page("confidence", "Confidence methods", packages=["numpy", "polars"])
    started = time.perf_counter()
    draws, semantics = study_tables(QUESTIONS, DRAWS)
    print(
        f"   simulated {draws.height:,} draws in {time.perf_counter() - started:.1f} s", flush=True
    )
    started = time.perf_counter()
    table = compact_table(draws, semantics)
    built = time.perf_counter() - started
    started = time.perf_counter()
    result = score_table(table)
    scored = time.perf_counter() - started
    done = result.scores["method"].n_unique()
    page.text(
        f"{QUESTIONS:,} questions x {DRAWS} sampled answers with token log-probs, {DRAWS} texts "
        f"with stated confidence and {DRAWS} votes each: {draws.height:,} draws. Tables to "
        f"columns: {built:.1f} s; {done} methods, {result.scores.height:,} score rows: "
        f"{scored:.1f} s."
    )
    rows = []
    for name in result.scores["method"].unique(maintain_order=True):
        fresh = median_seconds(
            lambda name=name: METHODS[name].scored(_fresh(table), Options()),
            repeats=5,
            warm=False,
        )
        rows.append([name, f"{fresh * 1e3:,.0f}", f"{QUESTIONS / fresh:,.0f}"])
    page.table(
        "Each method alone, nothing shared",
        ["method", "ms, all questions", "questions per second"],
        rows,
    )
    page.write()


def _fresh(table: DrawTable) -> DrawTable:
    """Return the table without what earlier methods have worked out."""
    blocks = {
        name: DrawBlock(**{field: getattr(block, field) for field in block.__dataclass_fields__})
        for name, block in table.blocks.items()
    }
    return DrawTable(table.question_id, table.model, blocks, table.similarity)
