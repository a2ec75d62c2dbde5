"""Mean confidence minus accuracy: its interval holds where nearly all answers are alike."""

import numpy as np
import pytest

from calibrant import metrics
from calibrant.metrics.stats.intervals import wilson_interval


def test_outcomes_that_are_all_alike_leave_an_interval_with_a_width():
    """Ten wrong answers at 0.6 leave room for as many right ones as Wilson's interval does."""
    gap = metrics.confidence_gap([0.6] * 10, [0] * 10)
    most_right = float(wilson_interval(0.0, 10)[1])
    assert (gap.low, gap.high) == pytest.approx((0.6 - most_right, 0.6))


def test_many_varied_rows_have_students_interval():
    rng = np.random.default_rng(1)
    confidence = rng.random(20_000)
    correct = (rng.random(20_000) < confidence**1.3).astype(float)
    gap = metrics.confidence_gap(confidence, correct)
    residual = confidence - correct
    reach = 1.96 * residual.std(ddof=1) / np.sqrt(residual.size)
    assert gap.value == pytest.approx(residual.mean())
    assert (gap.high - gap.low) / 2 == pytest.approx(reach, rel=2e-3)


@pytest.mark.parametrize(("size", "shape"), [(10, 30.0), (20, 30.0), (50, 30.0), (50, 2.0)])
def test_it_holds_the_truth_where_nearly_all_answers_are_right(size, shape):
    """Student's interval of the residuals held it in 31, 48 and 80 % of the first three."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(300):
        confidence = rng.beta(shape, 1.0, size)
        gap = metrics.confidence_gap(confidence, rng.random(size) < confidence)
        held += gap.low <= 0 <= gap.high
    assert held >= 0.915 * 300


def test_repeated_rows_of_a_unit_count_once():
    rng = np.random.default_rng(3)
    confidence, correct = rng.random(40), rng.random(40) < 0.9
    once = metrics.confidence_gap(confidence, correct)
    again = metrics.confidence_gap(
        np.repeat(confidence, 5), np.repeat(correct, 5), units=np.repeat(np.arange(40), 5)
    )
    assert (again.value, again.low, again.high) == pytest.approx((once.value, once.low, once.high))
