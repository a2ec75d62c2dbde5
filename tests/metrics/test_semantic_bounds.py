"""Theorem 5.2 of the Sem-ECE paper and its condition (8), against errors that are known."""

import numpy as np
import pytest

from calibrant.findings.sem_ece import regime_plane
from calibrant.metrics import ece
from calibrant.metrics.semantic import density_bound, ece_bound, near_an_edge, question_scores
from calibrant.metrics.semantic.pool import pool_draws
from calibrant.metrics.semantic.theory import confidence_error_bound, selection_error_bound

DRAWS = 4_000


@pytest.fixture(scope="module")
def world():
    """400 questions of two meanings, 4,000 draws each: c* is known, and half are right."""
    rng = np.random.default_rng(0)
    top = rng.choice([0.75, 0.85, 0.95], 400)
    right = rng.random(400) < 0.5
    first = rng.binomial(DRAWS, top)
    counts = np.column_stack([first, DRAWS - first])
    question = np.repeat(np.arange(400), DRAWS)
    meaning = np.concatenate([np.repeat([0, 1], row) for row in counts])
    graded = np.repeat(right, DRAWS) == (meaning == 0)
    return top, right, question_scores(pool_draws(question, meaning, graded), splits=20)


@pytest.mark.parametrize("form", [ece_bound, density_bound])
def test_the_error_lies_within_both_forms_of_theorem_5_2(world, form):
    top, right, scores = world
    race = (2 * top - 1, np.ones(top.size), np.full(top.size, 2))
    error = confidence_error_bound(top, *race, DRAWS).mean()
    selection = selection_error_bound(*race, DRAWS).mean()
    bound = form(top, confidence_error=error, selection_error=selection)
    apart = abs(ece(scores.sem1, scores.label1, bins=10) - ece(top, right, bins=10))
    assert apart <= bound
    # The first form says something where draws are many; neither does where they are few.
    assert form is density_bound or bound < 0.3
    assert form(top, confidence_error=0.1, selection_error=0.0) == 1.0


def test_the_first_form_is_the_best_of_all_eta():
    top = np.random.default_rng(1).uniform(0.75, 0.95, 400)
    far = np.abs(top[:, None] - np.arange(1, 10) / 10).min(axis=1)
    etas = np.linspace(1e-4, 0.2, 20_000)
    by_hand = min(0.0003 + 2 * (0.0002 / eta + (far <= eta).mean()) for eta in etas)
    found = ece_bound(top, confidence_error=0.0002, selection_error=0.0001)
    assert found == pytest.approx(by_hand, abs=1e-3)
    assert found <= by_hand


def test_the_density_form_never_undercuts_the_first_one():
    even = (np.arange(5000) + 0.5) / 5000
    for error in (1e-5, 1e-4, 5e-4):
        first, second = (
            form(even, confidence_error=error, selection_error=0.0)
            for form in (ece_bound, density_bound)
        )
        assert first <= second + 0.02


def test_condition_8_holds_with_many_draws_only():
    said = np.full(100, 0.55)
    assert near_an_edge(said, 50) == 1.0
    assert near_an_edge(said, 1000) == 0.0
    assert near_an_edge(np.ones(100), 50) == 0.0


def test_the_plane_of_regimes_counts_every_question(world):
    cells = regime_plane(world[2])
    assert sum(cell.n for cell in cells) == 400
    assert {cell.classes for cell in cells} == {2}
