"""Degrees of freedom of unequal units, against the matrices of the textbook."""

import numpy as np
import pytest

from calibrant.metrics import confidence_gap
from calibrant.metrics.stats.intervals import student_quantile
from calibrant.metrics.stats.units import freedom, unequal_ratio


def by_matrix(shares):
    """Satterthwaite's degrees of freedom: (tr B)^2 / tr(B B), B the form of the variance."""
    centre = np.eye(shares.size) - np.outer(np.ones(shares.size), shares)
    form = centre.T @ np.diag(np.square(shares / (1 - shares))) @ centre
    return np.trace(form) ** 2 / np.trace(form @ form)


@pytest.mark.parametrize("seed", range(8))
def test_the_sums_give_what_the_matrices_give(seed):
    rng = np.random.default_rng(seed)
    shares = np.exp(rng.normal(size=rng.integers(2, 60)) * seed / 3)
    shares /= shares.sum() * 1.0
    if shares.max() < 0.9:
        assert freedom(shares) == pytest.approx(max(by_matrix(shares), 1.0), rel=1e-9)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_equal_units_have_one_degree_less_than_their_number(count):
    assert freedom(np.full(count, 1 / count)) == pytest.approx(count - 1)


def test_the_error_never_exceeds_that_of_units_whose_rows_are_alike():
    shares = np.array([200] + [1] * 300) / 500
    most = np.sqrt(0.2 * (shares @ shares))
    for error in (0.01, 0.1, most, 2 * most):
        ratio = unequal_ratio(shares, error, 0.2, 0.95, 6.2)
        assert ratio * error <= max(most, error) + 1e-12
        assert ratio > 0


def test_many_small_units_change_almost_nothing():
    shares = np.repeat([1.0, 1.1], 5_000)
    shares /= shares.sum()
    error = 0.004
    found = unequal_ratio(shares, error, 0.2, 0.95, 1 / (shares @ shares))
    assert found == pytest.approx(1.0, abs=0.001)
    assert student_quantile(0.95, freedom(shares) + 1) == pytest.approx(1.96, abs=0.001)


def test_large_units_with_mixed_rows_are_not_taken_for_alike():
    rng = np.random.default_rng(3)
    wide = []
    for _ in range(40):
        topic = rng.integers(0, 12, 600)
        said = rng.choice([0.5, 0.6, 0.7, 0.8], 600)
        right = rng.random(600) < said + rng.normal(0, 0.1, 12)[topic]
        gap = confidence_gap(said, right.astype(int), units=topic)
        totals = np.bincount(topic, said - right - gap.value)
        error = np.sqrt((totals**2).sum() * 12 / 11) / 600
        wide.append((gap.high - gap.low) / 2 / (error * student_quantile(0.95, 12)))
    # 1.6 where all rows of a topic were expected to be right or wrong together.
    assert 1 < np.mean(wide) < 1.25
