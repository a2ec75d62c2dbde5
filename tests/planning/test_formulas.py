"""Costs beyond one model, against the published tables and worked examples."""

import math

import numpy as np
import pytest

from calibrant.core import InputError
from calibrant.labels import (
    Goal,
    data_rate,
    deepest_pipeline,
    group_labels,
    grouping_labels,
    half_life,
    labels_needed,
    passive_floor,
    pipeline_labels,
    pipeline_lipschitz,
    plan_document,
    recalibration_rounds,
    transfer_labels,
    verification_dynamics,
    verification_horizon,
)

TABLE_6 = [
    ("General NLP (MMLU-scale)", 14_000, 1.40e4, 1.96e8),
    ("Medical imaging", 500_000, 5.00e5, 2.50e11),
    ("Legal", 10_000, 1.00e4, 1.00e8),
    ("Financial", 20_000, 2.00e4, 4.00e8),
    ("Code (HumanEval-scale)", 5_000, 5.00e3, 2.50e7),
    ("Autonomous driving", 100_000, 1.00e5, 1.00e10),
]


@pytest.mark.parametrize(("domain", "labels", "passive", "active"), TABLE_6)
def test_table_6_verification_horizon(domain, labels, passive, active):
    # The prose says 'about 1e7' for 14,000 labels; table and formula say 1.4e4.
    assert verification_horizon(labels=labels) == pytest.approx(passive)
    assert verification_horizon(labels=labels, active=True) == pytest.approx(active)


TABLE_7 = [
    ("eu-ai-act", 10, 0.05, 0.02, 0.05, 1_250_000, 25_000, 1.8),
    ("nist-ai-rmf", 5, 0.10, 0.01, 0.03, 1_500_000, 15_000, 3.0),
    ("fda-samd", 8, 0.05, 0.01, 0.02, 3_200_000, 32_000, 4.5),
]


@pytest.mark.parametrize(
    ("name", "groups", "share", "d", "eps", "passive", "active", "gap"), TABLE_7
)
def test_table_7_regulatory_presets(name, groups, share, d, eps, passive, active, gap):
    options = {"error_rate": eps, "smallest_share": share, "groups": groups}
    assert group_labels(d, **options) == passive
    assert group_labels(d, active=True, **options) == active
    document = plan_document(Goal(error_rate=0.0), preset=name)
    assert (document["passive_labels"], document["active_labels"]) == (passive, active)
    assert round(document["results"][0]["preset"]["gap"], 1) == gap


def test_worked_example_recalibration_trap():
    options = {"labels": 14_000, "error_rate": 0.05, "initial_ece": 0.10, "shrinkage": 0.5}
    assert recalibration_rounds(**options) == 4
    assert recalibration_rounds(**(options | {"labels": 10})) == 0


def test_worked_example_half_lives():
    assert half_life(0.02, drift=0.01) == pytest.approx(2.0)  # medical, months
    assert round(data_rate(0.02, error_rate=0.05, drift=0.01), -2) == 3100
    assert half_life(0.01, drift=0.1) * 7 * 24 == pytest.approx(16.8)  # trading, hours


@pytest.mark.parametrize(
    ("stages", "times"),
    [([2, 2], 5), ([3, 3], 10), ([2, 2, 2], 9), ([3, 3, 3], 28)],
)
def test_worked_example_pipelines(stages, times):
    assert pipeline_lipschitz(stages) == times
    single = labels_needed(0.01, error_rate=0.05)
    assert pipeline_labels(0.01, error_rate=0.05, stages=stages) == times * single


def test_worked_example_five_percent_group_costs_20_times():
    alone = labels_needed(0.02, error_rate=0.05)
    assert group_labels(0.02, error_rate=0.05, smallest_share=0.05) == 20 * alone


def test_discontinuous_stage_is_never_verified_passively():
    assert math.isinf(pipeline_labels(0.1, error_rate=0.1, stages=[2, math.inf]))
    assert deepest_pipeline(0.1, error_rate=0.1, labels=1e9, stage=math.inf) == 0
    document = plan_document(Goal(error_rate=0.1, precision=0.1, stages=(2.0, math.inf)))
    assert document["passive_labels"] is None
    assert document["active_labels"] == 10
    assert "discontinuous" in document["results"][0]["notes"][0]


def test_deepest_pipeline_is_the_last_affordable_depth():
    depth = deepest_pipeline(0.05, error_rate=0.1, labels=10_000, stage=2.0)
    assert 2.0**depth * 0.1 / 0.05**3 <= 10_000 < 2.0 ** (depth + 1) * 0.1 / 0.05**3


def test_critical_exponents():
    for active, critical in ((False, 0.5), (True, 1.0)):
        options = {"rate": 1000.0, "scale": 0.1, "active": active}
        assert verification_dynamics(decay=critical - 0.1, **options).outcome == "from"
        assert verification_dynamics(decay=critical + 0.1, **options).outcome == "until"
        assert verification_dynamics(decay=critical, **options).outcome == "always"
        assert (
            verification_dynamics(decay=critical, rate=1.0, scale=0.1, active=active).outcome
            == "never"
        )
        assert verification_dynamics(decay=0.1, **options).critical_exponent == critical


def test_dynamics_crossing_is_where_floor_meets_error_rate():
    found = verification_dynamics(decay=0.2, rate=50.0, scale=0.2, lipschitz=2.0)
    eps = 0.2 * found.time**-0.2
    assert (2.0 * eps / (50.0 * found.time)) ** (1 / 3) == pytest.approx(eps)


def test_transfer_saves_the_cube():
    assert transfer_labels(0.01, error_rate=0.1) == 1000 * transfer_labels(0.1, error_rate=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pipeline_lipschitz([]),
        lambda: deepest_pipeline(0.1, error_rate=0.1, labels=10, stage=1.0),
        lambda: group_labels(0.1, error_rate=0.1, smallest_share=0.0),
        lambda: group_labels(0.1, error_rate=0.1, smallest_share=0.5, groups=0),
        lambda: recalibration_rounds(labels=1, error_rate=0.1, initial_ece=0.1, shrinkage=1.0),
        lambda: plan_document(Goal(error_rate=0.1)),
        lambda: plan_document(Goal(error_rate=0.1, precision=0.1, groups=4, smallest_share=0.5)),
        lambda: plan_document(Goal(error_rate=0.1, precision=0.1, drift=0.1, per="moon")),
        lambda: plan_document(Goal(error_rate=0.1, precision=0.1), preset="eu-ai"),
    ],
)
def test_impossible_goals_are_refused(call):
    with pytest.raises(InputError):
        call()


@pytest.mark.parametrize(
    ("accuracies", "n", "printed", "should"),
    [
        ((0.72, 0.68, 0.68), 1534, 0.175, 0.058),
        ((0.87, 0.47, 0.67), 895, 0.179, 0.072),
        ((0.92, 0.92, 0.94), 783, 0.108, 0.045),
        ((0.57, 0.07, 0.65), 270, 0.215, 0.128),
        ((0.86, 0.64, 0.90), 235, 0.152, 0.095),
    ],
)
def test_table_3_puts_57_subjects_in_place_of_the_questions(accuracies, n, printed, should):
    error = 1 - sum(accuracies) / 3
    as_printed = passive_floor(error_rate=error, labels=57, lipschitz=1.0)
    # Accuracies are printed to two digits.
    assert as_printed == pytest.approx(printed, abs=1.5e-3)
    assert passive_floor(error_rate=error, labels=n, lipschitz=1.0) == pytest.approx(
        should, abs=6e-4
    )


@pytest.mark.parametrize(("loss", "above"), [(0.01, 0.0), (0.0025, 0.0), (0.01, 0.0025)])
def test_known_groups_show_their_loss_in_80_percent_at_the_floor(loss, above):
    runs = 4_000
    p = 0.5 + math.sqrt(loss) * np.tile([1.0, -1.0], 5_000)
    labels = grouping_labels(loss, noise=float((p * (1 - p)).mean()), above=above)
    rng = np.random.default_rng([int(1e6 * loss), int(1e6 * above)])
    groups = np.where(rng.random((runs, labels)) < 0.5, 1.0, -1.0)
    added = math.sqrt(loss) * groups
    product = added * ((rng.random((runs, labels)) < 0.5 + added) - 0.5)
    least = product.mean(axis=1) - 1.645 * product.std(axis=1) / math.sqrt(labels)
    # A loss above `above` is shown where the bound of the mean passes sqrt(loss * above).
    power = np.mean(least > math.sqrt(loss * above))
    assert power == pytest.approx(0.8, abs=0.03)
