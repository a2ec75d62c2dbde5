"""`init` writes what can be run at once, and `run` asks before it spends money."""

import os
import pty
import subprocess
import sys
import tomllib

import pytest
from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.data.questions import load_questions
from calibrant.models.study.config import parse_config
from calibrant.models.study.costs import Forecast, ForecastRow
from calibrant.verbs.init import init
from calibrant.verbs.run import run
from calibrant.verbs.study.run_document import paid_models, spending_question
from collect.endpoint import Oracle
from collect.studies import write_study
from support import CALIBRANT, call, need_small_model

ROW = ForecastRow("gpt", "verb", "verb", 200, 0, 200, 9000, 4000, 2.5)


def test_a_new_study_is_ready_to_run(tmp_path):
    need_small_model("smollm2-135m-instruct")
    done = call("init", tmp_path / "first")
    assert done.returncode == 0, done.stderr
    assert "calibrant run" in done.stdout
    assert load_questions(tmp_path / "first" / "questions.jsonl").height == 5
    plan = run(tmp_path / "first", dry_run=True)["plan"]["total"]
    assert plan["calls"] > 0
    assert plan["cost"] == 0.0


def test_settings_that_are_commented_out_are_settings(tmp_path):
    init(tmp_path / "first")
    text = (tmp_path / "first" / "study.toml").read_text()
    notes = ("# [[", '# name = "mini', "# client", "# model", "# api_key_env", "# max_cost")
    lines = [
        line.removeprefix("# ") if line.startswith(notes) else line for line in text.splitlines()
    ]
    config = parse_config(tomllib.loads("\n".join(lines)), folder=tmp_path, source="study.toml")
    assert [model.name for model in config.models] == ["small", "mini"]
    assert (config.budget.ask_above, config.budget.max_cost) == (1.0, 10.0)


CENSUS = "age,job {x},income\n39,clerk,<=50K\n52,,>50K\n28,nurse,<=50K\n"


def test_rows_of_a_table_become_yes_no_questions_about_one_outcome(tmp_path):
    (tmp_path / "people.csv").write_text(CENSUS)
    done = call("init", tmp_path / "census", "--table", tmp_path / "people.csv",
                "--target", "income")  # fmt: skip
    assert done.returncode == 0, done.stderr
    study = tmp_path / "census"
    text = (study / "study.toml").read_text()
    with Oracle() as oracle:
        known = text.index("[[models]]")
        server = (
            f'[[models]]\nname = "m"\nclient = "openai"\nbase_url = "{oracle.url}"\nmodel = "m"\n'
        )
        (study / "study.toml").write_text(text[:known] + server)
        run(study)
    asked = Study(study).read("questions")
    assert asked["references"].to_list() == [[["No"]], [["Yes"]], [["No"]]]
    assert "The age is 52." in asked["text"][1]
    assert asked["age"].to_list() == [39, 52, 28]
    scores = Study(study).read("scores")
    assert set(scores["method"]) == {"yes_no_ratio", "verb"}


def test_a_table_without_two_outcomes_is_refused_by_name(tmp_path):
    (tmp_path / "people.csv").write_text(CENSUS)
    for more, why in (([], "which column"), (["--target", "incom"], "did you mean 'income'"),
                      (["--target", "age"], "has two values, got 3")):  # fmt: skip
        done = call("init", tmp_path / "census", "--table", tmp_path / "people.csv", *more)
        assert done.returncode == 2
        assert why in done.stderr
    assert not (tmp_path / "census").exists()


def test_nothing_is_written_over(tmp_path):
    init(tmp_path / "first")
    (tmp_path / "first" / "study.toml").write_text("mine")
    done = call("init", tmp_path / "first")
    assert done.returncode == 2
    assert "not written over" in done.stderr
    assert (tmp_path / "first" / "study.toml").read_text() == "mine"


def test_a_missing_study_says_how_to_make_one(tmp_path):
    with pytest.raises(InputError, match="calibrant init"):
        _ = Study(tmp_path / "nope").config


def test_who_is_asked_about():
    free = replace(ROW, model="small", cost=0.0)
    unknown = replace(ROW, cost=None)
    assert spending_question(Forecast((free,)), paid=["gpt"], limit=0.0) is None
    assert spending_question(Forecast((ROW,)), paid=["gpt"]) is None
    assert spending_question(Forecast((ROW,)), paid=["gpt"], limit=2.5) is None
    assert "$2.50" in spending_question(Forecast((ROW, free)), paid=["gpt"], limit=2.49)
    assert "price of gpt is unknown" in spending_question(Forecast((unknown,)), paid=["gpt"])
    held = replace(unknown, calls=0)
    assert spending_question(Forecast((held,)), paid=["gpt"]) is None


@pytest.mark.parametrize(
    ("model", "costs"),
    [
        ({"client": "embedded"}, False),
        ({"client": "replay", "ledger": "l.sqlite"}, False),
        ({"client": "vllm"}, False),
        ({"client": "vllm", "base_url": "http://127.0.0.1:9/v1"}, False),
        ({"client": "vllm", "base_url": ["http://127.0.0.1:9/v1", "https://far.example/v1"]}, True),
        ({"client": "openai", "base_url": "http://127.0.0.1:9/v1"}, True),
        ({"client": "anthropic"}, True),
    ],
)
def test_which_models_may_cost_money(tmp_path, model, costs):
    values = {"questions": "q.jsonl", "models": [{"name": "it", **model}]}
    config = parse_config(values, folder=tmp_path, source="study.toml")
    assert (paid_models(config) == {"it"}) is costs


@pytest.fixture
def paid(tmp_path):
    """A study at an endpoint whose price is unknown."""
    with Oracle() as oracle:
        folder = write_study(tmp_path / "study", oracle.url, extra='methods = ["verb"]')
        text = (folder / "study.toml").read_text().replace('"vllm"', '"openai"')
        (folder / "study.toml").write_text(text)
        yield oracle, folder


def test_without_a_terminal_nothing_is_sent_until_somebody_says_yes(paid, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    oracle, folder = paid
    command = ["run", folder, "--quiet"]
    done = call(*command)
    assert done.returncode == 2, done.stderr
    assert "The price of oracle is unknown" in done.stderr
    assert "--yes" in done.stderr
    assert oracle.calls == []
    done = call(*command, "--yes")
    assert done.returncode == 0, done.stderr
    assert oracle.calls
    # All draws are held: there is nothing left to ask about.
    done = call(*command)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_a_person_is_asked(paid, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    oracle, folder = paid
    main, other = pty.openpty()
    process = subprocess.Popen(
        [CALIBRANT, "run", folder], stdin=other, stdout=subprocess.DEVNULL, stderr=other
    )
    os.close(other)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(main, 4096)
    os.write(main, b"n\n")
    assert process.wait(60) == 2
    os.close(main)
    assert oracle.calls == []
