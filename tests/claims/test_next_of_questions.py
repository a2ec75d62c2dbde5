"""What comes after `grade`, `bench check` and `plan`: a command that can be typed as it stands."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.findings.claims.next_step import next_step
from calibrant.report.terminal import render_text
from calibrant.verbs.init import init

SAMPLES = {
    "question": ["Capital of Peru?", "2 + 2?"] * 2,
    "id": ["a", "b", "c", "d"],
    "replies": [["Lima", "Quito", "Lima."], ["4", "5", "four"]] * 2,
}
GOLD = {"gold": ["Lima", "4"] * 2}


def shown_step(found):
    lines = render_text(found.to_dict(), width=200).splitlines()
    return next(line for line in lines if line.startswith("Next:")).removeprefix("Next:").strip()


def test_graded_answers_lead_to_an_audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(SAMPLES | GOLD).write_ndjson("samples.jsonl")
    found = cal.grade("samples.jsonl", "my study", samples="replies")
    assert shown_step(found) == "calibrant audit 'my study'"
    text = render_text(found.to_dict(), width=200)
    assert "Written to my study/tables: questions, draws, semantics, scores." in text
    assert "Guessed columns: gold (right answers)" in text


def test_grades_that_are_not_kept_lead_to_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(SAMPLES).write_ndjson("samples.jsonl")
    names = {"id": "question_id", "question": "text", "gold": "references"}
    table = pl.DataFrame(SAMPLES | GOLD).select(*names).rename(names)
    table.write_ndjson("gold.jsonl")
    wanted = "calibrant grade samples.jsonl --samples replies --references gold.jsonl --out study"
    for verb in (cal.grade, cal.audit):
        found = verb("samples.jsonl", samples="replies", references="gold.jsonl")
        assert shown_step(found) == wanted


def test_a_step_that_leaves_the_weights_behind_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    cells = {"p": rng.random(200), "y": rng.integers(0, 2, 200), "w": rng.random(200) + 0.5}
    pl.DataFrame(cells).write_csv("s.csv")
    found = cal.audit("s.csv", confidence="p", correct="y", weights="w")["next"]
    assert found["command"].startswith("calibrant mend s.csv --confidence p --correct y")
    assert found["why"].endswith("(`mend` has no weights: every row counts once)")
    assert "weights" not in cal.audit("s.csv", confidence="p", correct="y")["next"]["why"]


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("q.jsonl", "calibrant init study && cp q.jsonl study/questions.jsonl"),
        ("mine/q.jsonl", "calibrant run mine"),
    ],
)
def test_questions_that_hold_are_asked(tmp_path, monkeypatch, place, command):
    monkeypatch.chdir(tmp_path)
    init("mine")
    cal.bench_mace(place, domains=["math"], k=[1, 2], per_k=3)
    assert shown_step(cal.bench_check(place)) == command


def test_questions_that_do_not_hold_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "Name one perfect square from 5 to 20, both included."
    pl.DataFrame({"text": [text], "references": [["9"]], "domain": ["math"]}).write_ndjson(
        "q.jsonl"
    )
    found = cal.bench_check("q.jsonl")
    assert shown_step(found) == "calibrant bench check q.jsonl --json problems.json"
    assert next_step(cal.bench_check(pl.read_ndjson("q.jsonl")).to_dict()) is None


@pytest.mark.parametrize("options", [{}, {"claim": "ece<0.2"}, {"precision": 0.1}])
def test_a_plan_for_labelled_rows_leads_to_their_audit(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 200)
    table = pl.DataFrame({"confidence": sure, "correct": (rng.random(200) < sure).astype(int)})
    table.write_csv("scores.csv")
    assert shown_step(cal.plan("scores.csv", **options)) == "calibrant audit scores.csv"
    table.drop("correct").write_csv("open.csv")
    step = shown_step(cal.plan("open.csv", claim="ece<0.2"))
    assert step == "calibrant label next open.csv --out batch.csv"
