"""Too few questions for an interval: a comparison says so instead of printing a narrow one."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.compare import LEAST_QUESTIONS


def table(n):
    rng = np.random.default_rng(n)
    confidence = rng.random((2, n))
    correct = np.tile(np.arange(n) % 2, (2, 1))
    return pl.DataFrame(
        {
            "question_id": np.tile(np.arange(n), 2),
            "model": np.repeat(["a", "b"], n),
            "confidence": confidence.ravel(),
            "correct": correct.ravel(),
        }
    )


@pytest.mark.parametrize("n", [2, 3, 5, 10, LEAST_QUESTIONS - 1])
def test_few_questions_are_refused_with_the_number_that_is_needed(n):
    with pytest.raises(cal.InputError, match=f"share {n} questions.* at least {LEAST_QUESTIONS}"):
        cal.compare(table(n), resamples=100)


def test_enough_questions_are_compared():
    found = cal.compare(table(LEAST_QUESTIONS), resamples=100).to_dict()
    (pair,) = found["pairs"]
    assert pair["gaps"]["raw"]["ece"]["low"] < pair["gaps"]["raw"]["ece"]["high"]
