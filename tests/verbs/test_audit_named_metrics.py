"""`audit` with metrics asked for by name: right values, a fair yardstick, nothing else moved."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core import InputError
from calibrant.metrics import METRICS
from support import call


def rows(shift, n=800, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 0.95, n)
    return confidence, rng.random(n) < confidence - shift


def test_values_are_those_of_the_functions_and_the_rest_is_unmoved():
    confidence, correct = rows(0.2)
    names = [name for name, one in METRICS.items() if one.audit == "asked"]
    plain = cal.audit(confidence, correct, resamples=50).to_dict()
    asked = cal.audit(confidence, correct, resamples=50, metrics=names).to_dict()
    found = asked["results"][0].pop("named_metrics")
    for name in names:
        assert found[name]["value"] == pytest.approx(METRICS[name](confidence, correct))
    assert asked["settings"].pop("metrics") == names
    assert asked["results"] == plain["results"]
    assert asked["settings"] == plain["settings"]


def test_the_yardstick_separates_calibrated_from_not():
    above = {}
    for shift in (0.0, 0.2):
        hits = 0
        for seed in range(20):
            found = cal.audit(
                *rows(shift, 400, seed), resamples=20, metrics=["ks_calibration_error"]
            )["results"][0]["named_metrics"]["ks_calibration_error"]
            hits += found["value"] > found["calibrated_high"]
        above[shift] = hits
    assert above[0.0] <= 4
    assert above[0.2] == 20


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="no metric 'rms'"):
        cal.audit(*rows(0.1), metrics=["rms"])


def test_dependent_rows_have_no_yardstick():
    confidence, correct = rows(0.1)
    table = {"confidence": confidence, "correct": correct, "question_id": np.arange(800) // 4}
    document = cal.audit(table, repeats=True, resamples=20, metrics=["mce"])
    found = document["results"][0]["named_metrics"]["mce"]
    assert found["calibrated_mean"] is None
    assert found["value"] > 0


def test_in_the_shell(tmp_path):
    confidence, correct = rows(0.2)
    path = tmp_path / "t.csv"
    lines = [f"{c},{int(y)}" for c, y in zip(confidence, correct, strict=True)]
    path.write_text("\n".join(["confidence,correct", *lines]))
    done = call("audit", str(path), "--metrics", "mce,adaptive_ece", "--resamples", "20")
    line = next(line for line in done.stdout.splitlines() if "adaptive_ece" in line)
    assert f"{METRICS['adaptive_ece'](confidence, correct):.3f}" in line
