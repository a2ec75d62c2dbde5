"""Bins: the rule of edges holds exactly, for every dtype."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.metrics import ece, reliability_bins
from calibrant.metrics.stats import binning


def bins_of(values, bins):
    values = np.asarray(values)
    out = np.empty(values.size, np.intp)
    binning.width_index(bins, values.dtype)(values, out, np.empty(values.size))
    return np.minimum(out, bins - 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("value", "expected"), [(k / 10, min(k, 9)) for k in range(11)])
def test_tenths_belong_to_the_upper_bin(dtype, value, expected):
    assert bins_of([dtype(value)], 10) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [*range(1, 41), 50, 64, 99, 100, 128, 250, 1000])
def test_edges_and_their_neighbours_are_placed_exactly(dtype, bins):
    edges = binning.width_edges(bins, dtype)
    inner = edges[1:-1]
    below, above = np.nextafter(inner, dtype(0)), np.nextafter(inner, dtype(1))
    numbers = np.arange(1, bins)
    assert (bins_of(inner, bins) == numbers).all()
    assert (bins_of(below, bins) == numbers - 1).all()
    assert (bins_of(above, bins) == numbers).all()
    assert bins_of([dtype(0), dtype(1)], bins).tolist() == [0, bins - 1]


@given(st.floats(0, 1), st.integers(1, 300))
def test_bins_agree_with_exact_fractions(value, bins):
    exact = min(int(Fraction(value) * bins), bins - 1)
    found = int(bins_of([value], bins)[0])
    # An edge is the double nearest to k/bins; a value on it belongs to bin k although the double
    # may lie just below the fraction.
    if exact + 1 < bins and value == (exact + 1) / bins:
        exact += 1
    if value < exact / bins:
        exact -= 1
    assert found == exact


def test_every_two_digit_decimal_with_a_hundred_bins():
    values = np.array([float(f"0.{k:02d}") for k in range(100)])
    assert bins_of(values, 100).tolist() == list(range(100))
    assert bins_of(values.astype(np.float32), 100).tolist() == list(range(100))


def test_frequencies_fall_on_edges():
    counts = np.arange(21)
    assert bins_of(counts / 20, 10).tolist() == [min(k // 2, 9) for k in counts]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ece_of_decimals_by_hand(dtype):
    confidence = np.array([0.3, 0.3, 0.6, 0.7, 1.0], dtype)
    correct = np.array([0, 1, 1, 0, 1])
    diagram = reliability_bins(confidence, correct, bins=10)
    assert diagram.lower.round(6).tolist() == [0.3, 0.6, 0.7, 0.9]
    assert diagram.n.tolist() == [2, 1, 1, 1]
    assert ece(confidence, correct, bins=10) == pytest.approx((0.4 + 0.4 + 0.7) / 5, abs=1e-7)


def test_pieces_do_not_show():
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(50_001), rng.random(50_001) < 0.5
    bins = np.minimum((confidence * 15).astype(int), 14)
    by_hand = np.abs(np.bincount(bins, confidence - correct, 15)).sum() / 50_001
    assert ece(confidence, correct) == pytest.approx(by_hand, abs=1e-13)
    assert ece(confidence, correct, strategy="mass", bins=1) == pytest.approx(
        abs((confidence - correct).mean()), abs=1e-13
    )


def test_equal_mass_bins_hold_equal_mass_and_never_split_ties():
    rng = np.random.default_rng(1)
    confidence = rng.random(1200)
    edges = binning.mass_edges(confidence, None, 12)
    counts = np.histogram(confidence, edges)[0]
    assert counts.tolist() == [100] * 12
    tied = np.repeat([0.2, 0.5, 0.9], [10, 80, 10])
    edges = binning.mass_edges(tied, None, 4)
    assert set(edges[1:-1]) <= {0.2, 0.5, 0.9}


def test_float32_sums_are_double_precision():
    rng = np.random.default_rng(2)
    confidence = rng.random(200_000).astype(np.float32)
    correct = (rng.random(200_000) < 0.5).astype(np.float32)
    edges = binning.width_edges(15, np.float32).astype(np.float64)
    wide = confidence.astype(np.float64)
    bins = np.minimum(np.searchsorted(edges, wide, side="right") - 1, 14)
    by_hand = np.abs(np.bincount(bins, wide - correct, 15)).sum() / wide.size
    assert ece(confidence, correct) == pytest.approx(by_hand, rel=1e-12)
