"""The bandwidth of smooth ECE: the quick search finds what ten halvings find."""

import numpy as np
import pytest

from calibrant.metrics.inputs import check
from calibrant.metrics.smooth import SmoothGrids
from calibrant.metrics.stats.binning import FINEST_BANDWIDTH, HALVINGS, fixed_point_bandwidth


def by_halving(error):
    high, low = 1.0, 0.0
    for _ in range(HALVINGS):
        middle = (high + low) / 2
        if middle < FINEST_BANDWIDTH or middle < error(middle):
            low = middle
        else:
            high = middle
    return high


def confidences(rng, kind, rows):
    if kind == "spread":
        return rng.beta(*np.exp(rng.uniform(-2, 3, 2)), rows)
    if kind == "few values":
        return rng.choice(rng.random(int(rng.integers(1, 6))), rows)
    return rng.integers(0, 2, rows).astype(float)


@pytest.mark.parametrize("kind", ["spread", "few values", "certain"])
@pytest.mark.parametrize("truth", ["calibrated", "shifted", "waves"])
def test_the_quick_search_finds_what_halving_finds(kind, truth):
    rng = np.random.default_rng(7)
    for _ in range(25):
        rows = int(np.exp(rng.uniform(0, 8)))
        c = confidences(rng, kind, rows)
        chance = {
            "calibrated": c,
            "shifted": np.clip(c + rng.normal(0, 0.4), 0, 1),
            "waves": (np.sin(c * rng.uniform(5, 300)) > 0).astype(float),
        }[truth]
        grids = SmoothGrids(check(c, (rng.random(rows) < chance).astype(float)))
        assert fixed_point_bandwidth(grids.error) == by_halving(grids.error)


@pytest.mark.parametrize("value", [0.0, 0.0011, 0.3, 0.999, 1.0])
def test_a_constant_error_ends_at_the_next_step_above_it(value):
    found = fixed_point_bandwidth(lambda _: value)
    assert found == by_halving(lambda _: value)
    assert 2 / 1024 <= found <= 1


def test_an_error_of_nothing_has_the_finest_bandwidth():
    assert fixed_point_bandwidth(lambda _: 0.0) == 2 / 1024
