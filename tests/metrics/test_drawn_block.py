"""Intervals of rows drawn to be labelled: the noise is that of the draw, not of free rows."""

import numpy as np
import pytest

from calibrant.core.arrays import named_stream
from calibrant.labels.labelling.designs import draw_wave
from calibrant.labels.labelling.pools import LabelDraws, LabelPool, Wave, spread_shares
from calibrant.metrics.blocks.row_block import DrawnBlock, DrawSpread, RowBlock, neighbour_ratio

OPTIONS = {"probability": True, "bins": 15, "level": 0.95, "resamples": 100}


def block(p, y, spread=None, units=None):
    rng = np.random.default_rng(0)
    if spread is None:
        return RowBlock(p, y, None, units, rng=rng, **OPTIONS)
    return DrawnBlock(p, y, None, units, rng=rng, spread=spread, **OPTIONS)


def test_neighbours_that_are_alike_leave_what_is_not_spread():
    pull = np.repeat([-1.0, 1.0], 50)
    line = np.arange(100.0)
    assert neighbour_ratio(pull, DrawSpread(line, np.full(100, 0.9))) == pytest.approx(
        0.1, abs=0.02
    )
    shuffled = np.random.default_rng(0).permutation(line)
    assert neighbour_ratio(pull, DrawSpread(shuffled, np.full(100, 0.9))) == pytest.approx(
        1, abs=0.3
    )


def test_few_or_no_neighbours_count_as_left_to_chance():
    rng = np.random.default_rng(0)
    p, y = rng.random(60), rng.integers(0, 2, 60)
    nowhere = DrawSpread(np.full(60, np.nan), np.full(60, 0.9))
    few = DrawSpread(np.where(np.arange(60) < 15, np.arange(60.0), np.nan), np.full(60, 0.9))
    for spread in (nowhere, few):
        names = ("accuracy", "brier", "ece", "auroc")
        assert block(p, y, spread).estimates(names) == block(p, y).estimates(names)


def judged_pool(rng, items=1200):
    p = rng.uniform(0.3, 1.0, items)
    y = (rng.random(items) < p - 0.05).astype(float)
    judge = np.where(rng.random(items) < 0.9, y, 1 - y)
    return p, y, LabelPool(p, np.full(items, np.nan), judge[:, None])


def spread_draw(rng, back):
    """A draw of 150, spread along a judge, of which the share `back` came back."""
    p, y, pool = judged_pool(rng)
    drawn = draw_wave(pool, 150, rng=rng)
    along, wave = np.full(p.size, np.nan), np.zeros(p.size, dtype=np.intp)
    along[drawn.index], wave[drawn.index] = drawn.along, 1
    taken = drawn.index[: int(back * 150)]
    draws = LabelDraws(
        wave, np.full(p.size, 0.125), (Wave(150, p.size),), (taken.size,), None, along
    )
    return p[taken], y[taken], DrawSpread(along[taken], spread_shares(draws)[taken])


@pytest.mark.parametrize("back", [1.0, 0.6])
def test_the_error_is_that_of_the_draw(back):
    rng = named_stream(0, "drawn", back)
    means, errors, free = [], [], []
    for _ in range(400):
        p, y, spread = spread_draw(rng, back)
        drawn = block(p, y, spread)
        means.append(y.mean())
        errors.append(drawn.mean(y)[1] ** 2)
        free.append(block(p, y).mean(y)[1] ** 2)
    assert np.mean(errors) == pytest.approx(np.var(means), rel=0.25)
    assert np.mean(free) > 1.25 * np.var(means)


def test_a_bound_of_the_error_takes_no_more_noise_off_than_there_is():
    """With a good judge the noise is small, and less of it is taken off the error."""
    rng = named_stream(0, "bound")
    held, widths = 0, {"drawn": 0.0, "free": 0.0}
    for _ in range(150):
        p, y, spread = spread_draw(rng, 1.0)
        for name, found in (("drawn", block(p, y, spread)), ("free", block(p, y))):
            low, high = found.cell_error.interval(0.9)
            held += name == "drawn" and high > 0.05
            widths[name] += high - low
    assert held / 150 > 0.9
    assert widths["drawn"] < 0.9 * widths["free"]


def test_unequal_gaps_add_the_noise_of_their_shares():
    """Some rows are 5 points off, others 40: how many of either there are varies too."""
    rng = named_stream(0, "shares")
    sums, inside, between = [], [], []
    for _ in range(600):
        p = rng.beta(8, 1, 200)
        y = (rng.random(200) < np.where(p > 0.9, p - 0.05, p - 0.4).clip(0)).astype(float)
        found = block(p, y).gaps
        sums.append(np.abs(found.residual).sum())
        inside.append((found.error() ** 2).sum())
        between.append(found.shares_variance)
    whole = np.mean(inside) + np.mean(between)
    assert whole == pytest.approx(np.var(sums), rel=0.1)
    assert np.mean(inside) < 0.9 * whole


def test_equal_gaps_add_none():
    p = np.linspace(0.5, 0.99, 200)
    y = (np.arange(200) % 10 < 7).astype(float)
    spread = DrawSpread(np.arange(200.0), np.ones(200))
    assert block(np.full(200, 0.8), y).gaps.shares_variance == 0
    assert block(p, np.zeros(200)).gaps.shares_variance > 0
    assert block(p, y, spread).gaps.shares_variance == 0


def test_rows_of_one_question_are_one_unit():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(60), 2)
    y = np.repeat(rng.integers(0, 2, 60), 2)
    spread = DrawSpread(np.repeat(np.arange(60.0), 2), np.full(120, 0.9))
    found = block(p, y, spread, units=np.repeat(np.arange(60), 2)).estimates(("accuracy", "ece"))
    assert found["accuracy"].low < y.mean() < found["accuracy"].high
