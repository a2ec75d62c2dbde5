"""Grades and checks: intervals cover the truth, and grades taken as truth do not."""

import numpy as np
import pytest
from simulations.grades import KINDS, World, draw, estimates, true_rate, truths

from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError
from calibrant.metrics.stats.graded_estimates import (
    CheckedGrades,
    Graded,
    graded_accuracy,
    graded_difference,
    graded_gap,
    soft_area,
)
from calibrant.metrics.stats.graded_summary import (
    choose_checks,
    unchecked_accuracy,
    unchecked_difference,
    unchecked_error,
    unchecked_gap,
)


@pytest.mark.parametrize("kind", [KINDS[1], KINDS[2]])
def test_intervals_cover_where_grades_mislead(kind):
    world, rng = World(0.1, kind), named_stream(3, "test")
    large = draw(world, rng, 100_000).graded.confidence
    edges = np.quantile(large, np.arange(1, 5) / 5)
    wanted = truths(large, true_rate(large), edges)
    runs = [dict(estimates(draw(world, rng, 2000), edges, 60, rng)) for _ in range(60)]
    for name, truth in wanted.items():
        covered = np.mean([run[name].low <= truth <= run[name].high for run in runs])
        assert covered >= 0.88, name
    if kind == KINDS[1]:
        # Only false accepts: the grades alone are off by several points, always to one side.
        assert np.mean([run["accuracy"].as_graded for run in runs]) > wanted["accuracy"] + 0.03


def test_all_checked_is_the_truth():
    drawn = draw(World(0.2, KINDS[0]), named_stream(1, "test"), 500)
    checked = CheckedGrades(drawn.graded, np.arange(500), drawn.truth)
    found = graded_accuracy(checked, named_stream(2, "test"))
    assert found.value == pytest.approx(drawn.truth.mean(), abs=0.01)
    gap = graded_gap(checked, named_stream(2, "test"))
    assert gap.value == pytest.approx(drawn.graded.confidence.mean() - drawn.truth.mean(), abs=0.01)


def test_no_error_found_is_no_proof_of_none():
    graded = Graded(np.full(1000, 0.7), np.ones(1000), np.full(1000, 0.99), np.zeros(1000))
    found = graded_accuracy(
        CheckedGrades(graded, np.arange(10), np.ones(10)), named_stream(0, "test")
    )
    assert found.value == 1.0
    assert found.low < 0.95


def test_forecast_is_met():
    drawn = draw(World(0.1, KINDS[0]), named_stream(5, "test"), 2000)

    def width(checks):
        found = []
        for seed in range(20):
            rng = named_stream(seed, "width")
            rows = choose_checks(drawn.graded, checks, rng)
            found.append(graded_accuracy(CheckedGrades(drawn.graded, rows, drawn.truth[rows]), rng))
        return found

    few, many = width(60), width(200)
    foretold = np.mean([each.width_at(200) for each in few])
    assert np.mean([each.high - each.low for each in many]) == pytest.approx(foretold, rel=0.15)
    assert all(each.checks_to_halve > 60 for each in few)


def test_two_models_equally_good_have_no_winner():
    rng = named_stream(8, "test")
    wins = {"graded": 0, "checked": 0}
    for _ in range(40):
        ease = rng.normal(size=2000)
        a = draw(World(0.05, KINDS[1]), rng, 2000, ease)
        b = draw(World(0.2, KINDS[1]), rng, 2000, ease)
        found = graded_difference(
            *(
                CheckedGrades(m.graded, rows := choose_checks(m.graded, 60, rng), m.truth[rows])
                for m in (a, b)
            ),
            rng,
        )
        step = a.graded.grade - b.graded.grade
        wins["graded"] += abs(step.mean()) > 1.96 * step.std() / np.sqrt(step.size)
        wins["checked"] += not found.low <= 0.0 <= found.high
    assert wins["graded"] >= 36
    assert wins["checked"] <= 6


def test_without_checks_there_are_bounds_and_no_interval():
    drawn = draw(World(0.1, KINDS[0], overconfident=False), named_stream(4, "test"), 20_000)
    graded, truth = drawn.graded, drawn.truth
    low, high = unchecked_accuracy(graded)
    assert low < truth.mean() < high
    low, high = unchecked_gap(graded)
    assert low < (graded.confidence - truth).mean() < high
    cell = np.searchsorted([0.5, 0.7, 0.9], graded.confidence)
    error = np.abs(np.bincount(cell, graded.confidence - truth)).sum() / truth.size
    low, high = unchecked_error(graded, cell)
    assert low < error < high
    low, high = unchecked_difference(graded, graded)
    assert low < 0.0 < high


def test_soft_area_is_the_area_for_sure_labels():
    rng = named_stream(6, "test")
    confidence, right = rng.random(300).round(1), (rng.random(300) < 0.6).astype(float)
    pairs = confidence[right == 1][:, None] - confidence[right == 0][None, :]
    assert soft_area(confidence, right)[0] == pytest.approx(
        np.mean(np.where(pairs > 0, 1.0, np.where(pairs == 0, 0.5, 0.0)))
    )


def test_lengths_must_agree():
    with pytest.raises(InputError, match="each graded answer needs"):
        Graded([0.5], [1, 0], [0.9, 0.1], [False, False])
