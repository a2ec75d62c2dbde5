"""Means over splits: ends keep to what is possible, and cover."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.trust.deferral.mixing import SplitMeans


def split_means(outcome, rng, splits=20):
    """Mean of the test half of each of many random splits."""
    half = outcome.size // 2
    return np.array([outcome[rng.permutation(outcome.size)[:half]].mean() for _ in range(splits)])


@pytest.mark.parametrize(("queries", "rate"), [(40, 0.05), (40, 0.5), (200, 0.02), (200, 0.7)])
def test_the_interval_of_an_accuracy_covers_and_stays_in_range(queries, rate):
    rng = np.random.default_rng(0)
    means = SplitMeans(queries // 2, 0.5)
    inside = 0
    for _ in range(300):
        outcome = (rng.random(queries) < rate).astype(float)
        found = means.share(split_means(outcome, rng))
        assert 0 <= found.low <= found.value <= found.high <= 1
        inside += found.low <= rate <= found.high
    assert inside / 300 > 0.92


@pytest.mark.parametrize("asked", [0.02, 0.5, 0.97])
def test_the_interval_of_a_cost_covers_and_stays_between_the_paths(asked):
    """The cheap model costs 0.2 and is always asked; a share of the queries goes on for 1."""
    rng = np.random.default_rng(1)
    means, inside = SplitMeans(30, 0.5), 0
    least, most = np.full(20, 0.2), np.full(20, 1.2)
    for _ in range(300):
        further = (rng.random(60) < asked).astype(float)
        found = means.between(0.2 + split_means(further, rng), least, most)
        assert 0.2 - 1e-12 <= found.low <= found.value <= found.high <= 1.2 + 1e-12
        inside += found.low <= 0.2 + asked <= found.high
    assert inside / 300 > 0.92


def test_splits_that_all_agree_do_not_make_a_rate_certain():
    found = SplitMeans(10, 0.5).share(np.zeros(20))
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0.1 < found.high < 0.3


def test_what_is_not_defined_has_no_interval():
    means = SplitMeans(10, 0.5)
    for found in (means.share([np.nan]), means.plain([0.3]), means.between([], [], [])):
        assert np.isnan([found.low, found.high]).all()
    assert means.positive([0.0, 0.0]).high == 0.0


def test_no_estimate_of_a_small_cascade_leaves_its_range():
    """Few questions, models that are mostly wrong: t intervals go below 0 here."""
    rng = np.random.default_rng(3)
    n, parts = 60, []
    for name, price, skill in (("small", 0.2, 0.05), ("large", 1.0, 0.12)):
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": [name] * n,
                    "topic": np.arange(n) % 3,
                    "confidence": rng.random(n),
                    "correct": np.append([1, 0, 1], rng.random(n - 3) < skill).astype(int),
                    "cost": price,
                }
            )
        )
    frame = pl.concat(parts)
    result = cal.cascade(
        frame,
        models=["small", "large"],
        features=["topic"],
        cost="cost",
        random_splits=6,
        min_samples_leaf=3,
        strategies=("confidence", "router"),
        seed=1,
    )
    entry = result["results"][0]
    for strategy in entry["strategies"]:
        low, high = (0.2, 1.0) if strategy["name"].startswith("router") else (0.2, 1.2)
        for point in [*strategy["points"].values(), *strategy["curve"]]:
            accuracy, cost = point["accuracy"], point["relative_cost"]
            if accuracy["low"] is not None:
                assert 0 <= accuracy["low"] <= accuracy["high"] <= 1
                assert low - 1e-9 <= cost["low"] <= cost["high"] <= high + 1e-9
        assert 0 <= strategy["area"]["low"] <= strategy["area"]["high"] <= 1
    for alone in entry["models"]:
        assert 0 <= alone["accuracy"]["low"] <= alone["accuracy"]["high"] <= 1
