"""What perfect calibration would show, and the pieces of reliability diagrams."""

import numpy as np
import pytest
from scipy import stats

from calibrant import metrics
from calibrant.core import InputError
from calibrant.metrics.stats.intervals import wilson_interval


def test_p_values_are_uniform_under_perfect_calibration():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(150):
        confidence = rng.random(150)
        correct = rng.random(150) < confidence
        test = metrics.calibration_test(confidence, correct)
        found.append(test.p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_one_confidence_gives_the_binomial_p_value_however_small():
    for right in (70, 62, 55, 45, 42):
        test = metrics.calibration_test(np.full(100, 0.7), np.arange(100) < right)
        away = abs(70 - right)
        expected = stats.binom.cdf(70 - away, 100, 0.7) + stats.binom.sf(69 + away, 100, 0.7)
        assert test.p_value == pytest.approx(min(expected, 1.0) if away else 1.0, rel=1e-3)
        assert test.simulations == 0
    hopeless = metrics.calibration_test(np.full(1000, 0.99), np.zeros(1000))
    assert hopeless.p_value == 1e-10
    assert hopeless.p_low == 0


def test_equal_errors_count_as_reached_whatever_bins_they_come_from():
    # Two bins of five rows each; all 36 outcomes can be listed, and many of them tie.
    confidence, weight = np.repeat([0.25, 0.75], 5), stats.binom.pmf(np.arange(6), 5, 0.25)
    values, chances = [], []
    for low, high in np.ndindex(6, 6):
        outcome = np.concatenate([np.arange(5) < low, np.arange(5) < high])
        values.append(metrics.ece(confidence, outcome, bins=2))
        chances.append(weight[low] * weight[5 - high])
    values, chances = np.array(values), np.array(chances)
    for low, high in ((1, 4), (3, 4), (1, 2), (5, 5)):
        outcome = np.concatenate([np.arange(5) < low, np.arange(5) < high])
        test = metrics.calibration_test(confidence, outcome, bins=2)
        expected = chances[values >= values[6 * low + high] - 1e-12].sum()
        assert test.p_value == pytest.approx(expected, rel=1e-9)
        assert test.expected == pytest.approx(values @ chances, rel=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [15, 200])
def test_the_expected_error_of_a_perfect_model_is_what_simulated_rows_show(weighted, bins):
    rng = np.random.default_rng(1)
    confidence = rng.beta(3, 1, 300)
    options = {"bins": bins, "weights": rng.random(300) + 0.5 if weighted else None}
    test = metrics.calibration_test(confidence, confidence > 2, **options)
    rows = [metrics.ece(confidence, rng.random(300) < confidence, **options) for _ in range(600)]
    # Errors of weighted rows count as normal, which few rows of a bin are not.
    rounded = 0.01 * np.mean(rows) if weighted and bins == 15 else 0.12 * np.mean(rows) * weighted
    assert test.expected == pytest.approx(np.mean(rows), abs=4 * np.std(rows) / 20 + rounded)
    assert test.high == pytest.approx(np.quantile(rows, 0.95), rel=0.05 + 0.1 * weighted)
    zeros = metrics.ece(confidence, np.zeros(300), **options)
    assert test.statistic == pytest.approx(zeros, abs=1e-12)
    assert test.p_low <= test.p_value == test.p_high < 1e-6


def test_counts_of_the_test_are_rows():
    confidence, correct = np.linspace(0.05, 0.95, 40), np.arange(40) % 2
    twice = metrics.calibration_test(confidence, correct, weights=np.full(40, 2.0), counted=True)
    copied = metrics.calibration_test(np.repeat(confidence, 2), np.repeat(correct, 2))
    assert twice.statistic == pytest.approx(copied.statistic)
    assert twice.expected == pytest.approx(copied.expected, rel=0.05)
    once = metrics.calibration_test(confidence, correct, weights=np.full(40, 2.0))
    assert once == metrics.calibration_test(confidence, correct)


def test_spiegelhalter_is_standard_normal_under_perfect_calibration():
    rng = np.random.default_rng(2)
    confidence = rng.random((400, 200))
    found = [metrics.spiegelhalter_z(c, rng.random(200) < c) for c in confidence]
    assert stats.kstest(found, "norm").pvalue > 0.01


def test_options_are_checked():
    with pytest.raises(InputError, match="strategy is one of"):
        metrics.ece([0.5], [1], strategy="sweep")
    with pytest.raises(InputError, match="bins is a whole number"):
        metrics.ece([0.5], [1], bins=0)
    with pytest.raises(InputError, match="norm is one of"):
        metrics.ece([0.5], [1], norm="l3")
    with pytest.raises(InputError, match="level is between"):
        metrics.metric_estimates([0.5], [1], level=95)


def test_reliability_bins_tell_rows_rates_and_intervals():
    confidence = np.repeat([0.25, 0.85], [40, 60])
    correct = np.concatenate([np.arange(40) < 10, np.arange(60) < 30])
    diagram = metrics.reliability_bins(confidence, correct, bins=10)
    assert diagram.n.tolist() == [40, 60]
    assert diagram.rate.tolist() == [0.25, 0.5]
    low, high = wilson_interval(np.array([0.25, 0.5]), np.array([40, 60]))
    assert diagram.low == pytest.approx(low)
    assert diagram.high == pytest.approx(high)
    assert (diagram.band_low < diagram.confidence).all()
    assert diagram.rate[1] < diagram.band_low[1]
    rows = diagram.to_dict()
    assert rows[0]["n"] == 40
    assert set(rows[0]) >= {"lower", "upper", "confidence", "rate", "low", "high", "mass"}


def test_wilson_equals_scipy():
    for hits in (0, 3, 20):
        expected = stats.binomtest(hits, 20).proportion_ci(method="wilson")
        low, high = wilson_interval(hits / 20, 20)
        assert (float(low), float(high)) == pytest.approx((expected.low, expected.high))


def test_the_reliability_curve_rises_is_bounded_and_has_a_band():
    rng = np.random.default_rng(3)
    confidence = rng.random(5000)
    correct = rng.random(5000) < confidence**2
    curve = metrics.reliability_curve(confidence, correct, points=50)
    assert curve.confidence.size == 50
    assert (np.diff(curve.rate) >= 0).all()
    assert (curve.band_low <= curve.band_high).all()
    assert curve.weight.sum() == pytest.approx(1)
    calibrated = metrics.reliability_curve(confidence, rng.random(5000) < confidence)
    inside = (calibrated.band_low <= calibrated.rate) & (calibrated.rate <= calibrated.band_high)
    assert inside.mean() > 0.8
    outside = (curve.rate < curve.band_low) | (curve.rate > curve.band_high)
    assert outside.mean() > 0.5
