"""Intervals: they hold together, follow the units and cover."""

import warnings

import numpy as np
import pytest
from scipy import stats

from calibrant import metrics
from calibrant.core import InputError, UndefinedMetricWarning
from calibrant.metrics.blocks.block import MetricBlock
from calibrant.metrics.inputs import check

# A gap has a sign, and of one row no interval: it has tests of its own.
BOUNDED = [name for name in metrics.audited() if name not in ("log_loss", "confidence_gap")]


def sample(seed=0, n=500, power=1.4):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1.2, n)
    return confidence, (rng.random(n) < confidence**power).astype(float)


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return metrics.metric_estimates(*args, **options)


@pytest.mark.parametrize("name", metrics.audited())
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_the_plain_functions(name, weighted):
    confidence, correct = sample(1)
    weights = np.random.default_rng(0).random(500) if weighted else None
    found = metrics.metric_estimates(confidence, correct, names=(name,), weights=weights)[name]
    expected = metrics.METRICS[name](confidence, correct, weights=weights)
    tolerance = 0.02 if name == "ece_debiased" and weighted else 1e-9
    assert found.value == pytest.approx(expected, abs=tolerance)
    assert found.low <= found.value <= found.high
    assert found.low < found.high
    assert found.n == 500


@pytest.mark.parametrize("units", [None, "pairs"])
def test_the_same_seed_gives_the_same_numbers_whatever_else_is_asked(units):
    confidence, correct = sample(2)
    given = None if units is None else np.arange(500) // 2
    everything = metrics.metric_estimates(confidence, correct, units=given, rng=5)
    for name in metrics.audited():
        alone = metrics.metric_estimates(confidence, correct, names=(name,), units=given, rng=5)
        assert alone[name] == everything[name]


@pytest.mark.parametrize("name", metrics.audited())
def test_a_question_with_many_rows_is_one_unit(name):
    confidence, correct = sample(3, 400)
    questions = np.repeat([f"q{k}" for k in range(400)], 5)
    once = metrics.metric_estimates(confidence, correct, names=(name,))[name]
    rows = np.repeat(confidence, 5), np.repeat(correct, 5)
    many = metrics.metric_estimates(*rows, names=(name,), units=questions)[name]
    assert many.n == 400
    width, copied = once.high - once.low, many.high - many.low
    assert copied == pytest.approx(width, rel=0.25 if name in ("mcb", "dsc") else 0.12)


def test_rows_of_a_unit_must_not_count_as_independent():
    confidence, correct = (np.repeat(a, 5) for a in sample(4, 400))
    names = ("brier", "ece", "auroc", "smooth_ece")
    units = np.repeat(np.arange(400), 5)
    right = metrics.metric_estimates(confidence, correct, names=names, units=units)
    wrong = metrics.metric_estimates(confidence, correct, names=names)
    for name in names:
        ratio = (right[name].high - right[name].low) / (wrong[name].high - wrong[name].low)
        assert ratio > 1.6, name


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [
        ([0.9] * 6, [1] * 6),
        ([0.9] * 6, [0] * 6),
        ([1.0] * 6, [1] * 6),
        ([1.0] * 6, [0] * 6),
        ([0.0] * 6, [0] * 6),
        ([0.5], [1]),
        ([0.5, 0.5], [1, 0]),
        (np.linspace(0, 1, 20), np.linspace(0, 1, 20) > 0.5),
        ([0.7] * 10, [0, 1] * 5),
    ],
)
def test_degenerate_blocks_never_claim_certainty(confidence, correct):
    found = quiet(confidence, correct)
    assert set(found) == set(metrics.audited())
    for name in BOUNDED:
        estimate = found[name]
        if np.isnan(estimate.value):
            assert np.isnan(estimate.low)
            assert np.isnan(estimate.high)
            continue
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1, name
        if name not in ("dsc", "brier"):
            assert estimate.high - estimate.low > 1e-3, name


def test_certain_and_wrong_is_said():
    found = quiet([1.0, 0.5, 0.7], [0, 1, 1], names=("log_loss",))["log_loss"]
    assert (found.value, found.low, found.high) == (np.inf, np.inf, np.inf)
    assert found.interval == "certain and wrong"


def test_scores_that_are_no_probabilities_are_ranked_only():
    confidence, correct = sample(5)
    names = ("auroc", "auprc", "aurc", "e_aurc", "accuracy")
    as_scores = metrics.metric_estimates(confidence * 30 - 8, correct, names=names)
    as_given = metrics.metric_estimates(confidence, correct, names=names)
    for name in names:
        assert as_scores[name].value == pytest.approx(as_given[name].value)
        assert as_scores[name].low == pytest.approx(as_given[name].low)
    with pytest.raises(InputError, match=r"in \[0, 1\]"):
        metrics.metric_estimates(confidence * 30, correct)


def test_graded_outcomes_rank_as_shares_of_right_and_wrong_answers():
    """A grade g is a right answer of weight g and a wrong one of weight 1 - g."""
    confidence, _ = sample(6)
    grades = np.random.default_rng(0).integers(0, 5, 500) / 4
    found = metrics.metric_estimates(confidence, grades, names=("auroc", "auprc", "brier"))
    twice = np.concatenate([confidence, confidence])
    outcome = np.repeat([1, 0], 500)
    shares = np.concatenate([grades, 1 - grades])
    for name in ("auroc", "auprc"):
        split = getattr(metrics, name)(twice, outcome, weights=shares)
        assert found[name].value == pytest.approx(split, abs=1e-12)
        assert getattr(metrics, name)(confidence, grades) == pytest.approx(split, abs=1e-12)
        assert found[name].low < found[name].value < found[name].high
    assert found["brier"].low < found["brier"].value < found["brier"].high


def test_the_interval_of_a_graded_auroc_is_as_wide_as_its_bootstrap():
    rng = np.random.default_rng(3)
    confidence = rng.random(400).round(2)
    grades = np.clip(0.2 + 0.6 * confidence + rng.normal(0, 0.3, 400), 0, 1)
    found = metrics.metric_estimates(confidence, grades, names=("auroc",))["auroc"]
    drawn = rng.integers(0, 400, (500, 400))
    spread = np.std([metrics.auroc(confidence[rows], grades[rows]) for rows in drawn])
    assert (found.high - found.low) / 3.92 == pytest.approx(spread, rel=0.12)


def test_a_wrong_name_is_met_with_a_suggestion():
    with pytest.raises(InputError, match="did you mean 'smooth_ece'"):
        metrics.metric_estimates([0.5], [1], names=("smoth_ece",))


def test_zero_is_inside_when_the_model_is_calibrated():
    rng = np.random.default_rng(11)
    names = ("ece", "ece_debiased", "smooth_ece", "mcb")
    inside = dict.fromkeys(names, 0)
    for repeat in range(60):
        confidence = rng.beta(4, 1.2, 400)
        correct = rng.random(400) < confidence
        found = metrics.metric_estimates(
            confidence, correct, names=names, resamples=200, rng=repeat
        )
        for name in names:
            inside[name] += found[name].low == 0
    # A plain percentile interval never contains 0: its count would be 0 of 60.
    assert all(count >= 53 for count in inside.values()), inside


def test_brier_and_auroc_cover():
    rng = np.random.default_rng(12)
    big = rng.beta(4, 1.2, 400_000)
    rate = big**1.5
    true_brier = float(((big - rate) ** 2 + rate * (1 - rate)).mean())
    both, copies = np.concatenate([big, big]), np.repeat([1, 0], big.size)
    true_auroc = metrics.auroc(both, copies, weights=np.concatenate([rate, 1 - rate]))
    hits = {"brier": 0, "auroc": 0}
    for _ in range(400):
        confidence = rng.beta(4, 1.2, 300)
        correct = rng.random(300) < confidence**1.5
        found = metrics.metric_estimates(confidence, correct, names=("brier", "auroc"))
        hits["brier"] += found["brier"].low <= true_brier <= found["brier"].high
        hits["auroc"] += found["auroc"].low <= true_auroc <= found["auroc"].high
    assert all(0.92 <= count / 400 <= 0.98 for count in hits.values()), hits


def test_zero_weights_leave_rows_out():
    confidence, correct = sample(7)
    weights = np.ones(500)
    weights[300:] = 0
    units = np.arange(500) // 2
    some = metrics.metric_estimates(confidence, correct, weights=weights, units=units)
    few = metrics.metric_estimates(
        confidence[:300], correct[:300], weights=weights[:300], units=units[:300]
    )
    assert some == few


@pytest.mark.parametrize("name", ["aurc", "e_aurc", "auroc", "auprc"])
@pytest.mark.parametrize("decimals", [None, 1])
def test_ranking_errors_are_those_of_the_bootstrap_with_and_without_ties(name, decimals):
    """The best order behind E-AURC is nothing but ties, so ties must be right."""
    rng = np.random.default_rng(12)
    confidence = rng.beta(4, 1.2, 800)
    correct = (rng.random(800) < confidence).astype(float)
    if decimals is not None:
        confidence = confidence.round(decimals)
    found = metrics.metric_estimates(confidence, correct, names=(name,))[name]
    drawn = rng.integers(0, 800, (1500, 800))
    spread = np.std([getattr(metrics, name)(confidence[rows], correct[rows]) for rows in drawn])
    assert (found.high - found.low) / 3.92 == pytest.approx(spread, rel=0.08)


@pytest.mark.parametrize("asked", [1, 4])
def test_the_error_of_dsc_is_that_of_the_bootstrap_by_units(asked):
    # One row in ten lies far from the rest, so how many of them were drawn matters most; the
    # outcomes given the confidences are half of the variance at most.
    rng = np.random.default_rng(2)
    confidence = np.where(rng.random(400) < 0.1, 0.05, 0.95)
    correct = rng.random(400) < confidence
    units = np.repeat(np.arange(400), asked)
    data = (np.repeat(confidence, asked), np.repeat(correct, asked))
    found = metrics.metric_estimates(*data, names=("dsc",), units=units)["dsc"]
    drawn = metrics.bootstrap_distribution("dsc", *data, units=units, resamples=400, rng=3)
    assert (found.high - found.low) / (2 * 1.966) == pytest.approx(drawn.std(), rel=0.12)


def test_the_interval_of_dsc_is_moved_by_the_bias_of_the_fit():
    rng = np.random.default_rng(4)
    ends, values = [], []
    for repeat in range(60):
        confidence = rng.beta(4, 1.2, 200)
        correct = rng.random(200) < 0.5 + 0.6 * (confidence - 0.5)
        found = metrics.metric_estimates(confidence, correct, names=("dsc",), rng=repeat)["dsc"]
        ends.append((found.low, found.high))
        values.append(found.value)
    # The truth is the variance of the rate, 0.36 times that of Beta(4, 1.2).
    truth = 0.36 * 4 * 1.2 / (5.2**2 * 6.2)
    low, high = np.array(ends).T
    assert np.mean(values) > truth + 0.008
    assert ((low <= truth) & (truth <= high)).mean() > 0.9


def test_an_excess_risk_above_zero_has_a_lower_end_above_zero():
    confidence = np.linspace(0.01, 0.99, 30)
    correct = (confidence > 0.3).astype(float)
    correct[[3, 12]] = 1.0, 0.0
    found = metrics.metric_estimates(confidence, correct, names=("e_aurc",))["e_aurc"]
    assert 0 < found.low < found.value < found.high
    assert found.high - found.value > found.value - found.low


def test_the_larger_half_of_the_error_keeps_its_upper_end_when_the_other_is_spread_wide():
    """Most rows lean a little to one side, few rows a lot to the other."""
    rng = np.random.default_rng(6)
    covered, narrow = 0, []
    for repeat in range(40):
        confidence = rng.beta(4, 1.2, 5000)
        correct = rng.random(5000) < np.where(confidence < 0.75, 0.3, 0.9)
        found = metrics.metric_estimates(
            confidence, correct, names=("over_confidence",), resamples=300, rng=repeat
        )["over_confidence"]
        covered += found.low <= 0.11241 <= found.high
        narrow.append(found.high - found.value)
    assert covered >= 36
    assert np.mean(narrow) > 0.007


def test_no_calibration_error_ends_below_what_the_mean_gap_may_be():
    """Noise of both signs can hide a gap of one sign; the mean gap still tells of it."""
    for seed in range(20):
        confidence, correct = sample(seed=seed, n=120, power=1.5)
        found = metrics.metric_estimates(
            confidence, correct, names=("ece", "smooth_ece", "over_confidence", "under_confidence")
        )
        gap = metrics.confidence_gap(confidence, correct)
        most = max(abs(gap.low), abs(gap.high))
        assert min(found["ece"].high, found["smooth_ece"].high) >= most - 1e-12
        assert found["over_confidence"].high >= gap.high - 1e-12
        assert found["under_confidence"].high >= -gap.low - 1e-12


def test_few_wrong_answers_widen_the_interval_of_a_ranking():
    rng = np.random.default_rng(9)
    confidence = rng.random(300)
    correct = np.ones(300)
    correct[rng.permutation(300)[:6]] = 0
    found = metrics.metric_estimates(confidence, correct, names=("auroc",))["auroc"]
    logit = np.log(np.array([found.low, found.high]) / (1 - np.array([found.low, found.high])))
    block = MetricBlock.of(check(confidence, correct))
    area, influence = metrics.METRICS["auroc"].family.influence(block)
    error = block.error(influence) / (area * (1 - area))
    assert np.diff(logit)[0] / (2 * error) == pytest.approx(stats.t.ppf(0.975, 5), rel=1e-6)


def test_the_upper_end_of_mcb_is_not_cut_off_at_few_rows():
    rng = np.random.default_rng(1)
    confidence = np.repeat([0.5, 0.7, 0.8, 0.9, 0.95], 30)
    highs = []
    for repeat in range(120):
        correct = rng.random(150) < confidence - 0.1
        found = metrics.metric_estimates(confidence, correct, names=("mcb",), rng=repeat)["mcb"]
        highs.append(found.high)
    assert (np.array(highs) >= 0.01).mean() > 0.92
