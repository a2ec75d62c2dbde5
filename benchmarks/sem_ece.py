"""Sem-ECE at size, against a plain loop."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.harness import Page, median_seconds, seconds
from calibrant.metrics import sem_ece

QUESTIONS, DRAWS, CLASSES, SPLITS, RESAMPLES = 20_000, 50, 8, 200, 1_000
SLICE = 200


def drawn(questions: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.full(CLASSES, 0.5), questions)
    classes = (rng.random((questions, DRAWS, 1)) > np.cumsum(pi, axis=1)[:, None]).sum(axis=2)
    classes = np.minimum(classes, CLASSES - 1)
    return classes, classes == rng.integers(0, CLASSES, questions)[:, None]


def naive(classes: np.ndarray, correct: np.ndarray) -> float:
    """Shuffle, count and look up, question by question and split by split."""
    rng = np.random.default_rng(0)
    total = []
    for row, grades in zip(classes, correct, strict=True):
        held = []
        for _ in range(SPLITS):
            order = rng.permutation(DRAWS)
            first, second = row[order[: DRAWS // 2]], row[order[DRAWS // 2 :]]
            values, counts = np.unique(first, return_counts=True)
            held.append((second == values[counts.argmax()]).mean())
        total.append(np.mean(held) - grades.mean())
    return float(np.mean(total))


def semantic(page: Page) -> None:
    classes, correct = drawn(QUESTIONS)
    question = np.repeat(np.arange(QUESTIONS), DRAWS)
    flat = (question, classes.ravel(), correct.ravel().astype(float))
    rows = []
    began = time.perf_counter()
    naive(classes[:SLICE], correct[:SLICE])
    loop = (time.perf_counter() - began) * QUESTIONS / SLICE
    for name, splits in (("200 splits", SPLITS), ("exact law", "exact")):
        took = median_seconds(
            lambda splits=splits: sem_ece(*flat, splits=splits, resamples=RESAMPLES),
            repeats=3,
            warm=False,
        )
        rows.append([name, seconds(took), seconds(loop), loop / took])
    page.text(
        f"{QUESTIONS:,} questions x {DRAWS} draws, {RESAMPLES:,} bootstraps over questions. The "
        f"loop does the splits alone, without any bootstrap; it is timed on {SLICE} questions and "
        "scaled."
    )
    page.table("Sem1-ECE and Sem2-ECE with intervals", ["mode", "calibrant", "loop", "ratio"], rows)


def main() -> None:
    page = Page("sem_ece", "Sem-ECE at size", packages=["numpy", "scipy"])
    semantic(page)
    page.write()
