"""Floors against the published tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import InputError
from calibrant.metrics.stats.floors import (
    accuracy_floor,
    active_floor,
    active_gain,
    detection_labels,
    detection_limit,
    labels_needed,
    le_cam_constant,
    optimal_bins,
    passive_floor,
    precision_reached,
)

TABLE_1 = [
    ("MMLU (per-subject)", 250, 0.15, 0.0843),
    ("MMLU (full)", 14_042, 0.15, 0.0220),
    ("TruthfulQA", 817, 0.40, 0.0788),
    ("BBQ (per-category)", 500, 0.30, 0.0843),
    ("ToxiGen", 940, 0.25, 0.0643),
    ("HumanEval", 164, 0.30, 0.1223),
    ("SWE-bench Verified", 500, 0.70, 0.1119),
    ("GPQA Diamond", 198, 0.50, 0.1362),
    ("WinoGender", 720, 0.10, 0.0518),
    ("GSM8K", 1319, 0.08, 0.0393),
    ("ARC-Challenge", 1172, 0.10, 0.0440),
]


@pytest.mark.parametrize(("name", "n", "eps", "floor"), TABLE_1)
def test_table_1_verification_floors(name, n, eps, floor):
    assert round(passive_floor(error_rate=eps, labels=n, lipschitz=1.0), 4) == floor


TABLE_8 = [
    (0.01, 0.3780, 15, 10_000),
    (0.02, 0.3638, 27, 20_000),
    (0.05, 0.3474, 61, 50_000),
    (0.10, 0.3326, 111, 100_000),
    (0.15, 0.3206, 155, 150_000),
    (0.20, 0.3093, 192, 200_000),
    (0.25, 0.2982, 223, 250_000),
    (0.30, 0.2873, 248, 300_000),
    (0.35, 0.2759, 267, 350_000),
]


@pytest.mark.parametrize(("eps", "constant", "detect", "estimate"), TABLE_8)
def test_table_8_le_cam_constants(eps, constant, detect, estimate):
    assert round(le_cam_constant(eps), 4) == constant
    assert detection_labels(0.01, error_rate=eps) == detect
    assert labels_needed(0.01, error_rate=eps) == estimate


TABLE_2 = [
    # accuracy floors; the error rate is that of the better model of the pair
    ("GPQA Diamond", 198, 0.465, 0.0709),
    ("MMLU", 14_042, 0.147, 0.0060),
]


@pytest.mark.parametrize(("name", "n", "eps", "floor"), TABLE_2)
def test_table_2_accuracy_floors(name, n, eps, floor):
    assert round(accuracy_floor(error_rate=eps, labels=n), 4) == floor


TABLE_5 = [(14_042, 0.165, 2.45, 0.031), (14_042, 0.273, 2.01, 0.034), (14_042, 0.160, 1.41, 0.025)]


@pytest.mark.parametrize(("n", "eps", "lipschitz", "floor"), TABLE_5)
def test_table_5_floors_with_measured_steepness(n, eps, lipschitz, floor):
    assert round(passive_floor(error_rate=eps, labels=n, lipschitz=lipschitz), 3) == floor


def test_prose_that_disagrees_with_its_own_formula():
    # The prose says 'about 5 times' and 'about 0.028'; the formula wins.
    assert round(active_gain(error_rate=0.16, labels=10_000, lipschitz=2.5), 1) == 8.5
    assert round(passive_floor(error_rate=0.16, labels=14_042, lipschitz=1.4), 4) == 0.0252


def test_le_cam_constant_tends_to_the_normal_limit():
    # max of u (1 - Phi(u)) is 0.17, so the limit is 0.34 sqrt(1 - eps)
    limit = 0.33996 * math.sqrt(0.9)
    assert le_cam_constant(0.1, labels=10_000_000) == pytest.approx(limit, rel=2e-3)
    assert detection_limit(error_rate=0.1, labels=1000) == pytest.approx(0.3326 * 0.01, rel=1e-3)


rates = st.floats(0.001, 0.999)
sizes = st.integers(1, 10**9)
steep = st.floats(0.01, 100)


@given(rates, sizes, steep)
def test_optimal_bins_balance_bias_and_noise(eps, m, lipschitz):
    exact = (lipschitz**2 * m / eps) ** (1 / 3)
    assert optimal_bins(error_rate=eps, labels=m, lipschitz=lipschitz) == max(
        1, math.floor(exact * (1 + 1e-12))
    )
    floor = passive_floor(error_rate=eps, labels=m, lipschitz=lipschitz)
    assert lipschitz / exact == pytest.approx(floor)
    assert math.sqrt(eps * exact / m) == pytest.approx(floor)


@given(rates, st.floats(1e-4, 0.5), steep, st.booleans())
def test_labels_and_precision_are_inverse(eps, d, lipschitz, active):
    labels = labels_needed(d, error_rate=eps, lipschitz=lipschitz, active=active)
    reached = precision_reached(labels, error_rate=eps, lipschitz=lipschitz, active=active)
    assert reached <= d * (1 + 1e-9)
    if labels > 1:
        less = precision_reached(labels - 1, error_rate=eps, lipschitz=lipschitz, active=active)
        assert less > d * (1 - 1e-6)


@given(rates, sizes, steep)
def test_gain_is_the_ratio_of_the_floors(eps, m, lipschitz):
    ratio = passive_floor(error_rate=eps, labels=m, lipschitz=lipschitz) / active_floor(
        error_rate=eps, labels=m
    )
    assert active_gain(error_rate=eps, labels=m, lipschitz=lipschitz) == pytest.approx(ratio)


@pytest.mark.parametrize(
    "call",
    [
        lambda: passive_floor(error_rate=1.5, labels=10, lipschitz=1),
        lambda: passive_floor(error_rate=0.5, labels=0, lipschitz=1),
        lambda: passive_floor(error_rate=0.5, labels=10, lipschitz=-1),
        lambda: labels_needed(0.0, error_rate=0.5),
        lambda: labels_needed(0.1, error_rate=0.5, lipschitz=math.inf),
        lambda: le_cam_constant(0.0),
        lambda: active_floor(error_rate=float("nan"), labels=10),
    ],
)
def test_impossible_inputs_are_refused(call):
    with pytest.raises(InputError):
        call()
