"""The rising fit against scipy's: the same curve, whatever the values, weights and ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calibrant.metrics.stats.regressions import rising_fit


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=60),
    st.booleans(),
)
def test_the_fit_is_that_of_scipy(pairs, lifted):
    values = np.array([value for value, _ in pairs], float) + lifted * np.arange(len(pairs)) / 7
    weights = np.array([weight for _, weight in pairs], float)
    fitted, starts = rising_fit(values, weights)
    assert fitted == pytest.approx(isotonic_regression(values, weights=weights).x, abs=1e-12)
    assert starts[0] == 0
    assert np.all(np.diff(starts) > 0)
    # A block is one value, and blocks rise.
    assert np.all(np.diff(fitted[starts]) > 0)


def test_a_long_rise_before_a_fall_costs_no_pass_for_each_of_its_values():
    values = np.append(np.arange(50_000.0), -1e12)
    fitted, starts = rising_fit(values, np.ones(values.size))
    assert starts.tolist() == [0]
    assert fitted == pytest.approx(np.full(values.size, values.mean()))
