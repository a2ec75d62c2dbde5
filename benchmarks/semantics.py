"""Semantics: a million draws, single steps, gradings per second, and calls of a judge."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import polars as pl
from simulations.semantics import compare_judging, steps_of
from studies.semantics import load_rows

from benchmarks.harness import DATA, Page, median_seconds, seconds
from calibrant.answers.semantics import Grader, Normaliser, annotate, extract_answer
from calibrant.answers.semantics.hybrid import run_steps
from calibrant.core.arrays import named_stream

QUESTIONS, DRAWS = 20_000, 50
_FORMS = (
    "{}",
    "{}.",
    "The answer is {}.",
    "Answer: {}",
    "<answer>{}</answer>",
    "{} | 0.9",
    "It is {}.",
    "**{}**",
)


def million_draws(
    questions: int = QUESTIONS, draws: int = DRAWS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draws with 5 meanings (Zipf) in 8 surface forms; names, numbers and years."""
    rng = named_stream(0, "million draws")
    first = ["Anna", "John", "Maria", "Peter", "Robert", "Susan", "Tore", "Wei", "Omar", "Ines"]
    syllables = ["ka", "ber", "lin", "tor", "mas", "vel", "du", "ro", "san", "ghi", "pe", "nov"]
    frequencies = 1 / np.arange(1, 6)
    frequencies /= frequencies.sum()
    texts, ids, asked = [], [], []
    for number in range(questions):
        kind = number % 3
        if kind == 0:
            values = [str(v) for v in rng.integers(1, 100_000, 5)]
            question = "Name one prime number."
        elif kind == 1:
            values = [str(v) for v in rng.integers(1500, 2024, 5)]
            question = "In what year did it happen?"
        else:
            parts = rng.integers(0, len(syllables), (5, 3))
            given = rng.integers(0, len(first), 5)
            values = [
                f"{first[g]} {''.join(syllables[p] for p in row).title()}"
                for g, row in zip(given, parts, strict=True)
            ]
            question = "Who did it?"
        meaning = rng.choice(5, draws, p=frequencies)
        form = rng.integers(0, len(_FORMS), draws)
        texts.extend(_FORMS[f].format(values[m]) for m, f in zip(meaning, form, strict=True))
        ids.append(f"q{number}")
        asked.append((question, [[values[0]]]))
    table = pl.DataFrame(
        {
            "question_id": np.repeat(ids, draws),
            "model": "m",
            "purpose": "answer",
            "draw": np.tile(np.arange(draws), questions),
            "text": texts,
        }
    )
    about = pl.DataFrame(
        {
            "question_id": ids,
            "text": [text for text, _ in asked],
            "references": [references for _, references in asked],
        }
    )
    return table, about


def throughput(page: Page) -> None:
    draws, questions = million_draws()
    started = time.perf_counter()
    result = annotate(draws, questions)
    taken = time.perf_counter() - started
    right = result.semantics["correct"].mean()
    page.table(
        "A million draws: read, normalised, clustered by rules, graded",
        ["draws", "questions", "distinct texts", "time, one process", "share graded right"],
        [
            [
                f"{draws.height:,}",
                f"{questions.height:,}",
                f"{draws['text'].n_unique():,}",
                seconds(taken),
                float(right or 0.0),
            ]
        ],
    )
    page.text("Aim: under 60 s on 2 cores.")


def small_work(page: Page) -> None:
    answers = ["Robert C. Gallo", "Robert Gallo.", "1,000 km", "July 20, 1969", "The Beatles"] * 10
    rows = []
    by_rules = partial(steps_of, answers, scope=None)
    for name, work, count in (
        ("normalise one answer", lambda: [Normaliser()(a) for a in answers[:5]], 5),
        ("extract one answer", lambda: [extract_answer(a) for a in answers], 50),
        ("cluster 50 draws by rules", lambda: run_steps([by_rules()], None), 1),
    ):
        rows.append([name, seconds(median_seconds(work) / count)])
    page.table("Single steps, nothing cached", ["work", "time"], rows)


def gradings(page: Page) -> None:
    """Answers graded in a second of CPU, each text seen for the first time; best of three."""
    if not DATA.is_dir():
        return
    asked = pl.read_parquet(DATA / "mace" / "deepseek_v3.parquet").sample(700, seed=1)
    long = [row for row in load_rows(DATA) if row.part == "held out"][::12]
    kinds = {
        "sentences, Natural Questions": [(r.answer, r.references, r.question) for r in long],
        "names, MACE": list(asked.select("greedy_answer", "references", "question").iter_rows()),
    }
    rows = []
    for name, answers in kinds.items():
        taken = []
        for _ in range(3):
            grader, begin = Grader(), time.process_time()
            for answer, references, question in answers:
                grader.grade(answer, references, question=question)
            taken.append(time.process_time() - begin)
        rows.append([name, len(answers), f"{len(answers) / min(taken):,.0f}"])
    page.table("Gradings per second of CPU", ["answers", "number", "per second"], rows)
    page.text("Aim: 1,000 or more.")


def main() -> None:
    page = Page("semantics", "Semantics", packages=["numpy", "polars"])
    throughput(page)
    small_work(page)
    gradings(page)
    columns = ["judge's error rate", "method", "calls", "of greedy", "pairwise F1"]
    page.table(
        "Judge calls: 50 draws, 5 meanings (Zipf), 4 surface forms each",
        columns,
        compare_judging(questions=200),
    )
    page.text(
        "Greedy: every draw against every class until one fits (Kuhn, Gal and Farquhar 2023)."
        " A reply that compares with n classes errs with probability 1 - (1 - e)^n; the grouping"
        " call's error is one form put into a class of its own, which flatters it."
        " All pairs would need 1,225 calls."
    )
    page.table(
        "The same, where every reply errs with probability e, however many classes it sees",
        columns,
        compare_judging(questions=200, errors=(0.05, 0.2), compound=False),
    )
    page.write()
