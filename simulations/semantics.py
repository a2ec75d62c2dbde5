"""Judge calls under a known error rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.answers.semantics import (
    Clusters,
    Docket,
    Group,
    SameQuery,
    SemanticsOptions,
    SimulatedJudge,
    pairwise_f1,
)
from calibrant.answers.semantics.hybrid import Steps, hybrid_steps, run_steps
from calibrant.core.arrays import named_stream


def steps_of(
    answers: Sequence[str],
    *,
    question: str = "q",
    judge_mode: str = "confirmed",
    scope: str | None = "all",
) -> Steps:
    """Cluster answers, each given once, in one of the ways in which a judge is asked."""
    group = Group(list(answers), [1] * len(answers), question)
    return hybrid_steps(group, SemanticsOptions(judge_mode=judge_mode), scope=scope)


METHODS: dict[str, Callable[[list[str]], Steps]] = {
    "greedy pairwise": lambda answers: greedy_pairwise(answers, question="q"),
    "hybrid, pairwise": lambda answers: steps_of(answers, judge_mode="pairwise"),
    "hybrid, which class": lambda answers: steps_of(answers, judge_mode="which"),
    "hybrid, confirmed (default)": steps_of,
    "hybrid, one grouping call": lambda answers: steps_of(answers, judge_mode="group"),
}


def greedy_pairwise(answers: Sequence[str], *, question: str | None = None) -> Steps:
    """Cluster as Kuhn, Gal and Farquhar (2023) do: every draw against every class until one fits.

    The baseline that the hybrid is measured against: no rules, no memory of equal strings.
    """
    firsts: list[str] = []
    ids: list[int] = []
    calls = 0
    for answer in answers:
        for class_id, first in enumerate(firsts):
            calls += 1
            reply = yield SameQuery(question or "", answer, first)
            if reply is True:
                ids.append(class_id)
                break
        else:
            ids.append(len(firsts))
            firsts.append(answer)
    return Clusters(ids, {"judge": calls}, [], calls)


def one_question(rng: np.random.Generator) -> tuple[list[str], list[int], dict[str, int]]:
    """50 draws of 5 meanings with Zipf frequencies; the 4 forms of a meaning share no word."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    forms = ["".join(rng.choice(letters, 8)) for _ in range(20)]
    frequencies = 1 / np.arange(1, 6)
    meaning = rng.choice(5, 50, p=frequencies / frequencies.sum())
    chosen = 4 * meaning + rng.integers(0, 4, 50)
    truth = {form: place // 4 for place, form in enumerate(forms)}
    return [forms[c] for c in chosen], [int(m) for m in meaning], truth


def compare_judging(
    *,
    questions: int = 500,
    errors: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2),
    compound: bool = True,
) -> list[list[Any]]:
    """Calls and F1 of each method, the judge erring at each rate."""
    rows: list[list[Any]] = []
    for error in errors:
        base = 0.0
        for name, steps in METHODS.items():
            calls, scores = [], []
            for number in range(questions):
                answers, meaning, truth = one_question(named_stream(number, "judging"))
                judge = SimulatedJudge(truth, error_rate=error, compound=compound, seed=number)
                found = run_steps([steps(answers)], Docket(judge))[0]
                calls.append(found.judge_calls)
                scores.append(pairwise_f1(found.ids, meaning))
            mean = float(np.mean(calls))
            base = base or mean
            spread = 1.96 * float(np.std(scores, ddof=1)) / np.sqrt(questions)
            rows.append(
                [
                    error,
                    name,
                    f"{mean:.1f}",
                    f"{mean / base:.3f}",
                    f"{np.mean(scores):.3f} ± {spread:.3f}",
                ]
            )
    return rows


def main() -> None:
    print("judge calls: error rate, method, calls, share of greedy, pairwise F1")
    for row in compare_judging():
        print("  ", *row)
