"""Few rows: laws by listing against laws by transform, and draws that are shared."""

import numpy as np
import pytest
from scipy import stats

from calibrant.metrics.stats.bootstrap import quantiles
from calibrant.metrics.stats.common_draws import FEW_ROWS, CommonDraws
from calibrant.metrics.stats.error_law import Atoms, count_law, few_laws, sum_law
from calibrant.metrics.stats.inversion import root_between
from calibrant.metrics.stats.isotonic import isotonic_fit, isotonic_fits

POINTS = 32_768


def few_law(home, trials, chance, points):
    arrays = [np.asarray(column) for column in (home, trials, chance)]
    return few_laws(*arrays, np.array([home[-1] + 1]), points)[0]


def transformed(home, trials, chance):
    """Return the law by Fourier transforms, as larger data have it."""
    parts = []
    for number in range(max(home) + 1):
        mine = np.array(home) == number
        n, p = np.array(trials)[mine], np.array(chance)[mine]
        first, law = count_law(n, p)
        parts.append(Atoms(np.abs(n @ p - first - np.arange(law.size)), law))
    return sum_law(parts, POINTS)


@pytest.mark.parametrize("seed", range(20))
def test_listing_gives_the_law_of_the_transform(seed):
    rng = np.random.default_rng(seed)
    bins = int(rng.integers(1, 9))
    home = np.sort(np.concatenate([np.arange(bins), rng.integers(0, bins, 5)])).tolist()
    trials = rng.integers(1, 4, len(home)).astype(float).tolist()
    chance = rng.uniform(0.02, 0.98, len(home)).tolist()
    few, law = few_law(home, trials, chance, POINTS), transformed(home, trials, chance)
    assert few.step == pytest.approx(law.step, rel=1e-9)
    at = np.arange(law.probability.size)
    assert few.mean / few.step == pytest.approx(at @ law.probability, abs=bins)
    assert few.quantile(0.95) == pytest.approx(
        np.interp(0.95, np.cumsum(law.probability), at), abs=1e-3
    )
    for place in rng.integers(0, POINTS, 20):
        assert few.at_least(int(place)) == pytest.approx(law.at_least(int(place)), abs=1e-12)


def test_too_many_combinations_are_not_listed():
    assert few_law(list(range(15)), [8.0] * 15, [0.5] * 15, POINTS) is None


def test_certain_answers_have_no_error():
    law = few_law([0, 1], [3.0, 2.0], [1.0, 0.0], POINTS)
    assert law.mean == 0
    assert law.at_least(1) == 0


@pytest.mark.parametrize("chance", [0.03, 0.4, 0.97])
def test_shared_hits_are_binomial(chance):
    hits = CommonDraws(0).hits(np.array([4, 1, 9]), np.full(3, chance), 20_000)
    for column, trials in zip(hits.T, (4, 1, 9), strict=True):
        seen = np.bincount(column.astype(int), minlength=trials + 1) / column.size
        wanted = stats.binom.pmf(np.arange(trials + 1), trials, chance)
        assert np.abs(seen - wanted).max() < 0.015


@pytest.mark.parametrize("mean", [0.01, 0.7, 6.5])
def test_shared_counts_are_poisson(mean):
    drawn = CommonDraws(0).poisson(np.array([mean, 1.0]), (20_000, 2))[:, 0]
    wanted = stats.poisson.pmf(np.arange(30), mean)
    seen = np.bincount(drawn.astype(int), minlength=30)[:30] / drawn.size
    assert np.abs(seen - wanted).max() < 0.015


def test_shared_draws_do_not_depend_on_what_was_asked_before():
    wide = CommonDraws(3).standard_normal((FEW_ROWS, 40))
    assert (CommonDraws(3).standard_normal((7, 40)) == wide[:7]).all()
    rows = CommonDraws(3).resampled(12, 50)
    assert rows.shape == (50, 12)
    assert set(np.unique(rows)) == set(range(12))
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1


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
