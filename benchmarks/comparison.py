"""`calibrant compare` at size, as a user runs it: from parquet files to the JSON document."""

from __future__ import annotations

import math
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.app import many_models
from benchmarks.harness import Page, run_command, seconds

MODELS, RESAMPLES = 80, 1_000
SIZES = (3_000, 6_000, 12_000)


def write_tables(folder: Path, questions: int) -> None:
    """Write scores of 80 models and every model's confidence in every model's answer."""
    rng = np.random.default_rng(0)
    names = [f"model-{number:02d}" for number in range(MODELS)]
    ids = [f"q{number:05d}" for number in range(questions)]
    correct = rng.random((MODELS, questions)) < np.linspace(0.3, 0.9, MODELS)[:, None]
    noise = 0.1 * rng.standard_normal(correct.shape)
    pl.DataFrame(
        {
            "question_id": np.tile(ids, MODELS),
            "model": np.repeat(names, questions),
            "confidence": np.clip(0.6 + 0.3 * correct + noise, 0, 1).ravel(),
            "correct": correct.ravel(),
        }
    ).write_parquet(folder / "scores.parquet")
    author = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(MODELS, dtype=np.int32), questions), names
    )
    question = pa.DictionaryArray.from_arrays(
        np.tile(np.arange(questions, dtype=np.int32), MODELS), ids
    )
    writer = None
    for judge in range(MODELS):
        shift = 0.1 * rng.standard_normal(correct.shape)
        table = pa.table(
            {
                "question_id": question,
                "judge": pa.DictionaryArray.from_arrays(
                    np.full(correct.size, judge, dtype=np.int32), names
                ),
                "author": author,
                "confidence": np.clip(0.5 + 0.2 * correct + shift, 0, 1).ravel(),
            }
        )
        writer = writer or pq.ParquetWriter(folder / "candidates.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def real_answers(page: Page) -> None:
    """Time 68 models on the questions of MMLU-Pro, 16 of them real and the others mixed of two."""
    rows = []
    for words in ("logit_perplexity", "verbal_numerical"):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "scores.parquet"
            many_models(path, 68, f"{words}_confidence")
            used = run_command(["calibrant", "compare", str(path), "--json", f"{name}/out.json"])
        rows.append([words, seconds(used.wall), seconds(used.cpu), f"{used.peak / 1e9:.2f} GB"])
    page.table(
        f"68 models, 12,032 questions, 2,278 pairs, {RESAMPLES:,} resamples",
        ["confidence", "wall", "CPU of all cores", "peak memory"],
        rows,
    )


def main() -> None:
    page = Page("comparison", "Comparing 80 models", packages=["numpy", "polars"])
    rows, times = [], []
    for questions in SIZES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tables(folder, questions)
            command = ["calibrant", "compare", str(folder / "scores.parquet"), "--candidates"]
            command += [str(folder / "candidates.parquet"), "--json", str(folder / "out.json")]
            used = run_command(command)
            size = (folder / "out.json").stat().st_size
        times.append(used.cpu)
        rows.append(
            [
                f"{questions:,}",
                f"{MODELS * MODELS * questions:,}",
                seconds(used.wall),
                seconds(used.cpu),
                f"{used.peak / 1e9:.2f} GB",
                f"{size / 1e6:.1f} MB",
            ]
        )
    page.text(
        f"All {MODELS * (MODELS - 1) // 2:,} pairs of {MODELS} models, four views, {RESAMPLES:,}"
        " paired bootstraps: the command reads both tables, compares, prints and writes the JSON"
        " document. One run each, start-up included."
    )
    page.table(
        "End to end",
        ["questions", "candidate scores", "wall", "CPU of all cores", "peak memory", "document"],
        rows,
    )
    steps = [math.log2(later / earlier) for earlier, later in pairwise(times)]
    page.text(
        "Growth of CPU time per doubling of the questions, as a power: "
        + " and ".join(f"{step:.2f}" for step in steps)
        + " (1 is a straight line)."
    )
    real_answers(page)
    page.write()
