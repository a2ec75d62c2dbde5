"""The demo: the recorded study for real, and the live study without its model."""

import json
import tomllib
from string import Template

import polars as pl
import pytest
from studies.recorded_demo import graded

import calibrant as cal
from calibrant.core.document import kind_of, load_document
from calibrant.models.study.config import parse_config
from calibrant.verbs import demo
from calibrant.verbs.demo import _FOLDER, METHODS, recorded_questions
from support import schema_errors

SIZE_LIMIT = 3_000_000


def config(whole, folder):
    parts = ("live.toml", "second_model.toml") if whole else ("live.toml",)
    text = "".join((demo._STUDIES / name).read_text(encoding="utf-8") for name in parts)
    text = Template(text).substitute(
        seed=3,
        questions=8,
        models="one",
        methods='"all"' if whole else demo._SHORT_METHODS,
        pool="true" if whole else "false",
        draws=8 if whole else 6,
    )
    return parse_config(tomllib.loads(text), folder=folder, source="study.toml")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "demo"
    return demo.demo(folder, recorded=True), folder


def test_the_recorded_study_ends_in_a_finding(recorded):
    result, folder = recorded
    assert (folder / "report.html").stat().st_size < SIZE_LIMIT
    # The questions come domain by domain: for most sentences that order is a dependence, and the
    # first finding is the one that holds beyond these rows.
    first, *_ = result["findings"]
    assert "stated confidence) says 94 %, is right 28 %: over-confident by 66 points" in first
    assert "(95 % interval" in first
    assert {"audit", "compare", "groups", "decide", "cascade", "plan"} <= set(result["done"])
    # The step that is named to a newcomer ends in a promise.
    assert f"calibrant decide {folder} --cluster question_id" in result["next"][1]
    certified = [e["certified"] for e in cal.decide(folder, **demo._PROMISE)["results"]]
    assert any(certified)
    assert "parts" in result
    assert list(result["parts"]) == ["recorded"]
    assert schema_errors(result.to_dict()) == []
    stored = [load_document(path) for path in sorted((folder / "results").glob("*.json"))]
    assert {"analysis", "audit", "cascade", "study"} <= {kind_of(document) for document in stored}
    assert [error for document in stored for error in schema_errors(document)] == []


def test_shipped_classes_and_grades_are_those_that_the_rules_make_now():
    found = graded()
    how = 'python -c "from studies.recorded_demo import grade; grade()"'
    for name, table in (("answers", found.draws), ("semantics", found.semantics)):
        shipped = pl.read_parquet((_FOLDER / f"{name}.parquet").read_bytes())
        assert shipped.equals(table), how
    told = json.loads((_FOLDER / "semantics.json").read_bytes())
    assert told == json.loads(json.dumps(found.document)), how


def test_grades_agree_with_the_models_skill(recorded):
    _, folder = recorded
    scores = pl.read_parquet(folder / "tables" / "scores.parquet")
    assert set(scores["method"].unique()) == set(METHODS)
    right = dict(
        scores.filter(pl.col("method") == "p_true_prob")
        .group_by("model")
        .agg(pl.col("correct").mean())
        .iter_rows()
    )
    assert 0.1 < right["qwen2.5-coder-0.5b"] < 0.3 < right["qwen2.5-coder-1.5b"] < 0.55


def test_a_second_call_makes_nothing_anew(recorded):
    _, folder = recorded
    table = folder / "tables" / "scores.parquet"
    before = table.stat().st_mtime_ns, (folder / "report.html").stat().st_mtime_ns
    demo.demo(folder, recorded=True)
    assert (table.stat().st_mtime_ns, (folder / "report.html").stat().st_mtime_ns) == before


def test_the_recorded_study_is_a_study_for_every_verb(recorded):
    _, folder = recorded
    audit = cal.audit(folder, by=["domain"], resamples=20)
    assert any(entry["group"] == {"domain": "awards"} for entry in audit["results"])
    assert (folder / "SOURCES.md").is_file()


@pytest.mark.parametrize("wanted", [demo._SHORT, demo._FULL])
def test_live_questions_are_shipped_ones_with_their_answers(wanted):
    questions = demo.live_questions(wanted)
    assert questions.height == sum(wanted.values())
    assert questions["references"].list.len().min() > 0
    assert set(questions["question_id"]) <= set(recorded_questions()["question_id"])


def test_the_short_live_run_asks_one_model_and_the_whole_one_two(tmp_path):
    assert [model.name for model in config(False, tmp_path).models] == ["few-shot"]
    whole = config(True, tmp_path)
    assert [model.name for model in whole.models] == ["few-shot", "plain"]
    assert whole.methods is None
    assert whole.candidate_pool
