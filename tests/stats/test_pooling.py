"""Pooling adjacent violators: the compiled routine and scipy's public one give the same bits."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibrant.stats import pooling


@pytest.mark.parametrize("routine", [pooling.pooled_adjacent, pooling._public])
@pytest.mark.parametrize("size", [1, 2, 50, 3000])
def test_fit_and_blocks_are_those_of_scipy(routine, size):
    rng = np.random.default_rng(size)
    values, weights = rng.random(size), rng.integers(1, 9, size).astype(float)
    kept = values.copy(), weights.copy()
    fitted, starts = routine(values, weights)
    expected = isotonic_regression(values, weights=weights)
    np.testing.assert_array_equal(fitted, expected.x)
    np.testing.assert_array_equal(starts, expected.blocks[:-1])
    np.testing.assert_array_equal(values, kept[0])
    np.testing.assert_array_equal(weights, kept[1])


@pytest.mark.parametrize("broken", [None, TypeError, "other"])
def test_a_routine_that_is_not_as_expected_is_not_used(monkeypatch, broken):
    def pava(values, weights, starts):
        if broken is TypeError:
            raise TypeError("another signature")
        return values[::-1], weights, starts, 1

    if broken is None:
        monkeypatch.setattr(pooling.importlib.machinery.PathFinder, "find_spec", lambda *_: None)
    else:
        monkeypatch.setattr(pooling, "_compiled", lambda _: lambda v, w: pava(v, w, v)[:2])
    assert pooling._routine.__wrapped__() is pooling._public


def test_a_fit_does_not_load_the_optimisers():
    code = (
        "import sys, numpy as np; from calibrant.stats.isotonic import isotonic_fit; "
        "isotonic_fit(np.ones(3), np.array([0.2, 0.9, 0.1])); "
        "assert 'scipy.optimize' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
