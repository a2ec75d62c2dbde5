"""A judge inside a run: models that take no temperature, options checked first, caps."""

import json

import pytest

from calibrant.core.errors import CalibrantError, InputError
from calibrant.data import Study
from calibrant.models.ledger import Ledger
from calibrant.verbs.run import run
from collect.endpoint import Oracle
from collect.studies import write_study

JUDGE = """
[semantics.judge]
client = "openai"
name = "judge"
model = "{model}"
base_url = "{url}"
api_key_env = "JUDGE_TEST_KEY"
"""
METHODS = 'methods = ["consistency"]\n'
WORDY = [
    {
        "question_id": f"q{place}",
        "text": f"Name one capital city, number {place}, or one more.",
        "references": [["the town on the river"]],
    }
    for place in range(12)
]


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("JUDGE_TEST_KEY", "not-a-real-key")


def judged_study(folder, oracle, *, model="gpt-5-mini", extra="", judge=""):
    tail = JUDGE.format(model=model, url=oracle.url) + judge
    path = write_study(folder, oracle.url, extra=METHODS + extra, tail=tail, draws=6)
    lines = "".join(json.dumps(row) + "\n" for row in WORDY)
    (path / "questions.jsonl").write_text(lines)
    return path


def of_judge(oracle):
    return [call for call in oracle.calls if call["model"].startswith(("gpt-5", "o3", "gpt-4"))]


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3-mini"])
def test_a_judge_that_takes_no_temperature_is_sent_none(tmp_path, model):
    with Oracle() as oracle:
        result = run(judged_study(tmp_path / "s", oracle, model=model))
        asked = of_judge(oracle)
        assert len(asked) > 5
        assert all("temperature" not in call for call in asked)
        # Thinking needs room: a limit of a few tokens would be spent before the verdict.
        assert all(call["max_completion_tokens"] > 1000 for call in asked)
        assert result["stopped"] is None
    document = json.loads((tmp_path / "s" / "results" / "semantics.json").read_text())
    assert document["judge_replies_unreadable"] == 0
    assert document["judge_calls"] == len(asked)


def test_a_judge_with_a_temperature_is_asked_at_0(tmp_path):
    with Oracle() as oracle:
        run(judged_study(tmp_path / "s", oracle, model="gpt-4.1-mini"))
        assert {call["temperature"] for call in of_judge(oracle)} == {0.0}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('colour = "red"\n', "colour"),
        ("[semantics.judge.capabilities]\nnativ_n = 2\n", "nativ_n"),
    ],
)
def test_a_wrong_option_of_the_judge_is_found_before_anything_is_sent(
    tmp_path, dry_run, wrong, says
):
    with Oracle() as oracle:
        path = judged_study(tmp_path / "s", oracle, judge=wrong)
        with pytest.raises(InputError, match=says):
            run(path, dry_run=dry_run)
        assert oracle.calls == []


def test_a_judge_without_a_key_is_found_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.delenv("JUDGE_TEST_KEY")
    with Oracle() as oracle:
        path = judged_study(tmp_path / "s", oracle)
        for dry_run in (True, False):
            with pytest.raises(CalibrantError, match="JUDGE_TEST_KEY"):
                run(path, dry_run=dry_run)
        assert oracle.calls == []


def test_the_forecast_says_what_is_expected_and_the_worst_case(tmp_path):
    with Oracle() as oracle:
        path = judged_study(tmp_path / "s", oracle)
        row = run(path, dry_run=True)["plan"]["rows"][-1]
        assert row["purpose"] == "judge"
        assert 0 < row["expected_calls"] < row["calls"]
        assert "recorded answers" in row["basis"]
        assert "at most" in row["note"]
        run(path)
        row = run(path, dry_run=True)["plan"]["rows"][-1]
        assert "of this study" in row["basis"]


def test_a_cap_that_the_judge_reaches_ends_its_asking_and_keeps_everything(tmp_path):
    with Oracle() as oracle:
        whole = run(judged_study(tmp_path / "whole", oracle))
        draws = sum(entry["calls"] for entry in whole["counts"])
        verdicts = len(of_judge(oracle))
        oracle.calls.clear()
        cap = draws + verdicts // 2
        path = judged_study(tmp_path / "capped", oracle, extra=f"[budget]\nmax_calls = {cap}\n")
        result = run(path)
        assert "calls" in result["stopped"]
        assert len(oracle.calls) == cap
        assert len(of_judge(oracle)) == cap - draws
        with Ledger(path / "ledger.sqlite", read_only=True) as ledger:
            assert ledger.draws_of_purpose("judge") == cap - draws
        assert Study(path).read("scores").height == Study(tmp_path / "whole").read("scores").height
        # With a higher cap the same study goes on; nothing is bought twice.
        text = (path / "study.toml").read_text().replace(f"max_calls = {cap}", "max_calls = 9999")
        (path / "study.toml").write_text(text)
        assert run(path)["stopped"] is None
        assert len(oracle.calls) == draws + verdicts


def test_a_cap_in_the_middle_of_the_draws_keeps_and_shows_what_was_paid(tmp_path):
    with Oracle() as oracle:
        budget = '[budget]\nmax_calls = 21\nwhen = "stop"\n'
        one = "capabilities = { native_n = 1 }"
        path = write_study(tmp_path / "s", oracle.url, extra=METHODS + budget, tail=one)
        result = run(path)
        assert "calls" in result["stopped"]
        assert len(oracle.calls) == 21
        with Ledger(path / "ledger.sqlite", read_only=True) as ledger:
            held = ledger.draws_of_purpose("answer") + ledger.draws_of_purpose("greedy")
        assert Study(path).read("draws").height == held > 0
