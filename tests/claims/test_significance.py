"""Many confidences at once: what is shown survives a correction for their number."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.arrays import Estimate
from calibrant.findings.claims import ALPHA
from calibrant.findings.claims.significance import (
    DOCUMENT_LEVEL,
    _among_models,
    adjust_p_values,
    gap_p_value,
    weighted_holm,
)
from calibrant.metrics import confidence_gap
from calibrant.metrics.stats.multiplicity import holm


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


def entry_of(calibration, gap, separation, *, group=None):
    """An entry that has nothing but three p-values."""
    tests = {"calibration": calibration, "gap": gap, "separation": separation}
    found = {name: None if p is None else {"p_value": p} for name, p in tests.items()}
    if found["separation"]:
        found["separation"]["p_within"] = 1.0
    found["within_margin"] = {"gap": None, "error": None}
    return {"probability": True, "group": group, "significance": found}


def is_shown(entry):
    tests = (entry["significance"][name] for name in ("calibration", "gap", "separation"))
    return any(test is not None and test["p_adjusted"] <= ALPHA for test in tests)


@pytest.mark.parametrize(("models", "groups"), [(1, 0), (40, 0), (3, 12)])
def test_any_false_sentence_of_a_document_is_as_rare_as_in_one_model(models, groups):
    """Each tested alone, almost every audit of forty calibrated confidences would make one."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(1_000):
        rows = rng.random((models + groups, 3))
        entries = [
            entry_of(*p, group={"topic": "a"} if number >= models else None)
            for number, p in enumerate(rows)
        ]
        adjust_p_values(entries)
        false += any(map(is_shown, entries))
    # 45 expected at most; four standard deviations above.
    assert false < 71
    assert false > 10


def test_a_model_that_is_done_with_leaves_its_level_to_the_others():
    entries = [entry_of(1e-9, 1e-9, 1e-9), entry_of(0.03, 0.9, 1e-9)]
    adjust_p_values(entries)
    assert entries[1]["significance"]["calibration"]["p_adjusted"] <= ALPHA
    still_open = [entry_of(1e-9, 0.9, 1e-9), entry_of(0.03, 0.9, 1e-9)]
    adjust_p_values(still_open)
    assert still_open[1]["significance"]["calibration"]["p_adjusted"] > ALPHA


def test_a_direction_needs_an_error_that_is_shown():
    entry = entry_of(0.2, 1e-9, None)
    adjust_p_values([entry])
    assert entry["significance"]["gap"]["p_adjusted"] > ALPHA


def test_where_the_margin_was_tested_and_not_reached_a_direction_has_less():
    for tested, level in ((True, 0.03), (False, DOCUMENT_LEVEL)):
        for p, shown in ((0.99 * level, True), (1.01 * level, False)):
            entry = entry_of(1e-9, p, None)
            within = {"p_value": 0.9, "reachable": 0.001 if tested else 0.5}
            within |= {"accuracy_agrees": True, "smooth": True}
            entry["significance"]["within_margin"]["error"] = within
            adjust_p_values([entry])
            assert (entry["significance"]["gap"]["p_adjusted"] <= ALPHA) is shown


def test_weighted_holm_is_that_of_a_loop():
    rng = np.random.default_rng(2)
    for first, second in rng.random((200, 2)) ** 3:
        found = weighted_holm(first, second)
        for level in (0.01, 0.045, 0.2):
            left, shown = {0: (first, 0.7), 1: (second, 0.3)}, set()
            while hit := {
                k
                for k, (p, w) in left.items()
                if p <= level * w / sum(part for _, part in left.values())
            }:
                shown |= hit
                left = {k: test for k, test in left.items() if k not in hit}
                if not left:
                    break
            assert shown == {k for k in (0, 1) if found[k] <= level}


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
    assert document["multiplicity"]["whole"] == {"confidences": 16, "tests": 48}


def test_groups_take_a_third_of_the_level():
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
    assert document["multiplicity"]["groups"]["tests"] == 24
    gaps = [entry["significance"]["gap"] for entry in (alone, whole)]
    assert gaps[0]["p_value"] == gaps[1]["p_value"]
    assert gaps[1]["p_adjusted"] == pytest.approx(1.5 * gaps[0]["p_adjusted"])
    assert whole["verdict"]["calibration"] == "over-confident"


def test_small_p_values_are_told_apart_below_a_thousandth():
    rng = np.random.default_rng(4)
    said = rng.uniform(0.7, 1, 300)
    right = rng.random(300) < said - 0.15
    test = cal.audit(said, right, resamples=20)["results"][0]["significance"]["calibration"]
    assert 1e-15 <= test["p_value"] < 1e-4


def test_a_rare_error_that_is_absent_by_chance_is_no_under_confidence():
    """Twenty right answers at 0.95: no spread between the rows, and nothing out of the ordinary."""
    entry = cal.audit(np.full(20, 0.95), np.ones(20), resamples=20)["results"][0]
    exact = 0.95**20
    assert entry["significance"]["gap"]["p_value"] > exact
    assert entry["verdict"]["calibration"] == "undecided"


def test_student_is_that_of_the_interval():
    for level in (0.8, 0.95, 0.99):
        rng = np.random.default_rng(6)
        said = rng.uniform(0.4, 1, 50)
        gap = confidence_gap(said, rng.random(50) < said - 0.1, level=level)
        p_value = gap_p_value(gap, 0.0)
        assert (p_value < 1 - level) == (gap.low > 0 or gap.high < 0)
        assert gap_p_value(gap, 0.9) == max(p_value, 0.9)
    assert gap_p_value(Estimate(0.1, 0.1, 0.1, n=9), 0.3) == 0.3


def test_rows_of_one_question_are_tested_between_questions():
    rng = np.random.default_rng(7)
    said = np.repeat(rng.uniform(0.5, 0.9, 60), 4)
    # Four answers to a question are alike: as many rows as they seem, and a fourth of the facts.
    right = np.repeat((rng.random(60) < said[::4] - 0.1).astype(int), 4)
    table = {"question_id": np.repeat(np.arange(60), 4), "confidence": said, "correct": right}
    repeated = cal.audit(table, repeats=True, resamples=20)["results"][0]
    once = cal.audit(said[::4], right[::4], resamples=20)["results"][0]
    for name in ("calibration", "gap"):
        own, other = (entry["significance"][name]["p_value"] for entry in (repeated, once))
        assert own == pytest.approx(other, rel=1e-9)
    assert repeated["metrics"]["error"] == once["metrics"]["error"]
    assert repeated["calibration_test"]["p_value"] is None


def test_five_questions_say_nothing_about_others():
    rng = np.random.default_rng(8)
    table = {
        "question_id": np.repeat(np.arange(5), 40),
        "confidence": rng.uniform(0.8, 1, 200),
        "correct": (rng.random(200) < 0.5).astype(int),
    }
    document = cal.audit(table, repeats=True, resamples=20)
    assert {claim["outcome"] for claim in document["claims"]} <= {"undecided", "equivalent"}
    assert "at least 6 are needed" in document["claims"][0]["text"]


def test_grades_are_tested_without_a_law_of_right_and_wrong():
    outcomes = {0.0: [], 0.15: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        said = rng.uniform(0.5, 1, 500)
        for off, words_so_far in outcomes.items():
            grade = rng.beta(8 * (said - off), 8 * (1 - said + off))
            document = cal.audit(said, grade, graded=True, resamples=20)
            claims = {claim["id"]: claim["outcome"] for claim in document["claims"]}
            words_so_far.append((claims["audit.miscalibrated"], claims.get("audit.over_confident")))
    assert outcomes[0.15] == [("shown", "shown")] * 20
    # At most 5 % of calibrated grades are called miscalibrated: more than 3 of 20 in 1.6 %.
    assert {error for error, _ in outcomes[0.0]} <= {"undecided", "shown"}
    assert [error for error, _ in outcomes[0.0]].count("shown") <= 3


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


def shown_at(needed):
    """The least level at which every test is shown: all numbers of models done before are tried."""
    models = len(needed)
    whole = np.nan_to_num(needed).max(axis=1)
    order = np.argsort(whole, kind="stable")
    left = models - np.arange(models)
    freed = np.append(0.0, np.maximum.accumulate(whole[order] * left)[:-1])
    found = np.empty_like(needed)
    for place, model in enumerate(order):
        before = slice(place + 1)
        steps = np.maximum(freed[before, None], needed[model] * left[before, None])
        found[model] = steps.min(axis=0)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_levels_of_many_models_are_those_of_every_step_tried(seed):
    rng = np.random.default_rng(seed)
    needed = rng.random((int(rng.integers(2, 40)), 3)) ** int(rng.integers(1, 8))
    needed = needed.round(1) if seed % 2 else needed
    needed[rng.random(needed.shape) < 0.2] = np.nan
    np.testing.assert_array_equal(_among_models(needed), shown_at(needed))
