"""What bench evaluate and bench check say, outcome by outcome."""

import numpy as np
import polars as pl
import pytest

from calibrant.bench.evaluation_claims import evaluation_claims, within_margin
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.question_report import most_wrong, question_claims
from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.check import check_questions, spot_check
from calibrant.core.document import plain
from calibrant.findings.documents.fields import typed
from calibrant.report.answers import badge_of

MARGIN = 0.05


def scores(n, methods, *, rise=0.3, seed=0):
    """Rows of methods, each a function of (chance, k's place, random numbers) to a confidence."""
    rng = np.random.default_rng(seed)
    far = rng.integers(2, size=n)
    chance = rng.uniform(0.2, 0.6, n) + rise * far
    right = (rng.random(n) < chance).astype(float)
    shared = {"question_id": np.arange(n), "k": np.where(far, 6, 1), "domain": ["a"] * n}
    return pl.concat(
        pl.DataFrame({**shared, "model": "m", "method": name, "correct": right,
                      "confidence": np.clip(said(chance, far, rng.random(n)), 0, 1)})
        for name, said in methods.items()
    )  # fmt: skip


def claims_of(frame, reference):
    document = evaluate_multi_answer(frame, reference=reference, draws=200, items=400)
    found = evaluation_claims(typed(plain(document)), MARGIN)
    return {(claim.id.removeprefix("bench."), claim.subject["method"]): claim for claim in found}


def test_a_sharp_method_is_best_and_one_that_ignores_k_loses_against_accuracy():
    found = claims_of(
        scores(
            2_000,
            {
                "sharp": lambda chance, far, noise: chance,
                "flat": lambda chance, far, noise: 0.4 + 0.05 * noise,
                "twin": lambda chance, far, noise: chance + 0.001 * noise,
            },
        ),
        "sharp",
    )
    assert found["against_reference", "flat"].outcome == "shown"
    assert found["against_reference", "twin"].outcome == "equivalent"
    assert found["misled_by_k", "sharp"].outcome == "equivalent"
    flat = found["misled_by_k", "flat"]
    assert flat.outcome == "shown"
    assert flat.low < -0.3 < flat.high
    assert "confidence loses" in flat.text
    # The twin is as good: nobody is best.
    (best,) = (claim for (kind, _), claim in found.items() if kind == "best_method")
    assert best.outcome == "undecided"
    assert "twin" in best.text or "sharp" in best.text


def test_the_best_of_two_is_named_where_it_is_shown():
    found = claims_of(
        scores(
            1_500,
            {
                "sharp": lambda chance, far, noise: chance,
                "noisy": lambda chance, far, noise: 0.3 * chance + 0.7 * noise,
            },
        ),
        "noisy",
    )
    best = found["best_method", "sharp"]
    assert best.outcome == "shown"
    assert "Of 2 methods sharp ranks answers best" in best.text
    against = found["against_reference", "sharp"]
    assert against.value < 0
    assert "noisy ranks answers worse than sharp" in against.text


def test_few_questions_decide_nothing_and_say_what_would():
    frame = scores(
        40,
        {
            "one": lambda chance, far, noise: 0.5 * chance + 0.5 * noise,
            "two": lambda chance, far, noise: 0.4 * chance + 0.6 * noise,
        },
        rise=0.0,
    )
    found = claims_of(frame, "one")
    assert {claim.outcome for claim in found.values()} == {"undecided"}
    assert all("would decide" in claim.text for claim in found.values())


def test_a_comparison_that_turns_with_the_graded_answer_depends():
    rng = np.random.default_rng(3)
    n = 1_200
    first, second = (rng.random((2, n)) < 0.5).astype(float)
    shared = {"question_id": np.arange(n), "k": [1, 6] * (n // 2), "domain": ["a"] * n}
    noise = rng.normal(0, 0.05, n)
    frame = pl.concat(
        pl.DataFrame({**shared, "model": "m", "method": name, "correct": own,
                      "confidence": np.clip(0.3 + 0.4 * own + noise, 0, 1)})
        for name, own in (("one", first), ("two", second))
    )  # fmt: skip
    claim = claims_of(frame, "one")["against_reference", "two"]
    assert claim.outcome == "depends"
    assert "depends on whose answer is graded" in claim.text


def test_within_a_margin_by_hand():
    # Student's law with many degrees is normal: P(Z < -2) and P(Z < 1).
    assert within_margin(0.01, 0.02, 1e9, 0.05) == pytest.approx(0.02275, abs=1e-4)
    assert within_margin(-0.07, 0.02, 1e9, 0.05) == pytest.approx(0.84134, abs=1e-4)
    # No question told the two apart: 0.975 ** 200 is the chance to miss a share of 2.5 %.
    assert within_margin(0.0, 0.0, 200, 0.05) == pytest.approx(0.975**200)
    assert within_margin(0.2, 0.0, 200, 0.05) == 1.0


def test_questions_hold_or_the_first_that_does_not_is_named():
    questions = list(build_benchmark(["math"], (1, 2), 4, seed=0).questions)
    (claim,) = question_claims(typed(plain({**check_questions(questions), "spot_check": None})))
    assert claim.id == "bench.questions_hold"
    assert "All 8 questions hold" in claim.text
    broken = [*questions, questions[0]]
    (claim,) = question_claims(typed(plain({**check_questions(broken), "spot_check": None})))
    assert claim.id == "bench.questions_broken"
    assert claim.text.startswith("1 problem in 9 questions: 1 twice. First: ")
    assert questions[0].text in claim.text


def test_ticks_bound_the_share_that_is_wrong():
    ticks = {f"q{i}": i > 0 for i in range(30)}
    document = {**check_questions([]), "spot_check": spot_check(ticks)}
    broken, claim = question_claims(typed(plain(document)))
    assert broken.id == "bench.questions_broken"
    assert "1 called wrong by people" in broken.text
    badge = badge_of({"schema": "calibrant.bench_check/1", **plain(document)}, [broken, claim])
    assert badge.words == "questions do not hold"
    assert claim.id == "bench.share_wrong"
    assert "1 of 30" in claim.text
    # One-sided Clopper-Pearson: P(X <= 1 | 30, p) = 0.05 at the bound.
    bound = most_wrong(1, 30)
    chance = (1 - bound) ** 30 + 30 * bound * (1 - bound) ** 29
    assert chance == pytest.approx(0.05)
