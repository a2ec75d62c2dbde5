"""Judge labels with a few gold labels."""

import numpy as np
import pytest
from simulations.planning import judge_coverage

from calibrant.core import InputError
from calibrant.labels import judged_estimates, judged_mean


def test_intervals_cover_and_shrink():
    for quality, (combined, alone, ratio) in judge_coverage(400).items():
        assert combined > 0.92, quality
        assert alone > 0.92, quality
        assert ratio < 1.01
    found = judge_coverage(100)
    assert found[0.97][2] < found[0.9][2] < found[0.8][2] < found[0.5][2]


def test_a_biased_judge_does_not_bias_the_estimate():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(300):
        truth = rng.random(1500) < 0.6
        lenient = truth | (rng.random(1500) < 0.5)  # calls half of the wrong answers right
        estimate = judged_mean(truth[:150], lenient[:150], lenient[150:])
        errors.append(estimate.combined.value - 0.6)
        assert estimate.judge_only > 0.7
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(300)


def test_no_disagreement_seen_is_no_certainty():
    truth = np.ones(20)
    estimate = judged_mean(truth, truth, np.ones(500))
    assert estimate.combined.high - estimate.combined.low > 0.02


def test_all_quantities_cover_on_a_synthetic_table():
    rng = np.random.default_rng(1)
    inside = {"accuracy": 0, "brier": 0, "gap": 0, "bins": 0}
    for _ in range(100):
        p = rng.beta(4, 1, 1500)
        truth = (rng.random(1500) < p - 0.1).astype(float)
        judge = np.where(rng.random(1500) < 0.9, truth, 1 - truth)
        gold = np.where(np.arange(1500) < 200, truth, np.nan)
        found = judged_estimates(p, gold, judge)
        actual = {
            "accuracy": truth.mean(),
            "brier": ((p - truth) ** 2).mean(),
            "gap": (p - truth).mean(),
        }
        for name, value in actual.items():
            part = found[name]["combined"]
            inside[name] += part.low <= value <= part.high
        good = True
        for part in found["bins"]:
            which = (p >= part["low"]) & (p <= part["high"])
            gap = part["gap"]["combined"]
            good &= gap.low <= (p - truth)[which].mean() <= gap.high
        inside["bins"] += good
    assert min(inside.values()) >= 90


def test_bad_input_is_refused():
    with pytest.raises(InputError):
        judged_mean([1.0], [1.0], [1.0])
    with pytest.raises(InputError):
        judged_mean([1.0, np.nan], [1.0, 0.0], [1.0])
    with pytest.raises(InputError):
        judged_estimates([0.5, 0.6], [1.0, 0.0], [1.0])
