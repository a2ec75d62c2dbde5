"""What units pull on a statistic, and the interval that knows their skewness."""

import numpy as np
import pytest

from calibrant.metrics.stats.intervals import skewed_interval, wald_interval
from calibrant.metrics.stats.units import CURVED_UNITS, UnitInfluence


def losses(seed=0, n=300):
    values = np.random.default_rng(seed).exponential(size=n)
    return values - values.mean()


def test_a_pull_that_many_units_share_counts_as_often():
    pull, times = np.array([-0.5, 0.25, 2.0]), np.array([10.0, 12.0, 1.0])
    together = UnitInfluence(pull, times, 23)
    apart = UnitInfluence(np.repeat(pull, times.astype(int)), None, 23)
    assert together.error == pytest.approx(apart.error)
    assert together.lean == pytest.approx(apart.lean)
    assert together.logit_error(0.3) == pytest.approx(apart.logit_error(0.3))


def test_the_error_is_that_of_a_mean():
    pull = losses()
    assert UnitInfluence(pull, None, 300).error == pytest.approx(pull.std(ddof=1) / np.sqrt(300))


def test_without_skewness_the_interval_is_students():
    assert skewed_interval(0.3, 0.02, 0.0, 0.95, units=40) == pytest.approx(
        wald_interval(0.3, 0.02, 0.95, units=40)
    )


def test_the_interval_mirrors_with_the_losses():
    pulls = UnitInfluence(losses(), None, 300)
    mirrored = UnitInfluence(-losses(), None, 300)
    low, high = skewed_interval(0.0, pulls.error, pulls.lean, 0.95, units=300)
    other = skewed_interval(0.0, mirrored.error, mirrored.lean, 0.95, units=300)
    assert other == pytest.approx((-high, -low))
    assert high > -low > 0


def test_the_error_on_the_logit_scale_is_the_plain_one_where_no_unit_matters():
    # Single wrong answers pull far down, so the value without one is nearer to 1.
    few, many = (UnitInfluence(-0.3 * losses(1, n), None, n) for n in (20, 20_000))
    assert many.logit_error(0.9) == pytest.approx(many.error, rel=1e-2)
    assert few.logit_error(0.9) > 1.02 * few.error
    assert few.logit_error(1.0) == few.error
    above = UnitInfluence(losses(2, CURVED_UNITS + 1), None, CURVED_UNITS + 1)
    assert above.logit_error(0.9) == above.error


def test_nothing_varies_and_nothing_leans():
    still = UnitInfluence(np.zeros(5), None, 5)
    assert (still.error, still.lean) == (0.0, 0.0)
