"""Noise floor, predicted gap and unlimited draws of Sem-ECE, in worlds with known truth."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from calibrant.findings.sem_ece import boundary_alignment, sem_ece_block
from calibrant.metrics import ece
from calibrant.metrics.semantic import (
    DrawPool,
    JudgeErrors,
    judge_errors,
    judged_intervals,
    many_class_gaps,
    noise_floor,
    pool_draws,
    pool_gap,
    question_scores,
    sem_ece_of_pool,
    theory,
    unlimited_draws_ece,
)
from calibrant.metrics.semantic.estimators import Bootstrap
from calibrant.metrics.semantic.unlimited import SPLITTERS, log_partition


def pool_of(counts, truth):
    """A pool whose class `truth` of each question is right; -1: none."""
    labels = np.where(counts > 0, np.arange(counts.shape[1]) == truth[:, None], np.nan)
    return DrawPool(np.arange(len(counts)), counts, labels, np.ones(counts.shape, bool), {})


def drawn_world(rng, questions=200, classes=5, alpha=0.5, n=10, sharper=1.0):
    """Truth is one more draw from the model's own law, or from a sharper one."""
    shares = rng.dirichlet(np.full(classes, alpha), questions)
    law = shares**sharper
    law /= law.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(classes, p=row) for row in law])
    return pool_of(rng.multinomial(n, shares), truth)


def test_the_floor_is_what_a_model_of_one_law_shows():
    rng = np.random.default_rng(0)
    found = [noise_floor(drawn_world(rng), rng=rng, simulations=199) for _ in range(70)]
    for name in ("sem1", "sem2"):
        tests = [getattr(one, name) for one in found]
        observed, floor = (
            np.array([getattr(t, key) for t in tests]) for key in ("observed", "floor")
        )
        error = (observed - floor).std() / np.sqrt(len(tests))
        assert abs((observed - floor).mean()) < 4 * error
        assert np.mean([t.p <= 0.05 for t in tests]) < 0.12


def test_p_values_follow_from_enumeration():
    """Two questions with three draws: all ways in which truth and draws can change places."""
    counts = np.array([[2, 1], [3, 0]])
    pool = pool_of(counts, np.array([1, 0]))
    errors = []
    # Items (a a b b) and (a a a a): take one out, it is the truth; Sem1 of the other three.
    for one, other in product(range(4), range(4)):
        residuals = []
        for items, out in (("aabb", one), ("aaaa", other)):
            left = items[:out] + items[out + 1 :]
            lead = max(set(left), key=left.count)
            residuals.append((left.count(lead) / 3, float(lead == items[out])))
        bins = {}
        for confidence, grade in residuals:
            place = min(int(confidence * 10), 9)
            bins[place] = bins.get(place, 0) + grade - confidence
        errors.append(sum(map(abs, bins.values())) / 2)
    found = noise_floor(pool, simulations=4_000).sem1
    assert found.floor == pytest.approx(np.mean(errors), abs=0.01)


def test_the_test_sees_over_confidence():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(20, rng.dirichlet(np.full(5, 0.5), 300))
    truth = np.where(rng.random(300) < 0.5, counts.argmax(axis=1), -1)
    found = noise_floor(pool_of(counts, truth))
    assert found.sem1.p < 0.01
    assert found.sem2.p < 0.01
    assert found.sem2.observed > found.sem2.threshold > found.sem2.floor


def test_observed_is_the_calibration_error_itself():
    rng = np.random.default_rng(2)
    pool = drawn_world(rng, n=20)
    scores = question_scores(pool, splits="exact")
    from calibrant.metrics import ece

    found = noise_floor(pool)
    assert found.sem1.observed == pytest.approx(ece(scores.sem1, scores.label1, bins=10), abs=1e-12)
    assert found.sem2.observed == pytest.approx(ece(scores.sem2, scores.label2, bins=10), abs=1e-9)


def test_several_right_classes_are_refused():
    counts = np.full((40, 3), 5)
    labels = np.tile([1.0, 1.0, 0.0], (40, 1))
    pool = DrawPool(np.arange(40), counts, labels, np.ones(counts.shape, bool), {})
    found = noise_floor(pool)
    assert found.sem1 is None
    assert found.refused == (
        "in 40 of 40 questions several meanings are graded right, and the test needs one"
    )


def test_draws_without_an_answer_keep_their_places():
    """A fifth of the draws is silent; truth follows the law of the others."""
    rng = np.random.default_rng(3)
    rejected = []
    for _ in range(60):
        shares = rng.dirichlet(np.full(5, 0.5), 200)
        spoken = shares[:, :4] / shares[:, :4].sum(axis=1, keepdims=True)
        truth = np.array([rng.choice(4, p=row) for row in spoken])
        counts = rng.multinomial(10, shares)
        labels = np.where(counts > 0, np.arange(5) == truth[:, None], np.nan)
        attempted = np.ones(counts.shape, dtype=bool)
        attempted[:, 4] = False
        pool = DrawPool(np.arange(200), counts, labels, attempted, {})
        pool = pool.take(np.flatnonzero(pool.answers.sum(axis=1) > 0))
        rejected.append(noise_floor(pool, rng=rng, simulations=199).sem2.p <= 0.05)
    assert np.mean(rejected) < 0.12


@pytest.mark.parametrize(("classes", "alpha"), [(3, 1.0), (10, 1.0), (30, 0.15), (30, 1.0)])
@pytest.mark.parametrize("n", [10, 20, 50])
def test_predicted_gap_within_a_tenth_for_many_classes(classes, alpha, n):
    rng = np.random.default_rng([classes, n])
    shares = rng.dirichlet(np.full(classes, alpha), 1500)
    pool = pool_of(rng.multinomial(n, shares), np.full(1500, -1))
    scores = question_scores(pool, splits="exact" if n < 50 else 50)
    assert pool_gap(pool, scores.selection_n) == pytest.approx(scores.gap.mean(), rel=0.1)


def test_one_certain_class_has_no_gap():
    gaps = many_class_gaps([[1.0, 0.0]], 50, 25)
    assert abs(gaps[0]) < 0.06  # Poisson counts of 50 draws are not exactly 50


def test_partition_law_adds_up():
    """All partitions of three draws: 3, 2 + 1 (three ways), 1 + 1 + 1."""
    shapes = np.array([[3, 0, 0], [2, 1, 0], [1, 1, 1]])
    total = (np.exp(log_partition(shapes)) * np.array([1, 3, 1])[:, None]).sum(axis=0)
    np.testing.assert_allclose(total, np.ones(len(SPLITTERS)), atol=1e-9)


@pytest.mark.parametrize(("sharper", "truth"), [(1.0, 0.0), (2.0, 0.227)])
def test_unlimited_draws_find_the_known_error(sharper, truth):
    rng = np.random.default_rng(4)
    shape = {1.0: (5, 0.5), 2.0: (30, 0.15)}[sharper]
    pool = drawn_world(rng, 400, *shape, n=20, sharper=sharper)
    found = unlimited_draws_ece(pool, rng=0)
    assert found.refused is None
    assert found.ece.low <= truth <= found.ece.high
    assert abs(found.ece.value - truth) < 0.06


@pytest.mark.parametrize(
    ("questions", "n", "alpha", "reason"),
    [(300, 10, 0.5, "20 draws"), (100, 20, 0.5, "200 questions"), (300, 20, 50.0, "half-splits")],
)
def test_unlimited_draws_are_refused(questions, n, alpha, reason):
    rng = np.random.default_rng(5)
    pool = drawn_world(rng, questions, 20, alpha, n)
    assert reason in unlimited_draws_ece(pool).refused


def several_right(rng, right, alpha, *, classes=6, boost=1.5, questions=400, n=20):
    """Return a pool in which the first `right` of the classes are right, and its true error."""
    shares = rng.dirichlet(np.full(classes, alpha), questions)
    shares[:, :right] *= boost
    shares /= shares.sum(axis=1, keepdims=True)
    counts = np.stack([rng.multinomial(n, row) for row in shares])
    rows, columns = np.nonzero(counts)
    times = counts[rows, columns]
    pool = pool_draws(
        np.repeat(rows, times), np.repeat(columns, times), np.repeat(columns < right, times)
    )
    return pool, ece(shares.max(axis=1), shares.argmax(axis=1) < right, bins=10)


@pytest.mark.parametrize("right", [2, 3])
def test_several_right_answers_are_covered_or_refused(right):
    """Nearly flat races are refused; where one answer leads, the true error is inside."""
    for alpha in (20.0, 8.0, 4.0):
        pool, _ = several_right(np.random.default_rng(1), right, alpha)
        assert "too close" in unlimited_draws_ece(pool, resamples=5).refused
    covered = 0
    for seed in range(4):
        pool, truth = several_right(np.random.default_rng(seed), right, 0.3, classes=8, boost=2.0)
        found = unlimited_draws_ece(pool, rng=seed, resamples=60)
        assert found.refused is None
        covered += found.ece.low <= truth <= found.ece.high
    assert covered >= 3


def test_bounds_are_probabilities():
    rng = np.random.default_rng(6)
    counts = rng.multinomial(20, np.full((50, 50), 1 / 50))
    rows, columns = np.nonzero(counts)
    times = counts[rows, columns]
    flat = (np.repeat(rows, times), np.repeat(columns, times), np.zeros(1000))
    block = sem_ece_block(*flat, resamples=50)
    assert all(0 <= value <= 1 for value in block["bounds"].values())
    assert block["bounds"]["selection_error"] > 0.9


def test_pointwise_bias_stays_under_its_bound():
    rng = np.random.default_rng(7)
    shares = np.array([0.45, 0.35, 0.2])
    counts = rng.multinomial(40, np.tile(shares, (4000, 1)))
    scores = question_scores(pool_of(counts, np.zeros(4000, int)), splits=20)
    race = (0.1, 0.8, 3)
    assert abs(scores.sem1.mean() - 0.45) <= theory.pointwise_bias_bound(*race, 40)
    assert abs(scores.sem2.mean() - 0.45) <= theory.pointwise_bias_bound(*race, 20, held_out=True)


def test_oracle_advantage_changes_sign_at_the_boundary():
    n = 50
    at = 2 * theory.JENSEN_BOUNDARY / np.sqrt(n)
    below, above = theory.oracle_advantage([at - 0.01, at + 0.01], [1.0, 1.0], n)
    assert below > 0 > above


@pytest.mark.parametrize("margin", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_oracle_advantage_against_the_exact_binomial_law(margin):
    """Two classes: both biases summed over every outcome of 200 draws."""
    n, top = 200, (1 + margin) / 2
    first = np.arange(n + 1)
    chance = binom.pmf(first, n, top)
    sem1 = (chance * np.maximum(first, n - first) / n).sum()
    leads = (chance * np.where(2 * first == n, 0.5, 2 * first > n)).sum()
    sem2 = leads * top + (1 - leads) * (1 - top)
    exact = (sem1 - top) - (top - sem2)
    assert theory.oracle_advantage(margin, 1.0, n) == pytest.approx(exact, abs=1e-4)


def test_boundary_alignment_by_enumeration():
    """27 against 23 of 50 draws lies at the Jensen boundary; every half of 25 is counted."""
    n, half, counts = 50, 25, (27, 23)
    first = np.arange(max(0, half - counts[1]), half + 1)
    chance = hypergeom.pmf(first, n, counts[0], half)
    held_out = np.where(2 * first > half, counts[0] - first, counts[1] - (half - first)) / half
    question = np.repeat(np.arange(40), n)
    pool = pool_draws(question, np.tile(np.repeat([0, 1], counts), 40), np.zeros(question.size))
    scores = question_scores(pool, splits="exact")
    how = Bootstrap(10, 0.95, 20, np.random.default_rng(0))
    rows = {row.boundary: row for row in boundary_alignment(scores, how)}
    # All answers are wrong, so that both errors are mean confidences.
    assert rows["jensen"].gap.value == pytest.approx(0.54 - (chance * held_out).sum())
    assert rows["jensen"].predicted == pytest.approx(0.0468, abs=1e-4)
    assert rows["jensen"].ratio == rows["jensen"].gap.value / rows["jensen"].predicted
    assert (rows["jensen"].n, rows["large_margin"].n) == (40, 0)


def test_a_judge_without_errors_widens_nothing():
    pool = drawn_world(np.random.default_rng(9), 300, n=20)
    found = sem_ece_of_pool(pool, rng=0)
    judged = judged_intervals(pool, found.sem1, found.sem2, JudgeErrors(0, 0, 0))
    assert judged.sem2.low == pytest.approx(found.sem2.low)
    assert judged.sem2.high == pytest.approx(found.sem2.high)
    wrong = judged_intervals(pool, found.sem1, found.sem2, JudgeErrors(0.2, 0.2, 0.2))
    assert wrong.sem2.high - wrong.sem2.low > found.sem2.high - found.sem2.low


def test_measured_rates_of_a_judge():
    question = np.repeat(np.arange(4), 4)
    truth = np.tile([0, 0, 1, 1], 4)
    first = truth.copy()
    first[:4] = [0, 2, 1, 1]  # one meaning in two classes
    first[4:8] = 0  # two meanings in one class
    grades = (truth == 0).astype(float)
    own = grades.copy()
    own[8] = 0.0
    rates = judge_errors(question, (first, own), (truth, grades))
    assert (rates.apart, rates.together, rates.grade) == (0.25, 0.25, 0.25)
