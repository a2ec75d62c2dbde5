"""Sem-ECE on simulated populations with known truth, and on real draws."""

import gzip
import json

import numpy as np
import pytest

from calibrant.findings.sem_ece import margin_strata, regime_summary
from calibrant.metrics import sem_ece, ver_ece
from calibrant.metrics.semantic import (
    DrawPool,
    clustering_shift,
    convergence_curve,
    gap_slope,
    pool_draws,
    question_scores,
    theory,
)
from calibrant.metrics.semantic.estimators import Bootstrap


def drawn(pi, n, rng):
    """Class of each draw, (questions, n)."""
    cumulative = np.cumsum(pi, axis=1)
    return (rng.random((len(pi), n, 1)) > cumulative[:, None, :]).sum(axis=2)


def counts_of(classes, width):
    table = np.zeros((len(classes), width), dtype=np.int64)
    np.add.at(table, (np.arange(len(classes))[:, None], classes), 1)
    return table


def two_class(margin):
    """Questions with two classes and the given margins."""
    top = (1 + np.asarray(margin)) / 2
    return np.column_stack([top, 1 - top])


def test_biases_follow_j_and_s():
    n, rng = 50, np.random.default_rng(0)
    for margin in (0.0, 0.05, 0.15, 0.3):
        pi = two_class(np.full(60_000, margin))
        chosen, held = counts_of(drawn(pi, n, rng), 2), counts_of(drawn(pi, n, rng), 2)
        mode = chosen.argmax(axis=1)
        c1 = chosen.max(axis=1) / n
        c2 = held[np.arange(len(mode)), mode] / n
        lam = margin * np.sqrt(n) / 2
        scale = 1 / np.sqrt(n)
        # The expansion is of leading order: allow its 1/n remainder beside the sampling error.
        slack = 4 * 0.07 / np.sqrt(60_000) + 0.5 / n
        assert abs((c1 - pi[:, 0]).mean() - scale * theory.jensen_bias(lam)) < slack
        assert abs((c2 - pi[:, 0]).mean() + scale * theory.selection_bias(lam)) < slack


def test_predicted_gap_within_15_percent_at_50_draws():
    n, rng = 50, np.random.default_rng(1)
    margin = rng.uniform(0, 0.3, 40_000)
    pi = two_class(margin)
    chosen, held = counts_of(drawn(pi, n, rng), 2), counts_of(drawn(pi, n, rng), 2)
    # A tie goes to the class seen first, which is either of the two.
    mode = (chosen[:, 1] + rng.choice([-0.25, 0.25], len(pi)) > chosen[:, 0]).astype(int)
    measured = (chosen.max(axis=1) - held[np.arange(len(mode)), mode]).mean() / n
    predicted = theory.predicted_gap(margin, np.ones(len(margin)), n)
    assert predicted == pytest.approx(measured, rel=0.15)


def test_sem2_is_below_sem1_under_over_confidence_and_above_under_under_confidence():
    rng = np.random.default_rng(2)
    pi = two_class(rng.uniform(0, 0.4, 2_000))
    classes = drawn(pi, 50, rng)
    question = np.repeat(np.arange(2_000), 50)
    always_wrong = sem_ece(question, classes.ravel(), np.zeros(100_000), resamples=200)
    assert always_wrong.sem2.value < always_wrong.sem1.value
    assert always_wrong.gaps.ece.low > 0
    always_right = sem_ece(question, classes.ravel(), np.ones(100_000), resamples=200)
    assert always_right.sem2.value > always_right.sem1.value
    assert always_right.gaps.ece.high < 0


def test_gap_shrinks_like_one_over_root_n():
    rng = np.random.default_rng(3)
    pi = two_class(rng.uniform(0, 0.04, 3_000))
    counts = counts_of(drawn(pi, 200, rng), 2)
    pool = DrawPool(
        np.arange(3_000), counts, np.zeros((3_000, 2)), np.ones((3_000, 2), dtype=bool), {}
    )
    points = convergence_curve(pool, [10, 20, 40, 80], subsamples=3, splits=20, resamples=20, rng=0)
    assert gap_slope(points) == pytest.approx(-0.5, abs=0.1)
    first, last = points[0], points[-1]
    assert first.sem1.value > last.sem1.value
    assert first.sem2.value < last.sem2.value + 0.005


def test_same_seed_same_number():
    rng = np.random.default_rng(4)
    classes = drawn(two_class(rng.uniform(0, 1, 200)), 20, rng)
    question = np.repeat(np.arange(200), 20)
    correct = (classes == 0).astype(float).ravel()
    runs = [sem_ece(question, classes.ravel(), correct, rng=7) for _ in range(2)]
    assert runs[0].sem2 == runs[1].sem2
    np.testing.assert_array_equal(runs[0].questions.sem2, runs[1].questions.sem2)


def test_label_of_the_pool_mode_differs_from_the_selected_class():
    question = np.repeat(np.arange(50), 11)
    classes = np.tile([0] * 6 + [1] * 5, 50)
    correct = (classes == 0).astype(float)
    split = sem_ece(question, classes, correct, splits="exact").questions
    pool = sem_ece(question, classes, correct, splits="exact", label="pool").questions
    assert (pool.label2 == 1).all()
    assert (split.label2 < 1).all()


def test_regimes_and_strata_count_every_question():
    rng = np.random.default_rng(5)
    classes = drawn(two_class(rng.uniform(0, 1, 300)), 30, rng)
    question = np.repeat(np.arange(300), 30)
    found = sem_ece(question, classes.ravel(), (classes == 0).ravel(), resamples=50)
    assert sum(row.n for row in regime_summary(found.questions)) == 300
    how = Bootstrap(10, 0.95, 20, np.random.default_rng(0))
    assert sum(row.n for row in margin_strata(found.questions, how)) == 300


def test_intervals_of_few_questions_stay_inside_what_a_difference_of_shares_can_be():
    question = np.repeat(np.arange(2), 20)
    classes = np.tile(np.arange(20) < 1, 2).astype(int)
    found = sem_ece(question, classes, np.array([0.0, 1.0])[question], resamples=50).questions
    row = next(row.over_confidence for row in regime_summary(found) if row.n == 2)
    assert (row.low, row.high) == (-1, 1)


def test_a_second_judge_who_agrees_moves_nothing():
    rng = np.random.default_rng(6)
    classes = drawn(two_class(rng.uniform(0, 1, 100)), 20, rng).ravel()
    question = np.repeat(np.arange(100), 20)
    correct = (classes == 0).astype(float)
    shift = clustering_shift(question, (classes, correct), (classes + 5, correct))
    assert shift.same_partition == 1
    assert shift.sem1.value == 0
    lumped = clustering_shift(question, (classes, correct), (np.zeros(2000, int), np.ones(2000)))
    assert lumped.same_partition < 0.5


def test_stated_confidence_counts_what_could_not_be_read():
    question = [0, 0, 1, 1]
    stated = [0.9, np.nan, 0.5, 0.7]
    left = ver_ece(question, stated, [1, 0, 0, 1])
    assert left.parse_failures == 0.25
    assert left.confidence.tolist() == pytest.approx([0.9, 0.6])
    assert left.accuracy.tolist() == [1, 0.5]
    imputed = ver_ece(question, stated, [1, 0, 0, 1], impute=1.0)
    assert imputed.confidence.tolist() == pytest.approx([0.95, 0.6])
    assert imputed.imputed == 1.0


def test_game24_curves_close_from_opposite_sides(shared_data):
    """100 draws per puzzle: Sem1 comes down and Sem2 goes up as draws are added."""
    path = shared_data / "draws" / "tot_game24_gpt4_100q_100samples.jsonl.gz"
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    for prompt in sorted({row["prompt"] for row in rows}):
        part = [row for row in rows if row["prompt"] == prompt]
        found = game24_pool(part)
        points = convergence_curve(found, [10, 50, 100], subsamples=5, splits=40, resamples=20)
        gaps = [point.gap.value for point in points]
        assert gaps[0] > gaps[1] > gaps[2] > 0


def game24_pool(rows):
    """One class per final expression, which has one grade."""
    question, meaning, correct = [], [], []
    for row in rows:
        question += [row["puzzle_idx"]] * len(row["samples"])
        meaning += row["final_expr"]
        correct += row["correct"]
    return pool_draws(question, meaning, correct)


def test_exact_and_sampled_agree_on_a_population():
    rng = np.random.default_rng(8)
    classes = drawn(np.full((200, 3), 1 / 3), 20, rng)
    pool = DrawPool(
        np.arange(200),
        counts_of(classes, 3),
        np.tile([1.0, 0.0, 0.0], (200, 1)),
        np.ones((200, 3), dtype=bool),
        {},
    )
    exact = question_scores(pool, splits="exact")
    sampled = question_scores(pool, splits=2_000, rng=0)
    np.testing.assert_allclose(exact.sem2, sampled.sem2, atol=0.02)
    np.testing.assert_allclose(exact.label2, sampled.label2, atol=0.06)


def test_every_point_of_the_convergence_curve_lies_inside_its_interval():
    """Percentiles of a bootstrapped ECE lie above the ECE itself; these intervals must not."""
    rng = np.random.default_rng(8)
    shares = rng.dirichlet(np.full(4, 0.6), 300)
    draws = np.array([rng.choice(4, 20, p=share) for share in shares])
    right = rng.integers(0, 4, 300)
    question = np.repeat(np.arange(300), 20).astype(str)
    pool = pool_draws(question, draws.ravel(), (draws == right[:, None]).ravel().astype(float))
    for point in convergence_curve(pool, [10, 20], subsamples=3, resamples=200, rng=0):
        for estimate in (point.sem1, point.sem2):
            assert estimate.low <= estimate.value <= estimate.high
            assert estimate.interval == "test-inversion"
