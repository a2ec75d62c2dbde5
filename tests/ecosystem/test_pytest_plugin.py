"""Tests of other projects assert calibration; what they found is one report."""

import json
import subprocess
import sys

SUITE = """
import numpy as np
import calibrant

def world(gap):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.5, 1, 3000)
    return said, rng.random(3000) < said - gap

def test_a_calibrated_model():
    calibrant.assert_calibrated(*world(0.0), fail_if="ece>0.05")

def test_an_over_confident_model():
    calibrant.assert_calibrated(*world(0.2))

def test_too_few_labels_decide_nothing():
    said, right = world(0.0)
    calibrant.assert_calibrated(said[:40], right[:40])
"""


def test_a_suite_fails_where_confidence_is_too_high_and_keeps_its_audits(tmp_path):
    (tmp_path / "test_model.py").write_text(SUITE)
    quiet = ["-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *quiet, "--calibrant-report", "found.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: not calibrated:" in done.stdout
    report = json.loads((tmp_path / "found.json").read_text())
    names = [one["test"].rpartition("::")[2] for one in report["results"]]
    assert names == [
        "test_a_calibrated_model",
        "test_an_over_confident_model",
        "test_too_few_labels_decide_nothing",
    ]
    assert [bool(one["failed"]) for one in report["results"]] == [False, True, True]
    assert report["results"][0]["audit"]["schema"] == "calibrant.audit/1"


def test_a_suite_that_asserts_nothing_pays_next_to_nothing():
    """pytest loads the plugin in every suite beside which calibrant is installed."""
    loaded = "import sys, calibrant.apps.integrations.pytest_plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    heavy = {"numpy", "scipy", "polars", "sklearn", "msgspec", "rich", "click"}
    assert not heavy & set(done.stdout.split())
