"""The metrics that Inspect and lm-eval call, without either of them."""

import math
from types import SimpleNamespace

import pytest

from calibrant.apps.integrations import lm_eval_metrics as lm
from calibrant.apps.integrations.inspect_extension import METRICS
from calibrant.core.errors import InputError
from ecosystem.raw_logs import auroc_by_pairs, binned_error


def inspect_score(sample, value, confidence=None, answer="x"):
    metadata = {} if confidence is None else {"confidence": confidence}
    score = SimpleNamespace(value=value, answer=answer, metadata=metadata)
    return SimpleNamespace(sample_id=sample, score=score)


def test_inspect_metrics_leave_out_and_count_what_has_no_confidence():
    stated = [0.9, 0.8, 0.6, 0.7]
    scores = [inspect_score(i, "C" if i % 2 else "I", c) for i, c in enumerate(stated)]
    scores += [inspect_score(9, "C"), inspect_score(10, "N", 0.5)]
    found = METRICS["ece"]()(scores)
    assert found["ece"] == pytest.approx(binned_error(stated, [0, 1, 0, 1], 15))
    assert (found["ece_n"], found["ece_left_out"]) == (4, 2)
    assert METRICS["auroc"]()(scores)["auroc"] == pytest.approx(
        auroc_by_pairs(stated, [0, 1, 0, 1])
    )


def test_inspect_metrics_of_nothing_are_undefined():
    found = METRICS["brier"]()([inspect_score(1, "C")])
    assert math.isnan(found["brier"])
    assert (found["brier_n"], found["brier_left_out"]) == (0, 1)
    once = METRICS["sem_ece"]()([inspect_score(1, "C"), inspect_score(2, "I")])
    assert math.isnan(once["sem1_ece"])
    assert math.isnan(once["sem2_ece_high"])
    assert once["sem_ece_questions"] == 2


def test_sem_ece_of_answers_that_always_agree_and_are_always_right():
    scores = [inspect_score(q, "C", answer="Paris") for q in range(5) for _ in range(4)]
    scores.append(inspect_score(0, 0.5, answer="half right"))
    found = METRICS["sem_ece"]()(scores)
    assert found["sem1_ece"] == found["sem2_ece"] == 0.0
    assert (found["sem_ece_questions"], found["sem_ece_left_out"]) == (5, 1)


def gathered(metric, cases, name):
    """Aggregate as the harness does: one item per question, under one name."""
    return lm.aggregate([metric([target], [reply])[name] for target, reply in cases])


def test_lm_eval_consistency_and_its_interval():
    cases = [("7", ["7", "7", "8"]), ("3", ["4", "4", "4"]), ("5", ["5", "5", "5"])]
    shares, right = [2 / 3, 1.0, 1.0], [1, 0, 1]
    found = gathered(lm.consistency, cases, "consistency_ece")
    assert found == pytest.approx(binned_error(shares, right, 15))
    low, high = (
        gathered(lm.consistency, cases, f"consistency_ece_{end}") for end in ("low", "high")
    )
    assert low <= found <= high
    brier = sum((c - r) ** 2 for c, r in zip(shares, right, strict=True)) / 3
    assert gathered(lm.consistency, cases, "consistency_brier") == pytest.approx(brier)


def test_lm_eval_auroc_is_a_metric_of_its_own():
    cases = [("7", ["7", "7", "8"]), ("3", ["4", "4", "4"]), ("5", ["5", "5", "5"])]
    found = gathered(lm.consistency_auroc, cases, "consistency_auroc")
    assert found == pytest.approx(auroc_by_pairs([2 / 3, 1.0, 1.0], [1, 0, 1]))
    # The harness gives every number of a metric one direction: errors and AUROC stay apart.
    assert not any("auroc" in name for name in lm.consistency(["7"], [["7", "8"]]))
    assert all("auroc" in name for name in lm.consistency_auroc(["7"], [["7", "8"]]))
    stated = [("Paris", "Paris | 0.9"), ("Paris", "Rome | 0.6")]
    assert gathered(lm.verbalised_auroc, stated, "verbalised_auroc") == 1.0


def test_lm_eval_consistency_needs_repeats():
    with pytest.raises(InputError, match="take_first_k"):
        lm.consistency(["7"], ["7"])


def test_lm_eval_stated_confidences():
    cases = [("Paris", "Paris | 0.9"), ("Paris", "Rome | 0.6"), ("Paris", "no idea")]
    brier = gathered(lm.verbalised, cases, "verbalised_brier")
    assert brier == pytest.approx((0.1**2 + 0.6**2) / 2)
    assert gathered(lm.verbalised, cases, "verbalised_left_out") == 1
    nothing = gathered(lm.verbalised, cases[2:], "verbalised_ece")
    assert math.isnan(nothing)


def test_lm_eval_options():
    items = [(0, [-1.0, -2.0]), (1, [-1.0, -3.0]), ([0, 1], [-2.0, -0.5])]
    shares = [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(-1.5))]
    right = [1, 0, 1]
    assert lm.option_softmax_ece(items) == pytest.approx(binned_error(shares, right, 15))
    assert lm.option_softmax_auroc(items) == pytest.approx(auroc_by_pairs(shares, right))
    brier = sum((c - r) ** 2 for c, r in zip(shares, right, strict=True)) / 3
    assert lm.option_softmax_brier(items) == pytest.approx(brier)
