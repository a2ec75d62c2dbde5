"""What every metric must satisfy; a new export that is missing from the list fails here."""

import inspect
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import metrics
from calibrant.core import InputError, UndefinedMetricWarning

# name: (lowest, highest, value on perfect certain predictions, needs probabilities, binary only)
SCALARS = {
    "accuracy": (0, 1, 0.5, False, False),
    "accuracy_at_coverage": (0, 1, 0.625, False, False),
    "auprc": (0, 1, 1.0, False, False),
    "aurc": (0, 1, None, False, False),
    "auroc": (0, 1, 1.0, False, False),
    "brier": (0, 1, 0.0, True, False),
    "dsc": (0, 0.25, 0.25, True, False),
    "e_aurc": (0, 1, 0.0, False, False),
    "ece": (0, 1, 0.0, True, False),
    "ece_debiased": (0, 1, 0.0, True, False),
    "error": (0, 1, 0.0, True, False),
    "log_loss": (0, np.inf, 0.0, True, False),
    "mcb": (0, 1, 0.0, True, False),
    "mean_confidence": (0, 1, 0.5, True, False),
    "over_confidence": (0, 1, 0.0, True, False),
    "smooth_ece": (0, 1, 0.0, True, False),
    "smooth_ece_bandwidth": (0, 1, None, True, False),
    "spiegelhalter_z": (-np.inf, np.inf, None, True, True),
    "unc": (0, 0.25, 0.25, True, False),
    "under_confidence": (0, 1, 0.0, True, False),
}
# Variants of ECE: the same laws hold for each.
VARIANTS = {
    f"ece {strategy} {norm}": ("ece", {"strategy": strategy, "norm": norm})
    for strategy in ("width", "mass")
    for norm in ("l1", "l2", "max")
} | {
    "ece_debiased l2": ("ece_debiased", {"norm": "l2"}),
    "ece_debiased mass": ("ece_debiased", {"strategy": "mass"}),
}
# Exports that are no plain metric; each has tests of its own.
OTHERS = {
    "BetaCalibrator",
    "BrierParts",
    "CALIBRATORS",
    "CalibrationTest",
    "Calibrator",
    "Corp",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "MendCalibrator",
    "METRICS",
    "audited",
    "PlattCalibrator",
    "ReliabilityBins",
    "ReliabilityCurve",
    "TemperatureCalibrator",
    "bootstrap_distribution",
    "bootstrap_interval",
    "confidence_gap",
    "brier_decomposition",
    "calibration_test",
    "calibrator_from_dict",
    "corp",
    "cross_fitted",
    "metric_estimates",
    "paired_gap",
    "reliability_bins",
    "reliability_curve",
}
# Written by others on top of this package, tested beside their own code.
ELSEWHERE = {
    name
    for name in metrics.__all__
    if getattr(getattr(metrics, name), "__module__", "").startswith(
        (
            "calibrant.metrics.semantic",
            "calibrant.metrics.registry",
            "calibrant.metrics.recalibration.base",
            "calibrant.metrics.scorers",
        )
    )
}

CASES = {name: (name, {}) for name in SCALARS} | VARIANTS
PROBABILITIES = [case for case, (name, _) in CASES.items() if SCALARS[name][3]]


def compute(case, confidence, correct, weights=None):
    name, options = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return getattr(metrics, name)(confidence, correct, weights=weights, **options)


def same(a, b):
    return (np.isnan(a) and np.isnan(b)) or a == pytest.approx(b, rel=1e-9, abs=1e-11)


def sample(seed=0, n=300, digits=None):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) if digits is None else rng.random(n).round(digits)
    return confidence, (rng.random(n) < confidence**1.4).astype(float)


def test_every_export_is_listed():
    assert set(metrics.__all__) == set(SCALARS) | OTHERS | ELSEWHERE


@pytest.mark.parametrize("name", SCALARS)
def test_data_are_positional_and_options_are_keywords(name):
    parameters = list(inspect.signature(getattr(metrics, name)).parameters.values())
    assert [p.name for p in parameters[:2]] == ["confidence", "correct"]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[2:])
    assert "weights" in {p.name for p in parameters}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("digits", [None, 1])
def test_a_whole_weight_is_a_repetition(case, digits):
    confidence, correct = sample(1, 200, digits)
    if CASES[case][0] in ("aurc", "e_aurc", "ece_debiased", "error", "spiegelhalter_z"):
        pytest.skip("places of a ranking, or chance: these do not change with the scale instead")
    weights = np.random.default_rng(2).integers(0, 4, 200)
    repeated = compute(case, np.repeat(confidence, weights), np.repeat(correct, weights))
    assert same(compute(case, confidence, correct, weights), repeated)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
@pytest.mark.parametrize("case", CASES)
def test_the_scale_of_the_weights_does_not_matter(case, scale):
    if case == "smooth_ece":
        pytest.skip("weights are numbers of rows in the published density")
    confidence, correct = sample(8, 150, None)
    weights = np.random.default_rng(9).random(150) + 0.1
    one, other = (compute(case, confidence, correct, w) for w in (weights, weights * scale))
    assert same(one, other)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("digits", [None, 1])
def test_the_order_of_rows_does_not_matter(case, digits):
    confidence, correct = sample(3, 250, digits)
    order = np.random.default_rng(4).permutation(250)
    weights = np.random.default_rng(5).random(250)
    assert same(
        compute(case, confidence, correct), compute(case, confidence[order], correct[order])
    )
    assert same(
        compute(case, confidence, correct, weights),
        compute(case, confidence[order], correct[order], weights[order]),
    )


@pytest.mark.parametrize("case", CASES)
@given(rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=25))
@settings(max_examples=40, deadline=None)
def test_values_stay_in_range(case, rows):
    confidence, correct = np.array([c for c, _ in rows]), np.array([y for _, y in rows])
    value = compute(case, confidence, correct)
    low, high, *_ = SCALARS[CASES[case][0]]
    assert np.isnan(value) or low - 1e-12 <= value <= high + 1e-12
    assert isinstance(value, float)


@pytest.mark.parametrize("case", CASES)
def test_perfect_predictions(case):
    correct = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    expected = SCALARS[CASES[case][0]][2]
    if expected is not None:
        assert compute(case, correct.astype(float), correct) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_an_error(case):
    with pytest.raises(InputError, match="at least one row"):
        compute(case, [], [])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("confidence", "correct"),
    [([0.7], [1]), ([0.2, 0.9], [1, 1]), ([0.2, 0.9], [0, 0]), ([0.4] * 5, [1, 0, 1, 0, 0])],
    ids=["one row", "all right", "all wrong", "constant"],
)
def test_small_and_degenerate_data_have_a_value_or_a_warned_nan(case, confidence, correct):
    name, options = CASES[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = getattr(metrics, name)(confidence, correct, **options)
    warned = [w for w in caught if issubclass(w.category, UndefinedMetricWarning)]
    assert np.isnan(value) == bool(warned)
    assert len(caught) == len(warned)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_with_its_row(case, bad):
    with pytest.raises(InputError, match="row 2"):
        compute(case, [0.5, bad], [1, 0])


@pytest.mark.parametrize("case", PROBABILITIES)
@pytest.mark.parametrize("bad", [np.nextafter(1, 2), -5e-324, 1.0000001, -0.001, 87.0])
def test_what_is_no_probability_is_refused(case, bad):
    with pytest.raises(InputError, match=r"confidence is a number in \[0, 1\]"):
        compute(case, [0.5, bad], [1, 0])


@pytest.mark.parametrize("bad", [np.nextafter(np.float32(1), np.float32(2)), np.float32(-1e-45)])
def test_single_precision_is_refused_as_exactly(bad):
    with pytest.raises(InputError, match="row 2"):
        metrics.ece(np.array([0.5, bad], np.float32), [1, 0])


def test_minus_zero_is_zero():
    assert metrics.ece([-0.0, 0.5], [0, 1]) == metrics.ece([0.0, 0.5], [0, 1])


@pytest.mark.parametrize("case", [case for case in CASES if case not in PROBABILITIES])
def test_ranking_metrics_take_any_score(case):
    confidence, correct = sample(6)
    assert same(compute(case, confidence, correct), compute(case, confidence * 50 - 7, correct))


@pytest.mark.parametrize("case", CASES)
def test_graded_outcomes_are_taken_or_refused(case):
    confidence, _ = sample(7)
    grades = np.random.default_rng(8).random(300)
    if SCALARS[CASES[case][0]][4]:
        with pytest.raises(InputError, match="0 or 1 for this metric"):
            compute(case, confidence, grades)
    else:
        low, high, *_ = SCALARS[CASES[case][0]]
        assert low <= compute(case, confidence, grades) <= high


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5], [1]), "same length"),
        ((["a", "b"], [1, 0]), "text"),
        (([[0.5]], [[1]]), "one column"),
        (([0.5, 0.5], [1, 2]), r"correct is a number in \[0, 1\]"),
        (([0.5, 0.5], [1, 0], [1.0]), "one value per row"),
        (([0.5, 0.5], [1, 0], [1.0, -1.0]), "not negative"),
        (([0.5, 0.5], [1, 0], [0.0, 0.0]), "not all zero"),
    ],
)
def test_broken_input_is_named(case, arguments, message):
    with pytest.raises(InputError, match=message):
        compute(case, *arguments)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.float32])
def test_kinds_of_outcomes_do_not_matter(case, kind):
    confidence, correct = sample(9)
    assert same(compute(case, confidence, correct.astype(kind)), compute(case, confidence, correct))


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_left_as_they_were(case):
    confidence, correct = sample(10)
    weights = np.random.default_rng(1).random(300)
    before = confidence.copy(), correct.copy(), weights.copy()
    for array in (confidence, correct, weights):
        array.flags.writeable = False
    compute(case, confidence, correct, weights)
    assert all((a == b).all() for a, b in zip(before, (confidence, correct, weights), strict=True))


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-3, 0.05, 7.0, 1e12, 1e300])
def test_the_scale_of_the_weights_hardly_matters_to_smooth_ece(scale):
    """The published density has a constant beside the weights: small ones must not drown in it."""
    rng = np.random.default_rng(3)
    confidence = rng.random(80)
    correct = rng.random(80) < confidence**2
    weights = rng.lognormal(0, 1, 80)
    one, other = (
        metrics.smooth_ece(confidence, correct, weights=w) for w in (weights, weights * scale)
    )
    assert other == pytest.approx(one, rel=2e-5)
