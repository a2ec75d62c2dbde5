"""Repeated rows are found where no id tells, and rows that are not repeated are left alone."""

import numpy as np
import polars as pl
import pytest

from calibrant.data import load_scores
from calibrant.metrics.stats.repeats import find_repeats

WORLDS = {
    "ten values": lambda rng, n: rng.choice(
        [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1], n
    ),
    "two decimals": lambda rng, n: rng.uniform(0.3, 1, n).round(2),
    "four decimals": lambda rng, n: rng.uniform(0.3, 1, n).round(4),
    "continuous": lambda rng, n: rng.uniform(0.3, 1, n),
    "mostly certain": lambda rng, n: np.minimum(rng.beta(9, 1, n) * 1.05, 1.0).round(3),
    "shares of 7": lambda rng, n: rng.integers(0, 8, n) / 7,
    "half precision": lambda rng, n: rng.beta(3, 1, n).astype(np.float16).astype(float),
    "few tokens": lambda rng, n: np.exp(-rng.exponential(0.2, n)).astype(np.float32),
}


def rows(world, n, rng):
    said = WORLDS[world](rng, n)
    return said, (rng.random(n) < 0.95 * said + 0.02).astype(float)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [150, 600])
def test_rows_that_stand_there_once_are_left_alone(world, size):
    rng = np.random.default_rng(0)
    assert not any(find_repeats(*rows(world, size, rng)) for _ in range(200))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("order", ["in turn", "again", "shuffled"])
def test_rows_that_stand_there_several_times_are_counted_once(world, times, order):
    rng = np.random.default_rng(1)
    for _ in range(20):
        said, right = rows(world, 200, rng)
        place = np.repeat(np.arange(200), times)
        if order == "again":
            place = np.tile(np.arange(200), times)
        if order == "shuffled":
            place = rng.permutation(place)
        found = find_repeats(said[place], right[place])
        assert found is not None
        # Some may stand there twice by themselves.
        assert found.times % times == 0
        assert (~found.again).sum() in (200, 200 * times // found.times)


def test_some_rows_twice_are_found_by_their_decimals():
    rng = np.random.default_rng(2)
    said, right = rows("continuous", 500, rng)
    place = np.r_[np.arange(500), rng.choice(500, 100, replace=False)]
    found = find_repeats(said[place], right[place])
    assert found.again.sum() == 100
    assert not found.again[:500].any()


def test_a_sorted_table_is_not_repeated():
    rng = np.random.default_rng(3)
    said, right = rows("ten values", 600, rng)
    order = np.lexsort((right, said))
    assert find_repeats(said[order], right[order]) is None


@pytest.mark.parametrize("times", [1, 2])
def test_of_a_large_table_a_few_rows_are_looked_up_first(times):
    rng = np.random.default_rng(3)
    said = rng.random(60_000)
    once = pl.DataFrame({"confidence": said, "correct": (rng.random(60_000) < said).astype(int)})
    # Of the small model every row stands there twice, of the large one none.
    large = pl.DataFrame({"confidence": rng.random(90_000), "correct": [0, 1] * 45_000})
    table = pl.concat([once.with_columns(model=pl.lit("small"))] * times)
    table = pl.concat([large.with_columns(model=pl.lit("large")), table])
    assert load_scores(table).dropped == ({} if times == 1 else {"repeated_row": 60_000})
