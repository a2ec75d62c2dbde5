"""Laws of a sum, fits of many draws, quantiles and roots: against plain loops and numpy."""

import numpy as np
import pytest

from calibrant.metrics.perfect import Atoms, sum_law
from calibrant.metrics.stats.bootstrap import quantiles, root_between
from calibrant.metrics.stats.regressions import isotonic_fit, isotonic_fits


@pytest.mark.parametrize("seed", range(10))
def test_the_law_of_a_sum_is_that_of_all_combinations(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for size in rng.integers(2, 5, int(rng.integers(1, 6))):
        chances = rng.dirichlet(np.ones(size))
        parts.append(Atoms(rng.uniform(0, 2, size), chances))
    values, chances = np.zeros(1), np.ones(1)
    for part in parts:
        values = np.add.outer(values, part.value).ravel()
        chances = np.multiply.outer(chances, part.probability).ravel()
    law = sum_law(parts, 32_768)
    # Each part is rounded to the lattice.
    slack = len(parts) * law.step / 2
    for at in rng.uniform(0, values.max(), 20):
        listed = law.at_least(round(at / law.step))
        assert chances[values >= at + slack + law.step].sum() <= listed + 1e-9
        assert listed <= chances[values >= at - slack - law.step].sum() + 1e-9


def test_certain_answers_have_no_error():
    law = sum_law([Atoms(np.zeros(1), np.ones(1))] * 2, 1024)
    assert law.at_least(1) == pytest.approx(0.0, abs=1e-12)


def test_fits_of_many_draws_are_the_fits_of_each():
    rng = np.random.default_rng(0)
    for weight in (np.ones(9), rng.integers(1, 5, 9).astype(float)):
        outcomes = rng.binomial(weight.astype(int), 0.4, (50, 9)).astype(float)
        each = np.stack([isotonic_fit(weight, row) for row in outcomes])
        np.testing.assert_allclose(isotonic_fits(weight, outcomes), each, atol=1e-12)


def test_quantiles_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for rows in (1, 2, 7, 400):
        values = rng.random((rows, 3))
        shares = (0.0, 0.025, 0.5, 0.975, 1.0)
        np.testing.assert_allclose(
            quantiles(values, shares), np.quantile(values, shares, axis=0), rtol=1e-14
        )


def test_a_root_is_found_where_the_function_is_flat_on_one_side():
    found = root_between(lambda x: x**9 - 1e-5, (0.0, -1e-5), (1.0, 1 - 1e-5))
    assert found == pytest.approx(1e-5 ** (1 / 9), abs=1e-10)
