"""Grades that the program made itself: their errors reach every verb's claims, checks mend them."""

import polars as pl
import pytest

import calibrant
from grading_world import check, world


def outcome(document, name):
    return next(claim for claim in document["claims"] if claim["id"].endswith(name))


def test_a_gap_that_errors_of_the_grader_could_explain_depends_on_the_grades(tmp_path):
    study, _, _ = world(tmp_path / "s", gap=0.1)
    found = calibrant.audit(study.path, resamples=100)
    claim = next(claim for claim in found["claims"] if "confident" in claim["id"])
    grading = found["results"][0]["grading"]
    assert grading["doubtful"] == pytest.approx(0.4, abs=0.06)
    assert grading["gap"]["low"] < 0 < grading["gap"]["high"]
    assert claim["outcome"] in ("depends", "undecided")
    warning = next(w for w in found["data"]["warnings"] if w["id"] == "data.grades")
    assert "none is checked" in warning["text"]
    assert "60 checked grades would tell it" in warning["text"]
    assert found["next"]["command"] == f"calibrant label serve {study.path} --grades"


def test_checks_show_what_grades_hide(tmp_path):
    study, truth, table = world(tmp_path / "s", gap=0.12)
    check(study, truth, table)
    found = calibrant.audit(study.path, resamples=100)
    entry = found["results"][0]
    told = entry["metrics"]["accuracy"]
    assert entry["grading"]["as_graded"]["accuracy"]["value"] > truth["m"].mean() + 0.03
    assert told["low"] <= truth["m"].mean() <= told["high"]
    assert outcome(found, "over_confident")["outcome"] == "shown"
    assert "are checked. Accuracy is" in found["data"]["warnings"][0]["text"]


def test_a_large_gap_stands_without_checks(tmp_path):
    study, _, _ = world(tmp_path / "s", gap=0.5)
    found = calibrant.audit(study.path, resamples=100)
    assert outcome(found, "over_confident")["outcome"] == "shown"


def test_a_lead_that_kind_grades_gave_depends_on_them_and_checks_take_it_away(tmp_path):
    study, truth, table = world(tmp_path / "s", wrong_accepts=0.3, gap=0.2, models=("a", "b"))
    found = calibrant.compare(study.path, resamples=100)
    claim = outcome(found, "more_accurate")
    assert claim["outcome"] == "depends"
    assert claim["text"].startswith("Depends on the grades")
    assert found["pairs"][0]["verdict"] in ("depends", "undecided")
    check(study, truth, table)
    grading = calibrant.compare(study.path, resamples=100)["pairs"][0]["grading"]
    step = truth["a"].mean() - truth["b"].mean()
    assert grading["accuracy"]["low"] <= step <= grading["accuracy"]["high"]


def test_a_promise_on_doubtful_grades_depends_on_them(tmp_path):
    study, truth, table = world(tmp_path / "s", wrong_accepts=0.0, gap=0.0)
    saved = tmp_path / "policy.json"
    found = calibrant.decide(study.path, max_error=0.25, save=saved)
    assert found["results"][0]["certified"]
    assert found["claims"][0]["outcome"] == "depends"
    promise = calibrant.load_policy(saved).promise
    assert (promise["certified"], promise["depends_on"]) == (False, "grades")
    check(study, truth, table, 300)
    again = calibrant.decide(study.path, max_error=0.25, save=saved)
    assert again["claims"][0]["outcome"] == "shown"
    promise = calibrant.load_policy(saved).promise
    assert promise["certified"]
    assert "depends_on" not in promise


def test_grades_that_were_given_are_taken_as_they_are(tmp_path):
    study, _, _ = world(tmp_path / "s")
    study.write("semantics", study.read("semantics").with_columns(grader=pl.lit("given")))
    found = calibrant.audit(study.path, resamples=100)
    assert found["results"][0].get("grading") is None


def test_answers_drawn_once_have_an_audit_without_meanings(tmp_path):
    study, _, _ = world(tmp_path / "s")
    assert calibrant.audit(study.path, resamples=100)["sem_ece"] == []
