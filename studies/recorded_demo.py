"""Makes the recorded study that the package ships: real draws of two small open models.

Writes `src/calibrant/verbs/study/recorded/`; SOURCES.md there says where the questions come from.
"""

from __future__ import annotations

from dataclasses import replace

import orjson
import polars as pl
from benchmarks.harness import ROOT

from calibrant.answers.semantics.annotate import Annotated, annotate
from calibrant.verbs.demo import recorded_draws, recorded_questions
from studies._confidence_tables import local_draws

DATA = ROOT.parent / "shared" / "data"
OUT = ROOT / "src" / "calibrant" / "verbs" / "study" / "recorded"
# Questions by source, the first of an order that a hash of the id gives.
WANTED = {
    "math_small": 110,
    "webquestions": 90,
    "mace_language": 35,
    "mace_river": 35,
    "mace_award": 30,
}
DOMAINS = {
    "math_small": "arithmetic",
    "webquestions": "web questions",
    "mace_language": "languages",
    "mace_river": "rivers",
    "mace_award": "awards",
}
DRAWS = 20
# What reading adds to the draws.
READ = ("answer", "stated_confidence", "stated_answers", "stated_confidences")
MODELS = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")


def chosen(questions: pl.DataFrame) -> pl.DataFrame:
    parts = [
        questions.filter(pl.col("source") == source)
        .with_columns(order=pl.col("question_id").hash(7))
        .sort("order")
        .head(count)
        for source, count in WANTED.items()
    ]
    return (
        pl.concat(parts)
        .sort("question_id")
        .with_columns(domain=pl.col("source").replace_strict(DOMAINS))
        .drop("order", "source")
    )


def candidates(ids: pl.Series) -> pl.DataFrame:
    """Every model's P(True) on every model's greedy answer."""
    mass = pl.col("p_true_mass"), pl.col("p_false_mass")
    return (
        pl.read_parquet(DATA / "local_models" / "p_true.parquet")
        .filter(
            pl.col("question_id").is_in(ids.implode()),
            pl.col("judge").is_in(MODELS),
            pl.col("author").is_in(MODELS),
        )
        .select(
            "question_id", "judge", "author", pl.lit("p_true_prob").alias("method"), "answer",
            (mass[0] / (mass[0] + mass[1])).alias("confidence"),
        )
    )  # fmt: skip


def main() -> None:
    draws, questions = local_draws(DATA)
    questions = chosen(questions)
    ids = questions["question_id"]
    draws = draws.filter(
        pl.col("question_id").is_in(ids.implode()),
        pl.col("model").is_in(MODELS),
        pl.col("draw") < DRAWS,
    ).with_columns(
        pl.col("token_logprobs").cast(pl.List(pl.Float32)),
        pl.col("temperature").cast(pl.Float32),
    )
    OUT.mkdir(parents=True, exist_ok=True)
    write({"questions": questions, "draws": draws, "candidates": candidates(ids)})
    grade()


def grade() -> None:
    """Put the recorded answers into classes and grade them, by the rules as they are now."""
    found = graded()
    write({"answers": found.draws, "semantics": found.semantics})
    text = orjson.dumps(found.document, option=orjson.OPT_INDENT_2).decode() + "\n"
    (OUT / "semantics.json").write_text(text, encoding="utf-8")


def graded() -> Annotated:
    """Return what the rules read in the recorded draws: answers, classes, grades."""
    found = annotate(recorded_draws(), recorded_questions())
    return replace(found, draws=found.draws.select(READ))


def write(tables: dict[str, pl.DataFrame]) -> None:
    for name, table in tables.items():
        path = OUT / f"{name}.parquet"
        table.write_parquet(path, compression="zstd", compression_level=19)
        print(f"   {name}: {table.height:,} rows, {path.stat().st_size / 1e6:.2f} MB", flush=True)
