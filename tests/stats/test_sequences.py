"""Confidence sequences: validity at all times, and that batches do not matter."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations.planning import sequence_coverage

from calibrant.core import InputError
from calibrant.metrics.stats.multiplicity import CalibrationSequence


def test_time_uniform_coverage_over_10000_peeks():
    for kind, (ece, gaps, interval, target) in sequence_coverage(25).items():
        # 25 runs at a nominal 95 %: fewer than 21 hits has probability 0.03 %
        assert ece >= 21 / 25, kind
        assert gaps >= 21 / 25, kind
        assert interval[0] <= target <= interval[1]
        assert interval[1] - interval[0] < 0.06


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_batches_do_not_change_the_bounds(seed, sizes):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    p = rng.beta(4, 1, n)
    y = rng.random(n) < p - 0.1
    whole, parts = CalibrationSequence(bins=10), CalibrationSequence(bins=10)
    path = whole.update(p, y)
    start = 0
    for size in sizes:
        last = parts.update(p[start : start + size], y[start : start + size])
        start += size
    assert parts.ece == pytest.approx(whole.ece)
    assert np.allclose(parts.gaps(), whole.gaps())
    assert last.high[-1] == pytest.approx(path.high[-1])
    assert parts.to_dict()["count"] == n


def test_a_horizon_makes_the_bounds_tighter_there():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1, 5000)
    y = rng.random(5000) < p - 0.1
    anytime, tuned = CalibrationSequence(), CalibrationSequence(horizon=5000)
    anytime.update(p, y)
    tuned.update(p, y)
    assert tuned.ece[1] - tuned.ece[0] < anytime.ece[1] - anytime.ece[0]


def test_impossible_inputs_are_refused():
    with pytest.raises(InputError):
        CalibrationSequence(alpha=0.0)
    with pytest.raises(InputError):
        CalibrationSequence().update([0.5], [2.0])


def test_a_sequence_goes_on_from_its_saved_state():
    rng = np.random.default_rng(3)
    p = rng.beta(6, 1, 900)
    y = rng.random(900) < p - 0.1
    whole, part = CalibrationSequence(horizon=900), CalibrationSequence(horizon=900)
    whole.update(p, y)
    part.update(p[:400], y[:400])
    again = CalibrationSequence.from_dict(json.loads(json.dumps(part.to_dict())))
    again.update(p[400:], y[400:])
    assert again.count == whole.count == 900
    assert again.ece == pytest.approx(whole.ece, abs=1e-12)
    for there, here in zip(again.gaps(), whole.gaps(), strict=True):
        np.testing.assert_allclose(there, here, atol=1e-12)
