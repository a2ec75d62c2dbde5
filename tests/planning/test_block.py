"""The verification block of every audit."""

import math

import numpy as np
import polars as pl
import pytest

from calibrant.core import InputError
from calibrant.core.errors import UnavailableError
from calibrant.findings.verification import cell_of
from calibrant.labels import require_labels, verification_block
from calibrant.metrics.stats.binning import width_edges


def world(n, shift, seed=0, low=0.3):
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, 1.0, n)
    return p, (rng.random(n) < np.clip(p - shift, 0, 1)).astype(float)


def test_steepness_is_recovered_and_its_interval_covers():
    # gap = -p / 2: steepness 1/2, from bins at their centres
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=20_000)
        block = verification_block(p, rng.random(p.size) < p / 2)
        wide = block["lipschitz_resolutions"][1]["estimate"]
        hits += wide.low <= 0.5 <= wide.high
    assert hits >= 24


def test_steepness_that_cannot_be_estimated_is_not_made_up():
    block = verification_block(np.full(500, 0.97), np.r_[np.ones(450), np.zeros(50)])
    assert math.isnan(block["lipschitz"].value)
    assert math.isnan(block["passive_floor"].value)
    assert "cannot be estimated" in block["lipschitz_note"]
    assert block["active_floor"].value == pytest.approx(math.sqrt(0.1 / 500))


def test_block_follows_weights_and_units():
    p, y = world(3000, 0.1)
    doubled = verification_block(
        np.repeat(p, 2), np.repeat(y, 2), units=np.repeat(np.arange(3000), 2)
    )
    assert doubled["labels"] == 3000
    weighted = verification_block(p, y, weights=np.where(y > 0, 3.0, 1.0))
    assert weighted["error_rate"].value < verification_block(p, y)["error_rate"].value
    assert weighted["labels"] < 3000


def test_the_same_seed_gives_the_same_block():
    p, y = world(1000, 0.1)
    assert verification_block(p, y, rng=3) == verification_block(p, y, rng=3)


def test_no_errors_still_leaves_room():
    block = verification_block(np.full(100, 0.99), np.ones(100))
    assert block["error_rate"].value == 0.0
    assert 0.0 < block["error_rate"].high < 0.05
    assert block["resolution"]["half_width"] > 0.01


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [([0.5, 1.2], [1, 0]), ([0.5, 0.6], [1, 2]), ([0.5], [1, 0]), ([0.5, 0.6], [1, float("nan")])],
)
def test_bad_rows_are_refused(confidence, correct):
    with pytest.raises(InputError):
        verification_block(confidence, correct)


def test_label_free_input_is_refused_with_reason_and_next_step():
    with pytest.raises(UnavailableError, match="label_next"):
        verification_block([0.5, 0.9], [float("nan")] * 2)
    with pytest.raises(UnavailableError, match="calibration needs a right/wrong column"):
        require_labels(None)


def test_mmlu_models_are_verified_as_miscalibrated(shared_data):
    frame = pl.read_parquet(shared_data / "scores" / "mcq_5_benchmarks_7_models.parquet").filter(
        (pl.col("dataset") == "mmlu") & (pl.col("prompt") == "first"),
        pl.col("correct").is_not_null(),
    )
    for _, part in frame.group_by("model"):
        block = verification_block(part["confidence"].to_numpy(), part["correct"].to_numpy())
        assert block["resolution"]["ece"].value > block["resolution"]["if_calibrated"]
        assert 0.02 < block["passive_floor"].value < 0.08
        assert block["resolution"]["half_width"] < block["passive_floor"].value


def test_cells_follow_the_rule_of_edges():
    """An edge and its neighbours fall where every other metric puts them, 1.0 into the last."""
    edges = width_edges(60)
    below = np.nextafter(edges[1:], 0)
    assert cell_of(edges).tolist() == [*range(60), 59]
    assert cell_of(below).tolist() == list(range(60))
    assert cell_of(np.nextafter(edges[:-1], 1)).tolist() == list(range(60))


@pytest.mark.parametrize("bend", [0.0, 0.1])
def test_the_interval_of_the_steepness_holds_the_true_one(bend):
    """Of a wave and of a calibrated model: the 75th percentile of slopes between the bins."""
    edges = np.linspace(0, 1, 21)
    middle = (edges[1:] + edges[:-1]) / 2
    true = np.quantile(np.abs(np.diff(bend * np.sin(2 * np.pi * middle)) / np.diff(middle)), 0.75)
    held = 0
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        p = rng.random(2000)
        y = rng.random(2000) < p + bend * np.sin(2 * np.pi * p)
        found = verification_block(p, y.astype(float), rng=seed)["lipschitz"]
        held += found.low <= true + 1e-9 <= found.high + 2e-9
    assert held >= 55


@pytest.mark.parametrize("questions", [1, 2, 30])
def test_questions_that_are_all_alike_are_no_certainty(questions):
    """The error rate of one question with a right and a wrong answer was 0.5, from 0.5 to 0.5."""
    units = np.repeat(np.arange(questions), 2)
    found = verification_block(
        np.full(units.size, 0.7), np.tile([1, 0], questions), units=units, rng=0
    )
    rate, error = found["error_rate"], found["resolution"]["ece"]
    assert rate.high - rate.low > 0.5 / questions**0.5
    assert 0 <= error.low <= error.value < error.high <= 1
