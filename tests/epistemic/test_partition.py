import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.trust.honest_trees import (
    leave_one_out_products,
    partition_loss,
    pool_single_rows,
    regions,
)


@given(st.integers(0, 2**31))
def test_equals_the_mean_of_products_of_different_rows(seed):
    rng = np.random.default_rng(seed)
    region, residual = rng.integers(0, 4, 40), rng.normal(size=40)
    region = pool_single_rows(region, 4)[0]
    expected = 0.0
    for number in np.unique(region):
        mine = residual[region == number]
        if len(mine) > 1:
            pairs = np.outer(mine, mine)
            expected += (pairs.sum() - np.trace(pairs)) / (len(mine) - 1)
    assert partition_loss(region, residual, 5).value == pytest.approx(expected / 40)


def test_unbiased_on_a_fixed_partition_with_calibrated_interval():
    rng = np.random.default_rng(0)
    region = np.repeat(np.arange(40), 12)
    chance = rng.uniform(0.1, 0.9, 40)
    confidence = 0.5
    exact = float(np.mean((chance - confidence) ** 2))
    found = []
    for _ in range(3000):
        residual = (rng.random(480) < chance[region]) - confidence
        found.append(partition_loss(region, residual, 40))
    values = np.array([loss.value for loss in found])
    assert values.mean() == pytest.approx(exact, abs=4 * values.std() / np.sqrt(3000))
    # Given the rows there is no draw of regions, so the stated variance is on the safe side.
    stated = np.mean([loss.variance for loss in found])
    assert values.var() <= stated <= 2 * values.var()
    plugin = np.mean(regions(region, residual, 40).mean ** 2)
    assert plugin - found[-1].value == pytest.approx(0.25 / 12, rel=0.5), "what debiasing takes"


def test_stated_variance_is_right_where_there_is_nothing_to_find():
    rng = np.random.default_rng(1)
    region = np.repeat(np.arange(50), 15)
    found = [partition_loss(region, rng.choice([-0.5, 0.5], 750), 50) for _ in range(3000)]
    values = np.array([loss.value for loss in found])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(3000)
    assert np.mean([loss.variance for loss in found]) == pytest.approx(values.var(), rel=0.15)


def test_interval_covers_when_regions_are_drawn_as_well():
    rng = np.random.default_rng(2)
    chance = rng.uniform(0.2, 0.8, 30)
    exact = float(np.mean((chance - 0.5) ** 2))
    inside = 0
    for _ in range(1000):
        region = rng.integers(0, 30, 600)
        residual = (rng.random(600) < chance[region]) - 0.5
        loss = partition_loss(region, residual, 30)
        inside += abs(loss.value - exact) <= 1.96 * np.sqrt(loss.variance)
    assert 925 <= inside <= 975


def test_rows_alone_in_a_region_are_pooled_and_stay_unbiased():
    loss = partition_loss(np.array([0, 1, 2, 2]), np.array([0.3, 0.5, 0.1, 0.2]), 4)
    assert (loss.regions, loss.empty, loss.pooled) == (2, 1, 2)
    assert loss.value == pytest.approx((2 * 0.3 * 0.5 + 2 * 0.1 * 0.2) / 4)


def test_a_single_row_that_stays_alone_contributes_nothing():
    loss = partition_loss(np.array([0, 1, 1]), np.array([5.0, 0.1, 0.2]), 2)
    assert loss.pooled == 1
    assert loss.value == pytest.approx(2 * 0.1 * 0.2 / 3)


def test_leave_one_out_pull_averages_to_the_loss():
    rng = np.random.default_rng(3)
    region, residual = rng.integers(0, 5, 400), rng.normal(size=400) + 0.2
    assert leave_one_out_products(region, residual, 5).mean() == pytest.approx(
        partition_loss(region, residual, 5).value, rel=0.02
    )
