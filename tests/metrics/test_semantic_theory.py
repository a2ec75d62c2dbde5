"""Sem-ECE: golden values and laws that need no data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import norm

from calibrant.core.errors import InputError
from calibrant.metrics.semantic import (
    AdaptiveRule,
    adaptive_scores,
    best_selection_size,
    pool_draws,
    question_scores,
    theory,
)
from calibrant.metrics.stats.splits import sample_splits, split_law


def test_golden_jensen_boundary():
    """The root of the formula is 0.30600 (u* = 0.61200); '0.6125' elsewhere is a rounding slip."""
    root = theory.JENSEN_BOUNDARY
    assert norm.pdf(2 * root) - 4 * root * norm.cdf(-2 * root) == pytest.approx(0, abs=1e-14)
    assert round(root, 3) == 0.306
    assert 2 * root == pytest.approx(0.6125, abs=6e-4)
    assert 2 * theory.JENSEN_BOUNDARY / np.sqrt(50) == pytest.approx(0.0866, abs=5e-5)
    assert norm.pdf(2 * theory.JENSEN_BOUNDARY) / np.sqrt(50) == pytest.approx(0.0468, abs=5e-5)


def test_biases_add_up_to_the_density():
    lam = np.linspace(0, 3, 50)
    total = theory.jensen_bias(lam) + theory.selection_bias(lam)
    np.testing.assert_allclose(total, norm.pdf(2 * lam), atol=1e-15)
    at_root = theory.jensen_bias(theory.JENSEN_BOUNDARY) - theory.selection_bias(
        theory.JENSEN_BOUNDARY
    )
    assert at_root == pytest.approx(0, abs=1e-14)


def test_predicted_gap_is_the_papers_formula():
    margin, mass, n = np.array([0.1, 0.3]), np.array([0.9, 0.6]), 50
    lam = margin / np.sqrt(mass / n) / 2
    expected = np.mean(np.sqrt(mass) * norm.pdf(2 * lam)) / np.sqrt(n)
    assert theory.predicted_gap(margin, mass, n) == pytest.approx(expected, abs=1e-15)


def closed_form_two_classes(first, second, block):
    """Selection of the first class and Sem2 of a question with two classes; ties are halved."""
    pool, wins, total = first + second, 0.0, 0.0
    for taken in range(max(0, block - second), min(first, block) + 1):
        chance = comb(first, taken, exact=True) * comb(second, block - taken, exact=True)
        chance /= comb(pool, block, exact=True)
        share = (np.sign(2 * taken - block) + 1) / 2
        wins += chance * share
        left = share * (first - taken) + (1 - share) * (second - block + taken)
        total += chance * left / (pool - block)
    return wins, total


@pytest.mark.parametrize(
    ("first", "second", "block"), [(30, 20, 25), (25, 25, 26), (26, 24, 10), (1, 1, 1), (3, 47, 25)]
)
def test_exact_law_of_two_classes_equals_closed_form(first, second, block):
    law = split_law([[first, second]], block)
    wins, confidence = closed_form_two_classes(first, second, block)
    assert law.confidence[0] == pytest.approx(confidence, abs=1e-12)
    assert law.selection[0, 0] == pytest.approx(wins, abs=1e-12)


def test_exact_law_is_the_limit_of_random_splits():
    counts = np.array([[20, 18, 12], [10, 10, 30], [17, 17, 16]])
    law = split_law(counts, 25)
    runs = [sample_splits(counts, 25, splits=2_000, rng=seed) for seed in range(20)]
    means = np.array([run.confidence for run in runs])
    error = means.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(means.mean(axis=0) - law.confidence) < 4 * error).all()
    share = np.mean([run.selection for run in runs], axis=0)
    np.testing.assert_allclose(share, law.selection, atol=0.012)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=2, max_size=5).filter(lambda c: sum(c) >= 2),
    st.integers(0, 100),
)
def test_split_law_is_a_law(counts, where):
    block = 1 + where * (sum(counts) - 2) // 100
    law = split_law([counts], block)
    assert law.selection.sum() == pytest.approx(1, abs=1e-10)
    assert (law.selection >= 0).all()
    assert 0 <= law.confidence[0] <= 1 + 1e-12


def test_the_standardised_margin_counts_standard_errors_of_the_leading_class():
    assert theory.standardised_margin(0.1, 0.64, 100) == pytest.approx(0.1 / np.sqrt(0.64 / 100))


def test_regimes_of_the_boundaries():
    n = 50
    jensen = 2 * theory.JENSEN_BOUNDARY / np.sqrt(n)
    large = np.sqrt(np.log(5) / n)
    margins = [jensen - 1e-6, jensen + 1e-6, large - 1e-6, large + 1e-6]
    names = theory.regimes(margins, np.ones(4), np.full(4, 5), n)
    assert names.tolist() == ["jensen", "low-margin", "low-margin", "large-margin"]


def test_selection_error_stays_under_its_bound():
    rng = np.random.default_rng(0)
    pi = np.array([0.5, 0.3, 0.2])
    counts = rng.multinomial(25, pi, size=20_000)
    wrong = (counts.argmax(axis=1) != 0).mean()
    bound = theory.selection_error_bound(0.2, 0.8, 3, 25)
    assert wrong <= bound


def test_pool_counts_classes_in_order_of_appearance():
    pool = pool_draws(["b", "a", "b", "a", "b"], ["y", "x", "x", "x", "y"], [1, 0, 0, 0, 1])
    assert pool.ids.tolist() == ["b", "a"]
    assert pool.counts.tolist() == [[2, 1], [2, 0]]
    assert pool.labels[0].tolist() == [1, 0]


def test_draws_without_an_answer_fill_places_but_are_never_chosen():
    pool = pool_draws(["a"] * 4, [-1, -1, -1, 5], [None, None, None, 1])
    scores = question_scores(pool, splits="exact")
    assert scores.sem1[0] == 0.25
    assert scores.label1[0] == 1


def test_a_tied_mode_has_the_mean_grade_of_its_classes():
    pool = pool_draws(["a"] * 5 + ["b"] * 2, [0, 0, 1, 1, 2, 0, 0], [1, 1, 0, 0, 1, 1, 1])
    assert question_scores(pool, splits="exact").label1.tolist() == [0.5, 1.0]


def test_questions_that_cannot_be_used_are_counted():
    pool = pool_draws(
        ["a", "a", "b", "b", "c", "d", "d"],
        [0, 0, -1, -1, 0, 0, 1],
        [1, 1, None, None, 1, 1, None],
    )
    assert pool.ids.tolist() == ["a"]
    assert pool.left_out == {
        "no draw holds an answer": 1,
        "a class has no grade": 1,
        "fewer than two draws": 1,
    }


def test_conflicting_grades_inside_a_class_are_refused():
    with pytest.raises(InputError, match=r"row 2|row 1") as caught:
        pool_draws(["a", "a"], [0, 0], [1, 0])
    assert "different grades" in str(caught.value)
    assert pool_draws(["a", "a"], [0, 0], [1, 0], conflicts="mean").labels[0, 0] == 0.5


def test_order_of_draws_does_not_matter():
    rng = np.random.default_rng(1)
    question = np.repeat(["a", "b"], 26)
    meaning = np.r_[[0] * 11 + [1] * 11 + [2] * 4, [0] * 5 + [1] * 21]
    correct = meaning == 0
    order = rng.permutation(question.size)
    first = question_scores(pool_draws(question, meaning, correct), splits="exact")
    second = question_scores(
        pool_draws(question[order], meaning[order], correct[order]), splits="exact"
    )
    for name in ("sem1", "sem2", "label1", "label2"):
        a = dict(zip(first.ids, getattr(first, name), strict=True))
        b = dict(zip(second.ids, getattr(second, name), strict=True))
        assert a == pytest.approx(b, abs=1e-12)


def test_adaptive_rule_spends_draws_where_the_mode_is_open():
    rng = np.random.default_rng(0)
    clear = rng.choice(3, (200, 60), p=[0.95, 0.03, 0.02])
    close = rng.choice(3, (200, 60), p=[0.4, 0.35, 0.25])
    rule = AdaptiveRule(target=0.05, minimum=5, maximum=30, batch=5)
    easy, hard = (adaptive_scores(x, rule, evaluation=20) for x in (clear, close))
    assert easy.draws.mean() < hard.draws.mean() - 10
    assert hard.draws.max() == 50
    assert abs(easy.confidence.mean() - 0.95) < 0.02
    with pytest.raises(InputError, match="are needed"):
        adaptive_scores(clear, rule, evaluation=40)


def test_best_selection_size_depends_on_the_goal():
    flat = dict(top=[0.4], margin=[0.05], mass=[0.75], pool=50)
    assert best_selection_size(**flat, goal="error") < 49
    with pytest.raises(InputError):
        best_selection_size(**flat, goal="speed")
