"""The bootstrap: by units, seeded, and the short cuts have the naive distribution."""

import numpy as np
import pytest
from scipy import stats

from calibrant import metrics
from calibrant.core import InputError
from calibrant.metrics.stats import bootstrap
from calibrant.metrics.stats.units import unit_codes


def sample(seed=0, n=500, power=1.4, digits=None):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) if digits is None else rng.random(n).round(digits)
    return confidence, (rng.random(n) < confidence**power).astype(int)


@pytest.mark.parametrize(
    ("name", "n", "digits", "options"),
    [
        ("ece", 10_000, None, {}),
        ("ece", 2_000, 1, {"bins": 10}),
        ("ece", 2_000, None, {"norm": "l2"}),
        ("ece", 2_000, None, {"norm": "max"}),
        ("auroc", 3_000, None, {}),
        ("auroc", 3_000, 1, {}),
        ("brier", 3_000, None, {}),
        ("log_loss", 3_000, None, {}),
        ("accuracy", 3_000, None, {}),
        ("smooth_ece", 800, None, {}),
    ],
)
def test_short_cuts_have_the_distribution_of_resampled_rows(name, n, digits, options):
    confidence, correct = sample(1, n, digits=digits)
    if name == "log_loss":
        confidence = np.clip(confidence, 0.01, 0.99)
    args = (name, confidence, correct)
    draws = 500 if name == "smooth_ece" else 1000
    fast = metrics.bootstrap_distribution(*args, resamples=draws, rng=1, **options)
    slow = metrics.bootstrap_distribution(*args, resamples=draws, rng=2, fast=False, **options)
    assert stats.ks_2samp(fast, slow).pvalue > 0.005
    assert fast.std() == pytest.approx(slow.std(), rel=0.12)


def test_confidences_vary_inside_a_cell():
    """With a single bin the error is |mean residual|, whose spread is known."""
    rng = np.random.default_rng(20)
    confidence = rng.random(5_000)
    correct = rng.random(5_000) < 0.1
    draws = metrics.bootstrap_distribution("ece", confidence, correct, bins=1, resamples=4000)
    expected = (confidence - correct).std() / np.sqrt(5_000)
    assert draws.std() == pytest.approx(expected, rel=0.05)
    assert draws.mean() == pytest.approx(abs((confidence - correct).mean()), abs=expected / 10)


def test_the_bootstrap_of_ece_is_biased_upwards():
    """At n = 200 replicates average far above the value, so percentiles cannot be right."""
    confidence, correct = sample(2, 200, power=1.0)
    draws = metrics.bootstrap_distribution("ece", confidence, correct, resamples=500)
    assert draws.mean() > metrics.ece(confidence, correct) + 0.01


@pytest.mark.parametrize("kind", ["percentile", "basic"])
@pytest.mark.parametrize("units", [None, "five rows each"])
def test_intervals_are_seeded_and_hold_the_value(kind, units):
    confidence, correct = sample(3, 200)
    given = None if units is None else np.arange(200) // 5
    options = {"kind": kind, "units": given, "resamples": 200, "rng": 4}
    first = metrics.bootstrap_interval("auroc", confidence, correct, **options)
    again = metrics.bootstrap_interval("auroc", confidence, correct, **options)
    assert first == again
    assert first.low < first.value < first.high
    assert first.n == (200 if units is None else 40)


def test_units_are_drawn_whole():
    units = unit_codes(["a", "b", "a", "c", "b", "a"], 6)
    for rows in bootstrap.resampled_rows(units, 50, np.random.default_rng(0)):
        counts = np.bincount(rows, minlength=6)
        assert counts[0] == counts[2] == counts[5]
        assert counts[1] == counts[4]
        assert counts[0] + counts[1] + counts[3] == 3


@pytest.mark.parametrize("name", ["brier", "auroc", "log_loss", "aurc", "e_aurc", "auprc"])
def test_paired_gaps_agree_with_the_paired_bootstrap(name):
    rng = np.random.default_rng(8)
    truth = rng.random(400)
    correct = rng.random(400) < truth
    first = np.clip(truth + 0.05 * rng.standard_normal(400), 0.02, 0.98)
    second = np.clip(truth + 0.15 * rng.standard_normal(400), 0.02, 0.98)
    args = (first, correct, second, correct)
    gap = metrics.paired_gap(name, *args)
    plain = getattr(metrics, name)
    slow = metrics.paired_gap(lambda c, y, weights: plain(c, y, weights=weights), *args,
                              resamples=400)  # fmt: skip
    assert gap.value == pytest.approx(plain(first, correct) - plain(second, correct))
    assert gap.high - gap.low == pytest.approx(slow.high - slow.low, rel=0.2)


def test_pairing_makes_the_interval_shorter():
    confidence, correct = sample(9, 400)
    other = np.clip(confidence + 0.02, 0, 1)
    gap = metrics.paired_gap("brier", confidence, correct, other, correct)
    alone = metrics.metric_estimates(confidence, correct, names=("brier",))["brier"]
    assert gap.high - gap.low < (alone.high - alone.low) / 3


def test_paired_ece_is_seeded_and_antisymmetric():
    confidence, correct = sample(10, 200)
    other = confidence**2
    args = (confidence, correct, other, correct)
    gap = metrics.paired_gap("ece", *args, resamples=100, rng=3)
    back = metrics.paired_gap("ece", *args[2:], *args[:2], resamples=100, rng=3)
    assert gap == metrics.paired_gap("ece", *args, resamples=100, rng=3)
    assert gap.value == pytest.approx(-back.value)
    assert gap.low == pytest.approx(-back.high)


def test_models_on_different_rows_are_refused():
    with pytest.raises(InputError, match="same rows"):
        metrics.paired_gap("brier", [0.5], [1], [0.5, 0.6], [1, 0])
    with pytest.raises(InputError, match="did you mean 'auroc'"):
        metrics.bootstrap_interval("aurok", [0.5, 0.6], [1, 0])
    with pytest.raises(InputError, match="at least 20"):
        metrics.bootstrap_distribution("ece", [0.5, 0.6], [1, 0], resamples=3)
