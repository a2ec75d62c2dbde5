"""Only the ratios of weights matter: their unit, or that they are whole numbers, says nothing."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import metrics

RNG = np.random.default_rng(3)
ROWS = 200
CONFIDENCE = RNG.uniform(0.2, 1, ROWS).round(2)
CORRECT = (RNG.random(ROWS) < CONFIDENCE - 0.1).astype(int)
WHOLE = RNG.integers(1, 6, ROWS).astype(float)


def audited(weights=None, *, repeats=False):
    table = {
        "confidence": CONFIDENCE,
        "correct": CORRECT,
        "question_id": np.repeat(np.arange(ROWS // 2), 2) if repeats else np.arange(ROWS),
    }
    options = {} if weights is None else {"weights": "weights"}
    if weights is not None:
        table["weights"] = weights
    return cal.audit(table, resamples=50, repeats=repeats, **options).to_dict()


def claimed(document):
    return [(claim["text"], claim["outcome"]) for claim in document["claims"]]


@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0, 1e9, 1e-200, 1e200])
@pytest.mark.parametrize("repeats", [False, True])
def test_an_audit_says_the_same_in_any_unit_of_whole_weights(scale, repeats):
    one, other = (audited(WHOLE * unit, repeats=repeats) for unit in (1.0, scale))
    assert claimed(one) == claimed(other)
    first, second = one["results"][0], other["results"][0]
    for name, estimate in first["metrics"].items():
        for end in ("value", "low", "high"):
            expected = pytest.approx(estimate[end], rel=1e-4, abs=1e-6)
            assert second["metrics"][name][end] == expected, (name, end)
    for test in ("calibration", "gap"):
        # Questions with several rows have no test of their bins.
        tests = [entry["significance"][test] or {"p_value": 1.0} for entry in (first, second)]
        assert tests[0]["p_value"] == pytest.approx(tests[1]["p_value"], rel=1e-6)
    for mine, yours in zip(*(e["reliability"]["bins"] for e in (first, second)), strict=True):
        assert mine == pytest.approx(yours)


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.3, 1e308, 1e-320])
def test_weights_that_are_all_alike_are_none(weight):
    assert audited(np.full(ROWS, weight))["results"] == audited()["results"]


@pytest.mark.parametrize("rest", [1.0, 5e-324])
@pytest.mark.parametrize("repeats", [False, True])
def test_one_row_that_outweighs_all_others_is_the_only_one(rest, repeats):
    entry = audited(np.array([1e300, *[rest] * (ROWS - 1)]), repeats=repeats)["results"][0]
    assert entry["metrics"]["brier"]["value"] == pytest.approx((CONFIDENCE[0] - CORRECT[0]) ** 2)


def test_a_calibrated_model_is_rarely_refused_whatever_the_weights():
    """Weights 1 to 5 once counted as so many rows: nine in ten calibrated models were refused."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        confidence = rng.uniform(0.2, 1, 150)
        correct = rng.random(150) < confidence
        weights = rng.integers(1, 6, 150)
        test = metrics.calibration_test(confidence, correct, weights=weights)
        refused += test.p_value < 0.05
    assert refused <= 0.09 * 300
