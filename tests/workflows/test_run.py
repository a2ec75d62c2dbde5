"""The whole chain against an endpoint on the loopback: asked once, never twice."""

import json
import os
import signal
import subprocess
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from calibrant.core.errors import BudgetError, CapabilityError, InputError
from calibrant.data import Study
from calibrant.report import render_text
from calibrant.verbs.run import run
from collect.endpoint import Oracle
from collect.studies import QUESTIONS, write_study
from support import CALIBRANT, MEASURED, call

TABLES = ("questions", "draws", "semantics", "scores")


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as server:
        yield server


@pytest.fixture(scope="module")
def finished(tmp_path_factory, oracle):
    """A study that has been run once, its document, and the calls that took."""
    folder = write_study(tmp_path_factory.mktemp("run") / "study", oracle.url)
    before = len(oracle.calls)
    result = run(folder)
    return folder, result, len(oracle.calls) - before


def tables(folder):
    return {name: Study(folder).read(name) for name in TABLES}


def assert_same(left, right, *, measured=True):
    for name in TABLES:
        drop = () if measured else MEASURED
        assert_frame_equal(
            left[name].drop(*drop, strict=False), right[name].drop(*drop, strict=False)
        )


def test_dry_run_sends_nothing_and_leaves_nothing_behind(tmp_path, oracle):
    folder = write_study(tmp_path / "study", oracle.url)
    before = len(oracle.calls)
    plan = run(folder, dry_run=True)["plan"]
    assert len(oracle.calls) == before
    assert {path.name for path in folder.iterdir()} == {"study.toml", "questions.jsonl"}
    draws = {row["probe"]: row["draws_wanted"] for row in plan["rows"]}
    n = len(QUESTIONS)
    assert draws == {
        "greedy": n, "samples": 4 * n, "verb": n, "verb_samples": 4 * n, "verb_topk": n,
        "verb_topk_samples": 4 * n, "p_true": 4 * n, "p_true_cand": 4 * n, "self_ask": n,
        "self_ask_cand": n,
    }  # fmt: skip
    assert plan["total"]["calls"] == 10 * n
    assert plan["total"]["cost"] is None


def test_the_plan_was_a_bound(tmp_path, oracle, finished):
    folder = write_study(tmp_path / "study", oracle.url)
    plan = run(folder, dry_run=True)["plan"]["total"]
    _, result, calls = finished
    spent = result["counts"][0]
    assert calls == spent["calls"] <= plan["calls"]
    assert spent["draws_new"] <= plan["draws_wanted"]
    assert spent["completion_tokens"] <= plan["completion_tokens"]


def test_tables_hold_together(finished):
    folder, result, _ = finished
    found = tables(folder)
    draws, semantics, scores = found["draws"], found["semantics"], found["scores"]
    assert draws.select("question_id", "purpose", "draw").is_unique().all()
    assert draws.select("question_id", "model", "purpose", "draw").equals(
        semantics.select("question_id", "model", "purpose", "draw")
    )
    greedy = draws.filter(pl.col("purpose") == "greedy")
    assert greedy["temperature"].unique().to_list() == [0.0]
    assert greedy["token_logprobs"].null_count() == 0
    second = draws.filter(pl.col("purpose").is_in(["p_true", "self_ask"]))
    about = second.join(greedy.select("question_id", right="answer"), on="question_id")
    assert about.height > 0
    assert (about["about"] == about["right"]).all()
    verb = draws.filter(pl.col("purpose") == "verb")
    assert verb.filter(pl.col("draw") == 0)["temperature"].unique().to_list() == [0.0]
    assert verb.filter(pl.col("draw") > 0)["temperature"].unique().to_list() == [1.0]
    assert scores.select("question_id", "method").is_unique().all()
    assert {entry["method"] for entry in result["results"]} == set(
        scores.drop_nulls("correct")["method"]
    )
    assert set(scores["domain"]) == {"math", "cities"}


def test_every_grade_is_the_grade_of_that_very_answer(finished):
    found = tables(finished[0])
    graded = (
        found["draws"]
        .select("question_id", "purpose", "draw", "answer")
        .join(found["semantics"], on=["question_id", "purpose", "draw"])
        .filter(pl.col("correct").is_not_null(), pl.col("purpose") != "verb_topk")
        .group_by("question_id", "answer")
        .agg(grades="correct")
    )
    # sem2 means the answers that its splits choose: its grade is their mean. Tied modes of sem1
    # share theirs.
    whole = pl.col("correct").is_in([0.0, 1.0])
    joined = (
        found["scores"]
        .filter(whole, pl.col("about") != "selected")
        .join(graded, on=["question_id", "answer"])
    )
    assert joined.height > 200
    same = joined.select(pl.col("grades").list.contains(pl.col("correct") == 1.0))
    assert same.to_series().all()


def test_a_second_run_sends_nothing_and_changes_nothing(oracle, finished):
    folder = finished[0]
    before, calls = tables(folder), len(oracle.calls)
    result = run(folder)
    assert len(oracle.calls) == calls
    assert result["counts"][0]["calls"] == 0
    assert result["counts"][0]["draws_new"] == 0
    assert_same(tables(folder), before)
    assert run(folder, dry_run=True)["plan"]["total"]["calls"] == 0
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert set(Study(folder).results()) >= {"audit", "run"}


def test_more_draws_add_only_the_missing_ones(tmp_path, oracle):
    folder = write_study(tmp_path / "study", oracle.url, extra='methods = ["consistency"]')
    run(folder)
    old = Study(folder).read("draws")
    write_study(folder, oracle.url, extra='methods = ["consistency", "verb"]', draws=6)
    result = run(folder)
    assert result["counts"][0]["draws_new"] == (2 + 1) * len(QUESTIONS)
    new = Study(folder).read("draws").filter(pl.col("purpose") == "answer", pl.col("draw") < 4)
    assert_frame_equal(new, old)
    # Draws of a later run are as independent as those of the first.
    assert (
        Study(folder).read("draws").filter(pl.col("purpose") == "answer")["seed"].is_unique().all()
    )


def test_replay_gives_identical_tables(tmp_path, oracle, finished):
    folder = finished[0]
    copy = write_study(tmp_path / "again", "unused")
    text = (copy / "study.toml").read_text().replace('client = "vllm"', 'client = "replay"')
    text = text.replace('base_url = "unused"', f'ledger = "{folder}/ledger.sqlite"')
    (copy / "study.toml").write_text(text)
    calls = len(oracle.calls)
    run(copy)
    assert len(oracle.calls) == calls
    drop = "cost"  # what was paid then is not paid again
    left, right = tables(copy), tables(folder)
    for found in (left, right):
        found["draws"] = found["draws"].drop(drop)
    assert_same(left, right)


def test_caps_refuse_before_anything_is_sent(tmp_path, oracle):
    calls = len(oracle.calls)
    for cap in ("max_calls = 5", "max_tokens = 100"):
        name = cap.split()[0]
        folder = write_study(tmp_path / name, oracle.url, tail=f"[budget]\n{cap}")
        with pytest.raises(BudgetError, match=f"budget.{name} is"):
            run(folder)
    assert len(oracle.calls) == calls


def test_caps_stop_a_run_that_may_go_on_later(tmp_path, oracle):
    settings = {"extra": 'methods = ["consistency"]\nconcurrency = 1'}
    budget = '[budget]\nmax_calls = 4\nwhen = "stop"'
    folder = write_study(tmp_path / "study", oracle.url, **settings, tail=budget)
    calls = len(oracle.calls)
    stopped = run(folder)
    assert "cap of 4 calls" in stopped["stopped"]
    assert len(oracle.calls) == calls + 4
    write_study(folder, oracle.url, **settings)
    assert run(folder)["counts"][0]["calls"] == len(QUESTIONS) - 4


def test_a_reached_cap_is_the_first_line_and_has_an_exit_status(tmp_path, oracle):
    settings = {"extra": 'methods = ["consistency"]\nconcurrency = 1'}
    budget = '[budget]\nmax_calls = 4\nwhen = "stop"'
    folder = write_study(tmp_path / "study", oracle.url, **settings, tail=budget)
    done = call("run", folder)
    assert done.returncode == 3
    title, first = done.stdout.split("\n\n")[:2]
    assert "\n" not in title
    assert first.startswith("Stopped at a cap: the cap of 4 calls is reached")
    assert f"{(len(QUESTIONS) - 4) * 4} of {len(QUESTIONS) * 4} draws are missing" in done.stderr
    assert "-> raise it in [budget] and run again" in done.stderr


def test_what_an_endpoint_cannot_give_is_said_before_anything_is_sent(tmp_path, oracle):
    calls = len(oracle.calls)
    bare = "capabilities = { logprobs = false, top_logprobs = 0 }"
    folder = write_study(tmp_path / "a", oracle.url, extra='methods = ["sca"]', tail=bare)
    with pytest.raises(CapabilityError, match="the method sca cannot be used"):
        run(folder)
    assert len(oracle.calls) == calls
    folder = write_study(tmp_path / "b", oracle.url, tail=bare)
    result = run(folder)
    reasons = {entry["method"]: entry["reason"] for entry in result["methods"]}
    assert reasons["sca"] == "the endpoint gives no log-probs"
    assert "sca" not in set(Study(folder).read("scores")["method"])
    assert "p_true_consistency" in set(Study(folder).read("scores")["method"])


def test_an_unknown_method_names_the_file_and_the_nearest_one(tmp_path, oracle):
    folder = write_study(tmp_path / "study", oracle.url, extra='methods = ["consistncy"]')
    with pytest.raises(InputError, match=r"study\.toml: methods: there is no method 'consistncy'"):
        run(folder, dry_run=True)


def test_two_models_judge_each_other(tmp_path, oracle):
    second = f'[[models]]\nname = "other"\nclient = "vllm"\nbase_url = "{oracle.url}"'
    extra = 'methods = ["p_true_prob"]\ncandidate_pool = true'
    folder = write_study(tmp_path / "study", oracle.url, extra=extra, tail=second)
    calls = len(oracle.calls)
    run(folder)
    study = Study(folder)
    candidates = study.read("candidates")
    pairs = candidates.group_by("question_id").agg(pl.struct("judge", "author").n_unique())
    assert pairs["judge"].max() == 4
    own = candidates.filter(pl.col("judge") == pl.col("author")).join(
        study.read("scores"), left_on=["question_id", "judge"], right_on=["question_id", "model"]
    )
    # A verdict on one's own answer is one verdict, whichever table it is read from.
    assert own.height > 10
    assert (own["confidence"] == own["confidence_right"]).all()
    assert (own["correct"] == own["correct_right"]).all()
    bodies = [json.dumps(call["messages"]) + call["model"] for call in oracle.calls[calls:]]
    verdicts = [body for body in bodies if "Is it right?" in body]
    assert len(set(verdicts)) == len(verdicts)


def test_two_models_state_how_sure_they_are_of_each_others_answers(tmp_path, oracle):
    second = f'[[models]]\nname = "other"\nclient = "vllm"\nbase_url = "{oracle.url}"'
    extra = 'methods = ["self_ask"]\ncandidate_pool = true'
    folder = write_study(tmp_path / "study", oracle.url, extra=extra, tail=second)
    forecast = run(folder, dry_run=True)
    assert "self_ask_pool" in json.dumps(dict(forecast))
    run(folder)
    study = Study(folder)
    candidates = study.read("candidates").filter(pl.col("method") == "self_ask")
    pairs = candidates.group_by("question_id").agg(pl.struct("judge", "author").n_unique())
    assert pairs["judge"].max() == 4
    own = candidates.filter(pl.col("judge") == pl.col("author")).join(
        study.read("scores"), left_on=["question_id", "judge"], right_on=["question_id", "model"]
    )
    assert own.height > 10
    assert (own["confidence"] == own["confidence_right"]).all()


def test_choice_questions_are_scored_by_their_options(tmp_path, oracle):
    folder = write_study(tmp_path / "study", oracle.url, extra='methods = ["option_softmax"]')
    rows = [
        {
            "question": f"Which of these is number {number}?",
            "choices": ["one", "two", "three"],
            "answer": number % 3,
            "subject": "numbers",
        }
        for number in range(12)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(folder)
    scores = Study(folder).read("scores")
    assert scores.height == 12
    assert scores["confidence"].is_between(1 / 3, 1.0).all()


def test_rows_of_a_table_become_yes_no_questions(tmp_path, oracle):
    folder = write_study(tmp_path / "study", oracle.url, extra='methods = ["yes_no_ratio"]')
    text = (folder / "study.toml").read_text()
    tabular = (
        '{ path = "people.csv", tabular = { target = "rich", positive = 1, '
        'question = "Is this person rich?", columns = { age = "The age is {value} years." } } }'
    )
    (folder / "study.toml").write_text(text.replace('"questions.jsonl"', tabular))
    lines = "".join(f"{age},{age % 2}\n" for age in range(20, 40))
    (folder / "people.csv").write_text("age,rich\n" + lines)
    run(folder)
    scores = Study(folder).read("scores")
    assert scores.height == 20
    assert "age" in scores.columns
    # The confidence is that of the answer named in the row, and so is the grade.
    said_yes = scores["answer"].str.to_lowercase() == "yes"
    rich = scores["age"].cast(pl.Int64) % 2 == 1
    assert ((said_yes == rich) == (scores["correct"] == 1.0)).all()


def test_no_key_is_ever_written(tmp_path, oracle, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    folder = write_study(
        tmp_path / "study",
        oracle.url,
        extra='methods = ["verb"]',
        tail='api_key_env = "MY_KEY"',
    )
    run(folder)
    for path in folder.rglob("*"):
        assert path.is_dir() or b"sk-very-secret" not in path.read_bytes(), path


def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path):
    with Oracle(latency_s=0.05) as slow:
        folder = write_study(tmp_path / "study", slow.url, extra="concurrency = 2")
        process = subprocess.Popen(
            [CALIBRANT, "run", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while len(slow.calls) < 10:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "answers that had arrived are kept" in stderr
        assert "Traceback" not in stderr
        kept = run(folder, dry_run=True)["plan"]["total"]["draws_held"]
        assert kept >= 8
        assert run(folder)["counts"][0]["draws_cached"] == kept


def test_bad_input_is_a_message_and_exit_code_2(tmp_path):
    (tmp_path / "study.toml").write_text("questions = 'q.jsonl'\n[[models]]\nname = 'x'\n")
    done = call("run", tmp_path)
    assert done.returncode == 2
    assert "study.toml: models[1].client: this setting is needed" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_voids_a_run_is_said_before_its_numbers(finished):
    note = {
        "model": "oracle",
        "kind": "draws-not-independent",
        "message": "9 of 9 repeat",
        "count": 9,
    }
    text = render_text({**finished[1].to_dict(), "findings": [note]})
    assert text.index("oracle: 9 of 9 repeat.") < text.index("from the ledger")
