"""What every interval must satisfy whatever the data: few rows, ties, constants, certainty."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import metrics
from calibrant.core import UndefinedMetricWarning
from calibrant.metrics.intervals.smooth import _meeting

SIMULATED = frozenset(
    {
        "ece", "ece_debiased", "smooth_ece", "over_confidence", "under_confidence", "mcb", "dsc",
    }
)  # fmt: skip
CLOSED = [name for name in metrics.audited() if name not in SIMULATED]


def confidences(kind, n, rng):
    """Return confidences as they come: continuous, rounded, few values, one value, very high."""
    return {
        "continuous": lambda: rng.random(n),
        "tenths": lambda: rng.random(n).round(1),
        "said": lambda: rng.choice([0.0, 0.5, 0.8, 0.9, 1.0], n),
        "constant": lambda: np.full(n, rng.choice([0.0, 0.5, 0.9, 1.0])),
        "high": lambda: rng.beta(20, 1, n),
    }[kind]()


@st.composite
def blocks(draw):
    """Return confidences and outcomes of 2 to 300 rows."""
    n = draw(st.one_of(st.integers(2, 12), st.integers(13, 300)))
    kind = draw(st.sampled_from(["continuous", "tenths", "said", "constant", "high"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    confidence = confidences(kind, n, rng)
    rate = draw(st.sampled_from(["calibrated", 0.0, 0.02, 0.5, 0.98, 1.0]))
    correct = rng.random(n) < (confidence if rate == "calibrated" else rate)
    return confidence, correct.astype(float)


def estimates(confidence, correct, *, resamples=60, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return metrics.metric_estimates(confidence, correct, resamples=resamples, **options)


def numbers(estimate):
    return [estimate.value, estimate.low, estimate.high]


def assert_equal(a, b, names, **tolerance):
    for name in names:
        np.testing.assert_allclose(
            numbers(a[name]), numbers(b[name]), err_msg=name, **({"atol": 1e-9} | tolerance)
        )


@given(blocks())
@settings(max_examples=60, deadline=None)
def test_an_interval_holds_its_value_and_is_never_of_no_width(block):
    found = estimates(*block)
    for name, estimate in found.items():
        if np.isnan(estimate.value):
            continue
        assert estimate.low <= estimate.value <= estimate.high, name
        if np.isfinite(estimate.value):
            assert estimate.high - estimate.low > 1e-6, name


@given(blocks())
@settings(max_examples=25, deadline=None)
def test_a_higher_level_never_has_the_shorter_interval(block):
    before = estimates(*block, level=0.5)
    for level in (0.8, 0.9, 0.95, 0.99):
        now = estimates(*block, level=level)
        for name, estimate in now.items():
            if not np.isnan(estimate.value):
                # Ends of smooth ECE lie on a line between two bandwidths, which are so far apart.
                near = 1 / 1024 if name == "smooth_ece" else 1e-9
                assert estimate.low <= before[name].low + near, (name, level)
                assert estimate.high >= before[name].high - near, (name, level)
        before = now


@given(blocks(), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_changes_nothing(block, seed):
    order = np.random.default_rng(seed).permutation(block[0].size)
    shuffled = estimates(block[0][order], block[1][order])
    assert_equal(estimates(*block), shuffled, metrics.audited(), rtol=1e-7)


@given(blocks(), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_names_of_units_change_nothing(block, seed):
    confidence, correct = block
    n = confidence.size
    units = np.random.default_rng(seed).integers(0, max(n // 2, 1), n)
    # Numbers are coded in rising order, words in the order of appearance.
    words = np.array([f"question {(unit * 7919) % 1009}" for unit in units])
    by_number = estimates(confidence, correct, units=units)
    by_word = estimates(confidence, correct, units=words)
    assert_equal(by_number, by_word, metrics.audited(), rtol=1e-7)


@given(blocks())
@settings(max_examples=30, deadline=None)
def test_two_copies_of_half_the_weight_are_one_row(block):
    confidence, correct = block
    n = confidence.size
    halves = estimates(
        np.tile(confidence, 2),
        np.tile(correct, 2),
        weights=np.full(2 * n, 0.5),
        units=np.tile(np.arange(n), 2),
        # With 60, one or two draws decide an end.
        resamples=400,
    )
    once = estimates(confidence, correct, resamples=400)
    assert_equal(once, halves, CLOSED, rtol=1e-7)
    for name in SIMULATED - {"ece_debiased"}:
        assert halves[name].value == pytest.approx(once[name].value, abs=1e-9), name
    if n < 30 or min(correct.sum(), n - correct.sum()) < 5:
        # With two errors the sampled covariance of most bins is 0; a model's is not.
        return
    # Units bring their sampled covariance into the simulation, rows the one of a model.
    for name in SIMULATED:
        reach = 0.35 * (once[name].high - once[name].low) + 0.01
        assert numbers(halves[name]) == pytest.approx(numbers(once[name]), abs=reach), name


@given(blocks(), st.sampled_from([0.37, 3.0, 1e3]))
@settings(max_examples=30, deadline=None)
def test_weights_that_are_all_alike_weigh_nothing(block, weight):
    """AURC is a sum over places, so a weight is a number of places there; smooth ECE nearly so."""
    confidence, correct = block
    names = [name for name in CLOSED if name not in ("aurc", "e_aurc")]
    alike = estimates(confidence, correct, weights=np.full(confidence.size, weight))
    assert_equal(estimates(confidence, correct), alike, names, rtol=1e-7)


@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_an_audit_does_not_depend_on_the_names_of_models_and_questions(seed):
    """Every model has draws of its own, so only the ends that are simulated may differ a little."""
    rng = np.random.default_rng(seed)
    confidence = rng.random(160).round(2)
    table = pl.DataFrame(
        {
            "question_id": [f"q{k}" for k in range(80)] * 2,
            "model": ["first"] * 80 + ["second"] * 80,
            "confidence": confidence,
            "correct": (rng.random(160) < confidence).astype(int),
        }
    )
    names = {"first": "zeta", "second": "alpha"}
    renamed = table.with_columns(
        pl.col("model").replace(names), question_id=pl.col("question_id").str.reverse()
    )
    before = {r["model"]: r["metrics"] for r in calibrant.audit(table).to_dict()["results"]}
    after = {r["model"]: r["metrics"] for r in calibrant.audit(renamed).to_dict()["results"]}
    for old, new in names.items():
        for name, estimate in before[old].items():
            parts = ("value",) if name in SIMULATED else ("value", "low", "high")
            for part in parts:
                assert after[new][name][part] == pytest.approx(estimate[part], abs=1e-12), name


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_rows_at_exactly_one_count_alike_in_value_and_interval_of_smooth_ece(share):
    """The published grid counts them half; an interval that does not is one of another number."""
    rng = np.random.default_rng(0)
    held = 0
    for repeat in range(12):
        confidence = np.where(rng.random(4000) < share, 1.0, rng.choice([0.6, 0.7, 0.8], 4000))
        correct = rng.random(4000) < np.where(confidence == 1, 1.0, confidence - 0.3)
        found = metrics.metric_estimates(
            confidence, correct, names=("smooth_ece",), resamples=300, rng=repeat
        )["smooth_ece"]
        width = found.high - found.low
        held += min(found.high - found.value, found.value - found.low) > 0.25 * width
    assert held == 12


def test_the_interval_of_a_rare_loss_is_moved_by_its_skewness():
    """Few large losses: a sample without them shows a low mean and a small error at once."""
    rng = np.random.default_rng(1)
    below = above = 0
    truth = 1 / 31 - 2 / (31 * 32)
    for _ in range(600):
        confidence = rng.beta(1, 30, 200)
        correct = rng.random(200) < confidence
        if correct.any():
            found = metrics.metric_estimates(confidence, correct, names=("brier",))["brier"]
            below, above = below + (truth < found.low), above + (truth > found.high)
    # Student's interval misses about 8 % above and less than 1 % below.
    assert above < 0.045 * 600
    assert below < 0.045 * 600
    assert below + above < 0.075 * 600


def test_losses_that_lean_the_other_way_move_it_down():
    confidence, correct = np.full(200, 0.9), np.zeros(200)
    correct[:6] = 1
    found = metrics.metric_estimates(confidence, correct, names=("brier",))["brier"]
    assert found.value - found.low > 1.3 * (found.high - found.value)


@pytest.mark.parametrize(("seed", "moved"), [(51, True), (50, False)])
def test_an_end_that_was_moved_to_the_value_says_so(seed, moved):
    """Of calibrated rare events about one data set in a hundred is like the first one."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(1, 30, 20_000)
    correct = rng.random(20_000) < confidence
    found = metrics.metric_estimates(confidence, correct, names=("smooth_ece",), resamples=60)
    found = found["smooth_ece"]
    assert (found.high == found.value) == moved
    assert found.interval.endswith("end moved to the value") == moved


def test_an_end_that_noise_pushed_on_is_not_taken_back_to_the_estimate():
    # At the farther bandwidth the end is even farther away: there is no crossing to look for.
    assert _meeting(0.022, 0.030, 0.030, 0.040) == 0.030
    assert _meeting(0.022, 0.030, 0.030, 0.026) == pytest.approx(0.022 + 0.008 * 2 / 3)
    assert _meeting(0.022, 0.010, 0.010, 0.004) == 0.010
