"""Questions with exactly k right answers: how long it takes to write, check and evaluate them."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.harness import Page, interleaved_seconds, seconds
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.check import check_questions
from calibrant.bench.questions.math_rule import math_questions

KS = (1, 2, 4, 6)


def math(limit: int) -> list[object]:
    return [question for k in KS for question in math_questions(k, 2_500, limit=limit)]


def scores(methods: int, questions: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    correct = (rng.random(questions) < 0.6).astype(float)
    base = {
        "question_id": np.arange(questions).astype(str),
        "model": np.full(questions, "m"),
        "correct": correct,
        "k": rng.choice(KS, questions),
        "domain": rng.choice(["award", "office", "river"], questions),
    }
    names = ["sca", *(f"method {index}" for index in range(methods - 1))]
    return pl.concat(
        pl.DataFrame(base).with_columns(
            method=pl.lit(name),
            confidence=pl.Series(np.clip(0.3 + 0.3 * correct + 0.2 * rng.random(questions), 0, 1)),
        )
        for name in names
    )


def main() -> None:
    page = Page("mace", "Questions with exactly k right answers")
    built = build_benchmark(["math", "language", "region"], per_k=500)
    table = scores(5, 6_000)
    works = {
        "10,000 Math questions, numbers up to 1e6": lambda: math(10**6),
        "10,000 Math questions, numbers up to 1e12": lambda: math(10**12),
        "Language and Region out of the box, 500 per k": lambda: build_benchmark(
            ["language", "region"], per_k=500
        ),
        f"check of {len(built.questions):,} questions": lambda: check_questions(built.questions),
        "evaluation of 5 methods on 6,000 questions, tests included": lambda: evaluate_multi_answer(
            table, ranking_methods={"sca"}
        ),
    }
    times = interleaved_seconds(works, repeats=5)
    page.table("CPU time, median of 5", ["work", "time"],
               [(name, seconds(value)) for name, value in times.items()])  # fmt: skip
    page.write()


if __name__ == "__main__":
    main()
