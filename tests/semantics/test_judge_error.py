"""A judge's mistakes, measured on a sample, are in the interval of what it graded."""

import numpy as np
import pytest

from calibrant.core import InputError
from calibrant.core.rng import named_stream
from calibrant.semantics import JudgeError, judge_error, with_judge_error


def accuracy(_confidence, right):
    return float(right.mean())


def gap(confidence, right):
    return float(np.mean(confidence - right))


def world(rng, size):
    """Confidences, labels, and grades of a judge that accepts one wrong answer in five."""
    confidence = rng.uniform(0.2, 1.0, size)
    right = rng.random(size) < 0.7 * confidence
    graded = np.where(rng.random(size) < 0.8, right, True) & ((rng.random(size) < 0.95) | ~right)
    return confidence, right, graded


@pytest.mark.parametrize("metric", [accuracy, gap])
def test_intervals_cover_the_truth_where_plain_ones_do_not(metric):
    big = world(named_stream(0, "judge world, truth"), 400_000)
    truth = metric(big[0], big[1])
    covered = plain = 0
    runs = 120
    for run in range(runs):
        rng = named_stream(run, "judge world")
        confidence, right, graded = world(rng, 400)
        sample = rng.choice(400, 150, replace=False)
        error = judge_error(graded[sample].tolist(), right[sample].tolist())
        found = with_judge_error(metric, confidence, graded, error, resamples=200, seed=run)
        covered += found.low <= truth <= found.high
        spread = 1.96 * np.std(
            [metric(confidence[p], graded[p]) for p in rng.integers(0, 400, (60, 400))]
        )
        plain += abs(metric(confidence, graded) - truth) <= spread
    assert covered / runs >= 0.92
    assert plain / runs < 0.5


def test_a_perfect_judge_changes_nothing_but_the_noise_of_the_sample():
    confidence, right, _ = world(named_stream(1, "judge world"), 500)
    error = JudgeError(5000, 5000, 0, 5000)
    found = with_judge_error(accuracy, confidence, right, error, resamples=200)
    assert found.value == pytest.approx(right.mean(), abs=0.005)
    assert error.kappa == 1.0


def test_too_few_labels_and_odd_shapes_are_refused():
    with pytest.raises(InputError, match="30 graded and labelled"):
        judge_error([True] * 10, [True] * 10)
    with pytest.raises(InputError, match="one label per grade"):
        judge_error([True], [])
    with pytest.raises(InputError, match="one confidence per grade"):
        with_judge_error(accuracy, [0.5], [True, False], JudgeError(1, 1, 0, 1))
