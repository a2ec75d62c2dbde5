"""Many confidences at once: what is shown survives a correction for their number."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.claims import ALPHA
from calibrant.claims.significance import adjust_p_values, gap_p_value
from calibrant.core.estimate import Estimate
from calibrant.metrics import calibration_test, confidence_gap
from calibrant.stats.multiplicity import holm


def many_calibrated(rng, confidences=16, questions=60):
    """Confidences that are all perfectly calibrated, as columns of one table."""
    said = rng.beta(4, 2, (questions, confidences))
    right = rng.random((questions, confidences)) < said
    return pl.DataFrame(
        {
            "question_id": np.repeat(np.arange(questions), confidences),
            "model": np.tile([f"m{i}" for i in range(confidences)], questions),
            "confidence": said.ravel(),
            "correct": right.ravel().astype(int),
        }
    )


def words(document):
    return [entry["verdict"]["calibration"] for entry in document["results"]]


def test_holm_is_the_largest_of_the_steps_so_far():
    p = np.random.default_rng(0).random(50) ** 4
    order = np.argsort(p)
    steps = [min(1.0, max(p[order[j]] * (50 - j) for j in range(i + 1))) for i in range(50)]
    assert holm(p)[order] == pytest.approx(steps)
    assert holm([]).size == 0


def test_any_false_claim_among_eighty_tests_is_as_rare_as_in_one():
    """Each tested alone, almost every audit of forty calibrated confidences would make one."""
    rng = np.random.default_rng(1)
    false, alone = 0, 0
    for _ in range(1_000):
        p = rng.random((40, 2))
        entries = [
            {
                "probability": True,
                "group": None,
                "significance": {"calibration": {"p_value": a}, "gap": {"p_value": b}},
            }
            for a, b in p
        ]
        adjust_p_values(entries)
        tests = [entry["significance"] for entry in entries]
        false += any(
            test[name]["p_adjusted"] <= ALPHA for test in tests for name in ("calibration", "gap")
        )
        alone += bool((p <= ALPHA).any())
    assert alone > 950
    # 50 expected; four standard deviations above.
    assert 20 < false < 78


def test_an_audit_of_many_calibrated_confidences_claims_nothing():
    table = many_calibrated(np.random.default_rng(1))
    document = cal.audit(table, resamples=20).to_dict()
    assert set(words(document)) == {"undecided"}


def test_what_is_far_off_is_found_among_many():
    table = many_calibrated(np.random.default_rng(2), questions=200)
    off = pl.col("model").is_in(["m3", "m7"])
    table = table.with_columns(
        confidence=pl.when(off).then(pl.col("confidence") ** 0.2).otherwise("confidence")
    )
    document = cal.audit(table, resamples=20).to_dict()
    found = {
        entry["model"]: entry["verdict"]["calibration"]
        for entry in document["results"]
        if entry["verdict"]["calibration"] != "undecided"
    }
    assert found == {"m3": "over-confident", "m7": "over-confident"}
    assert document["multiplicity"]["whole"] == {"confidences": 16, "tests": 32}


def test_groups_are_a_family_of_their_own():
    rng = np.random.default_rng(3)
    said = rng.beta(6, 2, 400)
    # A gap that one confidence shows and that a correction for the groups' tests would hide.
    right = rng.random(400) < said - 0.08
    table = {
        "confidence": said,
        "correct": right.astype(int),
        "topic": [f"t{i % 8}" for i in range(400)],
    }
    alone = cal.audit(table, resamples=20)["results"][0]
    document = cal.audit(table, by=["topic"], resamples=20)
    whole = document["results"][0]
    assert document["multiplicity"]["groups"]["tests"] == 16
    assert whole["significance"] == alone["significance"]
    assert whole["verdict"] == alone["verdict"]
    assert whole["verdict"]["calibration"] == "over-confident"


def test_small_p_values_are_told_apart_below_a_thousandth():
    rng = np.random.default_rng(4)
    said = rng.uniform(0.7, 1, 300)
    right = rng.random(300) < said - 0.15
    test = cal.audit(said, right, resamples=20)["results"][0]["significance"]["calibration"]
    assert 1e-10 <= test["p_value"] < 1e-4
    assert test["p_low"] <= test["p_value"] <= test["p_high"]


def test_a_rare_error_that_is_absent_by_chance_is_no_under_confidence():
    """Twenty right answers at 0.95: no spread between the rows, and nothing out of the ordinary."""
    entry = cal.audit(np.full(20, 0.95), np.ones(20), resamples=20)["results"][0]
    exact = 0.95**20
    assert entry["significance"]["gap"]["p_value"] > exact
    assert entry["verdict"]["calibration"] == "undecided"


def test_the_gap_is_tested_with_the_larger_of_two_errors():
    """Confidences near 0 and 1 promise a small spread; outcomes that ignore them have a large."""
    rng = np.random.default_rng(5)
    said = np.tile([0.02, 0.98], 100)
    right = (rng.random(200) < 0.5).astype(float)
    gap = confidence_gap(said, right)
    exact = calibration_test(said, right, bins=1)
    student = gap_p_value(gap)
    assert gap_p_value(gap, exact) == max(student, exact.p_value)
    assert exact.p_value < student


def test_student_is_that_of_the_interval():
    for level in (0.8, 0.95, 0.99):
        rng = np.random.default_rng(6)
        said = rng.uniform(0.4, 1, 50)
        gap = confidence_gap(said, rng.random(50) < said - 0.1, level=level)
        p_value = gap_p_value(gap)
        assert (p_value < 1 - level) == (gap.low > 0 or gap.high < 0)
    assert gap_p_value(Estimate(0.1, float("nan"), float("nan"), n=1)) is None
    assert gap_p_value(Estimate(0.1, 0.1, 0.1, n=9)) is None


def test_repeated_rows_and_grades_have_the_gap_alone():
    rng = np.random.default_rng(7)
    said = np.repeat(rng.uniform(0.5, 1, 50), 4)
    table = {
        "question_id": np.repeat(np.arange(50), 4),
        "confidence": said,
        "correct": [1, 0] * 100,
    }
    repeated = cal.audit(table, repeats=True, resamples=20)["results"][0]
    assert repeated["significance"]["calibration"] is None
    assert repeated["calibration_test"]["p_value"] is None
    assert repeated["significance"]["tests"] == 1
    assert any("depend on each other" in note for note in repeated["notes"])
    graded = cal.audit(said[::4], rng.uniform(0, 1, 50), graded=True, resamples=20)["results"][0]
    assert graded["significance"]["calibration"] is None
    assert any("grades between 0 and 1" in note for note in graded["notes"])


def test_a_ranking_score_is_not_tested():
    entry = {"probability": False, "group": None}
    assert adjust_p_values([entry])["whole"] == {"confidences": 0, "tests": 0}


def test_a_model_without_a_sound_row_is_named():
    table = pl.DataFrame(
        {
            "model": ["a"] * 40 + ["b"] * 40,
            "confidence": [0.3, 0.8] * 20 + [None] * 40,
            "correct": [0, 1] * 40,
        }
    )
    found = cal.audit(table, on_invalid="drop")
    assert found["dropped"] == {"confidence_missing": 40}
    assert found["emptied_models"] == ["b"]
    assert found["data"]["warnings"][0]["id"] == "data.emptied"
