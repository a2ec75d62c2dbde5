"""Blocks of few rows that are worked on together: each gets what it would find by itself."""

import numpy as np
import pytest

from calibrant.metrics.blocks.precompute_small import work_ahead
from calibrant.metrics.blocks.row_block import RowBlock
from calibrant.metrics.stats.common_draws import CommonDraws

SHARED = CommonDraws(0)
POINTS = 100


def made(seed, rows, kind="fine", weights=None, units=None, dtype=float):
    rng = np.random.default_rng(seed)
    confidence = {
        "fine": rng.random(rows),
        "round": rng.uniform(0.3, 1, rows).round(2),
        "ends": rng.choice([0.0, 0.01, 0.99, 1.0], rows),
        "tied": np.full(rows, 0.8),
        "spread": (np.arange(rows) // 2 + 0.5) / 15,
    }[kind].astype(dtype)
    correct = (rng.random(rows) < confidence ** rng.choice([0.3, 1.0, 3.0])).astype(float)
    if seed % 7 == 0:
        correct[:] = 1.0
    if seed % 11 == 5:
        correct[0] = 0.25
    return RowBlock(
        confidence,
        correct,
        weights,
        units,
        probability=True,
        bins=15,
        level=0.95,
        resamples=200,
        rng=SHARED,
    )


def several():
    """Return blocks of many kinds, as one table may hold them."""
    rng = np.random.default_rng(0)
    blocks = [made(seed, 20, "round") for seed in range(12)]
    blocks += [made(100 + seed, int(rng.integers(2, 31))) for seed in range(8)]
    blocks += [made(200 + seed, 12, "ends") for seed in range(4)]
    blocks += [made(300, 15, "tied"), made(301, 9, "tied"), made(303, 1)]
    # Too many combinations to list: a law by transforms.
    blocks += [made(350, 30, "spread"), made(351, 30, "spread")]
    blocks += [made(400, 20, "round", dtype=np.float32), made(401, 18, dtype=np.float32)]
    blocks += [made(500, 20, weights=rng.lognormal(size=20)), made(501, 8, weights=np.arange(8.0))]
    blocks += [made(600, 20, units=np.arange(20) // 2), made(601, 30, units=np.arange(30) // 3)]
    return blocks


def told(block):
    found = block.estimates(), block.diagram()
    tests = block.calibration_test if block.independent else None
    return *found, block.reliability_curve(POINTS, SHARED).to_dict(), tests, block.undefined


@pytest.mark.filterwarnings("ignore::calibrant.core.errors.UndefinedMetricWarning")
def test_every_block_gets_what_it_would_find_alone():
    alone = [told(block) for block in several()]
    blocks = several()
    work_ahead(blocks, [SHARED] * len(blocks))
    assert "calibration_test" in vars(blocks[0])
    assert blocks[0].band is not None
    assert blocks[1].ranking_ahead
    for number, (block, expected) in enumerate(zip(blocks, alone, strict=True)):
        # As text: undefined numbers are equal to each other, and no digit may differ.
        assert repr(told(block)) == repr(expected), number


def test_a_block_alone_and_other_streams_are_left_as_they_are():
    one, other = made(1, 20), made(2, 20)
    work_ahead([one], [SHARED])
    work_ahead([one, other], [np.random.default_rng(0), SHARED])
    assert "calibration_test" not in vars(one)
    assert other.band is None
