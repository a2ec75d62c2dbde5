import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import InputError
from calibrant.trust import (
    CostMatrix,
    DecisionRisk,
    calibration_risk,
    expected_cost,
    grouping_risk,
    pointwise_risk,
)

unit = st.floats(0, 1)
cost = st.floats(0, 10)


@st.composite
def matrices(draw):
    c00, c11 = draw(cost), draw(cost)
    return CostMatrix(c00, c11 + draw(st.floats(0.01, 10)), c00 + draw(st.floats(0.01, 10)), c11)


@given(truth=unit, confidence=unit, threshold=unit, costs=matrices())
def test_proposition_5_oracle_risk_is_the_difference_of_expected_costs(
    truth, confidence, threshold, costs
):
    risk = pointwise_risk([truth], [confidence], costs, threshold=threshold)[0]
    taken = expected_cost([confidence >= threshold], [truth], costs)[0]
    best = expected_cost([truth >= costs.threshold], [truth], costs)[0]
    assert risk == pytest.approx(taken - best, abs=1e-9)
    assert risk >= 0


@given(
    truth=unit,
    calibrated=unit,
    residual=st.floats(-1, 1),
    confidence=unit,
    threshold=unit,
    costs=matrices(),
)
def test_proposition_6_error_is_bounded_by_that_of_the_residual(
    truth, calibrated, residual, confidence, threshold, costs
):
    oracle = pointwise_risk([truth], [confidence], costs, threshold=threshold)[0]
    estimated = pointwise_risk([calibrated + residual], [confidence], costs, threshold=threshold)[0]
    assert abs(oracle - estimated) <= costs.scale * abs(truth - calibrated - residual) + 1e-9


@given(calibrated=unit, confidence=unit, costs=matrices())
def test_without_residual_all_risk_is_calibration_risk(calibrated, confidence, costs):
    assert grouping_risk([calibrated], [0.0], costs)[0] == 0
    assert (
        calibration_risk([calibrated], [confidence], costs)[0]
        == pointwise_risk([calibrated], [confidence], costs)[0]
    )


@given(truth=unit, costs=matrices())
def test_optimal_threshold_is_where_both_decisions_cost_the_same(truth, costs):
    one, zero = expected_cost([1, 0], [truth, truth], costs)
    assert (one <= zero + 1e-9) if truth >= costs.threshold else (one >= zero - 1e-9)


@pytest.mark.parametrize("costs", [{"c10": 0, "c01": 0}, {"c10": 1, "c01": 1, "c00": 2, "c11": 1}])
def test_non_positive_denominator_is_refused(costs):
    with pytest.raises(InputError, match="> 0, got"):
        CostMatrix.of(costs)


def test_cost_matrix_is_read_by_decision_then_truth():
    assert CostMatrix.of([[0, 5], [1, 0]]) == CostMatrix(c00=0, c01=5, c10=1, c11=0)
    with pytest.raises(InputError, match="2 rows"):
        CostMatrix.of([1, 2, 3])
    with pytest.raises(InputError, match="named c00"):
        CostMatrix.of({"fp": 1})


def test_saved_cost_is_what_the_better_decisions_really_save():
    exact, saved, low = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 2, 6000)
        truth = np.where(x == 1, 0.8, 0.4)
        said = np.full(6000, 0.6)
        risk = DecisionRisk(seed=seed).fit({"x": x}, said, rng.random(6000) < truth)
        exact.append(pointwise_risk(truth, said, CostMatrix()).mean())
        saved.append(risk.saved_.value)
        low.append(risk.saved_.low)
        assert risk.recalibrated_.value == 0
        assert risk.saved_.high >= exact[-1]
    error = np.std(saved, ddof=1) / np.sqrt(12)
    assert np.mean(saved) == pytest.approx(np.mean(exact), abs=3 * error)
    assert error < 0.01
    assert np.mean(np.array(low) > exact) <= 0.1


def test_no_saving_is_claimed_where_the_confidence_is_the_truth():
    claimed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        f, x = rng.random(1500), rng.normal(size=1500)
        risk = DecisionRisk(costs={"c10": 1, "c01": 3}, seed=seed)
        claimed += risk.fit({"x": x}, f, rng.random(1500) < f).saved_.low > 0
    assert claimed <= 4
