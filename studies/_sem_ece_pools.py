"""Pools of real draws, clustered and graded, for the study of Sem-ECE."""

from __future__ import annotations

import gzip
import json
from typing import Any

import polars as pl

from calibrant.answers.semantics import annotate
from calibrant.metrics.semantic import DrawPool, pool_draws
from studies._page import DATA


def annotated_pool(questions: pl.DataFrame, draws: pl.DataFrame) -> DrawPool:
    """Cluster and grade draws with the rules of the semantics layer."""
    _, semantics = annotate(draws, questions)
    return pool_draws(
        semantics["question_id"].to_numpy(),
        semantics["class_id"].cast(pl.Float64).to_numpy(),
        semantics["correct"].cast(pl.Float64).to_numpy(),
        conflicts="mean",
    )


def exploded(table: pl.DataFrame, model: str) -> pl.DataFrame:
    """One row per draw from a list column ``samples``."""
    return (
        table.select("question_id", pl.col("samples").alias("text"))
        .explode("text")
        .with_columns(
            model=pl.lit(model),
            purpose=pl.lit("answer"),
            draw=pl.int_range(pl.len()).over("question_id"),
            text=pl.col("text").fill_null(""),
        )
    )


def game24_rows(prompt: str) -> list[dict[str, Any]]:
    path = DATA / "draws" / "tot_game24_gpt4_100q_100samples.jsonl.gz"
    with gzip.open(path, "rt") as file:
        return [row for row in map(json.loads, file) if row["prompt"] == prompt]


def game24(prompt: str) -> DrawPool:
    rows = game24_rows(prompt)
    question = [row["puzzle_idx"] for row in rows for _ in row["samples"]]
    meaning = [expression for row in rows for expression in row["final_expr"]]
    correct = [grade for row in rows for grade in row["correct"]]
    return pool_draws(question, meaning, correct)


def zlin7() -> DrawPool:
    path = DATA / "draws" / "zlin7_triviaqa_500q_20samples.jsonl.gz"
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    questions = pl.DataFrame(
        {
            "question_id": [row["question_id"] for row in rows],
            "text": [row["question"] for row in rows],
            "references": [[[row["answer"]]] for row in rows],
        }
    )
    table = questions.select("question_id").with_columns(
        samples=pl.Series([row["samples"] for row in rows])
    )
    return annotated_pool(questions, exploded(table, "llama-13b"))


def deepseek(k: int | None = None) -> DrawPool:
    table = pl.read_parquet(DATA / "mace" / "deepseek_v3.parquet").rename({"id": "question_id"})
    if k is not None:
        table = table.filter(pl.col("k") == k)
    questions = table.select(
        "question_id",
        pl.col("question").alias("text"),
        pl.col("references").list.eval(pl.concat_list(pl.element())),
    )
    return annotated_pool(questions, exploded(table, "deepseek-v3"))


def local(model: str) -> DrawPool:
    folder = DATA / "local_models"
    questions = pl.read_parquet(folder / "questions.parquet")
    draws = pl.read_parquet(folder / "draws.parquet").filter(pl.col("model") == model)
    draws = draws.with_columns(purpose=pl.lit("answer"), text=pl.col("text").fill_null(""))
    return annotated_pool(
        questions, draws.select("question_id", "model", "purpose", "draw", "text")
    )
