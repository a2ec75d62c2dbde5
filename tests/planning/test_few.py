"""What models with few rows resolve: many together as one alone, and as a plain loop finds it."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.findings.verification.cells import (
    CELLS,
    ECE_BINS,
    NULL_DRAWS,
    Spread,
    cell_of,
    spreads_of_few,
)
from calibrant.labels import verification_block
from calibrant.metrics.stats.common_draws import CommonDraws

RESAMPLES = 150


def models(count: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    p = rng.uniform(0.0, 1.0, (count, rows)).round(2)
    p[:, 0] = 1.0
    return p, (rng.random(p.shape) < p).astype(float)


def ece(p: np.ndarray, y: np.ndarray) -> float:
    place = np.minimum(np.floor(p * ECE_BINS + 1e-9).astype(int), ECE_BINS - 1)
    return sum(abs((y - p)[place == one].sum()) for one in range(ECE_BINS)) / p.size


def by_loop(p: np.ndarray, y: np.ndarray, stream: CommonDraws) -> Spread:
    """The same numbers, one resample and one bin after the other."""
    cell = cell_of(p)
    # A resample keeps the mean confidence of a cell.
    held = np.array([p[cell == own].mean() for own in cell])
    order = np.lexsort((cell, y == 0))
    drawn = stream.resampled(p.size, RESAMPLES)
    shown = np.array([ece_of(cell[order][one], held[order][one], y[order][one]) for one in drawn])
    value = ece(p, y)
    low, high = np.quantile(shown - 2 * (shown.mean() - value), (0.025, 0.975))
    sums = np.bincount(cell // (CELLS // ECE_BINS), p * (1 - p), ECE_BINS)
    sums = sums[sums > 0]
    null = np.abs(stream.poisson(sums, (NULL_DRAWS, sums.size)) - sums).sum(axis=1) / p.size
    return Spread(value, low, high, np.quantile(null, 0.95))


def ece_of(cell: np.ndarray, held: np.ndarray, y: np.ndarray) -> float:
    place = cell // (CELLS // ECE_BINS)
    return sum(abs((y - held)[place == one].sum()) for one in range(ECE_BINS)) / y.size


@pytest.mark.parametrize("rows", [1, 2, 7, 20, 30])
def test_many_together_are_as_a_plain_loop_finds_them(rows: int) -> None:
    p, y = models(20, rows)
    stream = CommonDraws(3)
    together = spreads_of_few(p, y, RESAMPLES, stream)
    for number, found in enumerate(together):
        assert found == pytest.approx(by_loop(p[number], y[number], stream), abs=1e-12)
        assert found == spreads_of_few(p[[number]], y[[number]], RESAMPLES, stream)[0]


def test_a_block_of_few_rows_tells_what_was_found() -> None:
    p, y = models(1, 20)
    (spread,) = spreads_of_few(p, y, RESAMPLES, CommonDraws(0))
    resolution = verification_block(p[0], y[0], rng=CommonDraws(0))["resolution"]
    assert resolution["ece"].value == spread.ece
    assert resolution["half_width"] == (spread.high - spread.low) / 2
    assert resolution["if_calibrated"] == spread.if_calibrated
