"""Inputs of the gallery that the shared files hold in another form."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate
from calibrant.core.document import dump_document
from studies._confidence_tables import deepseek_tables, read_deepseek
from studies._sem_ece_pools import exploded

MODEL = "gpt-4o-2024-08-06"
CONFIDENCE = "logit_perplexity_confidence"
METHODS = ("consistency", "verb", "verb_topk", "p_true_consistency", "self_ask")
BATCHES, BATCH = 6, 150
RATED = 150


def mcq(data: Path, folder: Path) -> None:
    """Write one benchmark and one prompt of the multiple-choice table."""
    table = pl.read_parquet(data / "scores" / "mcq_5_benchmarks_7_models.parquet")
    chosen = table.filter((pl.col("dataset") == "mmlu") & (pl.col("prompt") == "first"))
    chosen.write_parquet(folder / "mcq_mmlu.parquet")


def deepseek(data: Path, folder: Path) -> None:
    """Write the recorded answers of DeepSeek-V3 as scores and as draws with a meaning each."""
    recorded = read_deepseek(data)
    draws, semantics = deepseek_tables(recorded)
    questions = recorded.select(pl.col("id").alias("question_id"), "k", "domain")
    scored = score_table(draws, semantics, questions, methods=METHODS).scores
    scored.write_parquet(folder / "deepseek_scores.parquet")
    draws.join(semantics, on=["question_id", "model", "purpose", "draw"]).write_parquet(
        folder / "deepseek_draws.parquet"
    )
    table = recorded.rename({"id": "question_id"})
    known = table.select(
        "question_id",
        pl.col("question").alias("text"),
        pl.col("references").list.eval(pl.concat_list(pl.element())),
    )
    found = annotate(exploded(table, "deepseek-v3"), known)
    found.draws.select("question_id", "model", "purpose", "draw", "answer").join(
        found.semantics, on=["question_id", "model", "purpose", "draw"]
    ).write_parquet(folder / "deepseek_meanings.parquet")
    (folder / "semantics.json").write_bytes(dump_document(found.document))


def pool(data: Path, folder: Path) -> None:
    """Write a table without labels, and another one with the labels that people would give."""
    table = pl.read_parquet(data / "scores" / "mmlu_pro_16_models.parquet")
    chosen = table.filter((pl.col("model") == MODEL) & pl.col(CONFIDENCE).is_between(0, 1))
    named = chosen.select("question_id", "model", pl.col(CONFIDENCE).alias("confidence"), "correct")
    named.write_parquet(folder / "answers.parquet")
    named.drop("correct").write_parquet(folder / "pool.parquet")


def fill_batch(folder: Path) -> None:
    """Fill in a batch with the known labels, as a person would."""
    batch = pl.read_csv(folder / "batch.csv")
    known = pl.read_parquet(folder / "answers.parquet").select("question_id", label="correct")
    filled = batch.join(known, on="question_id", how="left", maintain_order="left")
    filled.with_columns(correct="label").drop("label").write_csv(folder / "batch.csv")


def summeval(data: Path, folder: Path) -> None:
    """Write a judge's scores of summaries, and people's on some rows drawn at random."""
    table = pl.read_parquet(data / "judges" / "summeval_judges.parquet")
    chosen = table.filter(pl.col("gpt-4-0314").is_not_null(), dim="relevance")
    shuffled = chosen.sample(fraction=1.0, shuffle=True, seed=1)
    people = (
        pl.when(pl.int_range(pl.len()) < RATED).then(name).alias(name)
        for name in ("human1", "human2")
    )
    named = shuffled.select("item", "model", pl.col("gpt-4-0314").alias("gpt4"), *people)
    named.write_parquet(folder / "summeval.parquet")


def games(data: Path, folder: Path) -> None:
    """Write basketball forecasts in the order of time."""
    table = pl.read_parquet(data / "tabular" / "fivethirtyeight_games.parquet")
    nba = table.filter(pl.col("sport") == "nba").sort("date")
    nba.with_columns(pl.col("date").str.to_date()).write_parquet(folder / "games.parquet")
