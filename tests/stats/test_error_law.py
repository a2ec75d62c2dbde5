"""The law of a sum of independent errors."""

import itertools

import numpy as np
import pytest
from scipy import stats

from calibrant.metrics.perfect import Atoms, count_law, half_normal_atoms, sum_law


@pytest.mark.parametrize(
    ("trials", "chance"), [(1, 0.3), (20, 0.5), (500, 0.01), (10_000, 0.7), (2_000_000, 0.4)]
)
def test_one_binomial_has_its_own_law(trials, chance):
    first, law = count_law(np.array([float(trials)]), np.array([chance]))
    expected = stats.binom.pmf(first + np.arange(law.size), trials, chance)
    assert law == pytest.approx(expected, abs=1e-13)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law.size <= trials + 1


def test_a_sum_of_binomials_is_their_convolution():
    first, law = count_law(np.array([7.0, 30.0, 2.0]), np.array([0.1, 0.6, 0.999]))
    parts = [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in ((7, 0.1), (30, 0.6), (2, 0.999))]
    expected = np.convolve(np.convolve(parts[0], parts[1]), parts[2])
    assert first == 0
    assert law == pytest.approx(expected, abs=1e-15)


def test_certain_outcomes_shift_the_law():
    first, law = count_law(np.array([1000.0, 1000.0]), np.array([1.0, 0.0]))
    assert law.size < 60
    assert first + int(law.argmax()) == 1000
    assert law.max() == pytest.approx(1)


def three_parts():
    rng = np.random.default_rng(0)
    parts = []
    for size in (3, 5, 4):
        probability = rng.random(size)
        parts.append(Atoms(rng.random(size) * 10, probability / probability.sum()))
    return parts


def test_laws_on_the_lattice_are_those_of_all_combinations():
    parts = three_parts()
    law = sum_law(parts, 4096)
    for threshold in (2.0, 8.0, 9.5, 14.0):
        expected = sum(
            float(np.prod([part.probability[i] for part, i in zip(parts, which, strict=True)]))
            for which in itertools.product(*(range(part.value.size) for part in parts))
            if sum(part.value[i] for part, i in zip(parts, which, strict=True)) >= threshold
        )
        assert law.at_least(round(threshold / law.step)) == pytest.approx(expected, abs=1e-12)


def test_a_deep_tail_of_many_parts_is_resolved():
    # Fifteen normal errors of one size: the mean of their absolute values is known to deviate
    # as a sum of half normals; compare with the chi law for a single one.
    single = sum_law([half_normal_atoms(1.0)], 32_768)
    for reach in (1.0, 3.0, 5.0, 6.5):
        place = round(reach / single.step)
        assert single.at_least(place) == pytest.approx(2 * stats.norm.sf(reach), rel=0.02)
    many = sum_law([half_normal_atoms(1.0)] * 15, 32_768)
    at = many.step * np.arange(many.probability.size)
    mean = at @ many.probability
    assert mean == pytest.approx(15 * np.sqrt(2 / np.pi), rel=1e-4)
    assert (at - mean) ** 2 @ many.probability == pytest.approx(15 * (1 - 2 / np.pi), rel=1e-3)


def test_nothing_to_vary_is_a_law_of_one_value():
    still = Atoms(np.zeros(1), np.ones(1))
    assert sum_law([still, still], 64).at_least(1) == 0
    assert half_normal_atoms(0.0) == still
