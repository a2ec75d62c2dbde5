"""What answers in the model's place, how often it is asked, and whether the counts agree."""

import asyncio
import json
import re

import pytest

import calibrant as cal
from apps.test_serve_secrets import studied  # noqa: F401 - a study that was asked once
from calibrant.apps.serving import promise
from calibrant.core.errors import InputError, StorageError
from calibrant.models.ledger import Ledger
from calibrant.models.study.prompts import study_recipe
from calibrant.trust.policy import SelectivePolicy
from calibrant.trust.units import UnitScore
from clients.server import Endpoint
from collect.studies import write_study
from support import ROOT
from workflows.test_serve_promise import ASKED, question, saved, served


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        yield server


def number(name, text):
    """Return the value of a line of the metrics."""
    found = re.search(rf"^calibrant_{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, (name, text)
    return float(found[1])


# -- who answers -----------------------------------------------------------------------------------


@pytest.fixture(params=["table", "study"])
def policy(request, tmp_path, endpoint):
    """Return a policy of either kind, and how it is served."""
    path = tmp_path / "p.json"
    if request.param == "table":
        return saved(path), {}
    endpoint.behaviour.same_text = True
    study = write_study(tmp_path / "study", "http://127.0.0.1:9/v1", draws=2)
    asked = study_recipe(study, "consistency", ("samples",))
    saved(path, model="oracle", method="consistency", asked=asked)
    return path, {"model": "oracle", "confidence": None}


def test_another_model_behind_the_name_ends_the_promise_also_after_a_restart(
    tmp_path, endpoint, policy
):
    path, how = policy
    endpoint.behaviour.model = "large-2026"

    async def act():
        async with served(tmp_path, path, endpoint.url, **how) as (ask, _):
            before = (await ask(question("one")))[1]["calibrant"]
            endpoint.behaviour.model = "tiny-2026"
            after = (await ask(question("two")))[1]["calibrant"]
            metrics = (await ask(None, "/metrics", "GET", raw=True))[1]
        endpoint.behaviour.model = "large-2026"
        async with served(tmp_path, path, endpoint.url, **how) as (ask, _):
            return before, after, metrics, (await ask(question("three")))[1]["calibrant"]

    before, after, metrics, restarted = asyncio.run(act())
    assert before["promise"].startswith("at most")
    assert before["shift"] is None
    name = how.get("model", "m")
    for told in (after, restarted):
        assert f"{name} is answered by tiny-2026, at first it was large-2026" in told["shift"]
        assert told["promise"].startswith("none: ")
    assert number("endpoint_changed", metrics) == 1


def test_another_version_after_many_answers_is_told(tmp_path, endpoint, policy, monkeypatch):
    path, how = policy
    monkeypatch.setattr(promise, "LEARNED", 20)

    def spoil(call, answer):
        # At first two versions take turns, as they do while a new one is rolled out.
        return {**answer, "system_fingerprint": f"fp_{'c' if call > 25 else 'ab'[call % 2]}"}

    endpoint.behaviour.spoil = spoil

    async def act():
        async with served(tmp_path, path, endpoint.url, **how) as (ask, _):
            await asyncio.gather(*(ask(question(f"q{n}")) for n in range(24)))
            before = (await ask(question("one more")))[1]["calibrant"]
            return before, (await ask(question("and one")))[1]["calibrant"]

    before, after = asyncio.run(act())
    assert before["shift"] is None
    assert before["promise"].startswith("at most")
    assert "answered by another version (fp_c)" in after["shift"]
    assert after["promise"].startswith("none: ")


@pytest.mark.parametrize("end", ["length", "content_filter"])
def test_half_an_answer_carries_no_promise(tmp_path, endpoint, policy, end):
    path, how = policy

    def spoil(_, answer):
        answer["choices"][0]["finish_reason"] = end
        return answer

    endpoint.behaviour.spoil = spoil

    async def act():
        async with served(tmp_path, path, endpoint.url, **how) as (ask, _):
            return (await ask(question()))[1]["calibrant"]

    told = asyncio.run(act())
    assert f"finish_reason {end}" in told["shift"]
    assert told["promise"].startswith("none: ")


# -- how often it is asked -------------------------------------------------------------------------


@pytest.mark.parametrize("reuse", [False, True])
def test_a_policy_of_a_study_draws_anew_at_a_temperature(studied, tmp_path, reuse):  # noqa: F811
    policy, oracle = studied
    row = ASKED[0]

    async def act():
        made = []
        async with served(tmp_path, policy, None, confidence=None, model="oracle",
                          reuse=reuse) as (ask, _):  # fmt: skip
            for _ in range(3):
                before = len(oracle.calls)
                known = {"question_id": row["question_id"], "kind": row["kind"]}
                await ask(question(row["text"], calibrant=known))
                made.append(len(oracle.calls) - before)
        return made

    first, *others = asyncio.run(act())
    assert first > 0
    # What is drawn at temperature 0 cannot differ; draws at 1 are made again.
    assert all((calls == 0) is reuse for calls in others), (first, others)


def test_counts_are_those_of_the_ledger_under_load(tmp_path, endpoint):
    policy = saved(tmp_path / "p.json")

    async def act():
        async with served(tmp_path, policy, endpoint.url) as (ask, _):
            await asyncio.gather(
                *(ask(question(f"q{n % 90}", temperature=n % 2)) for n in range(180))
            )
            bad = await ask({"messages": []})
            return bad[0], (await ask(None, "/metrics", "GET", raw=True))[1]

    status, metrics = asyncio.run(act())
    assert status == 400
    with Ledger(tmp_path / "served.sqlite", read_only=True) as ledger:
        draws = ledger.totals()["draws"]
    rows = [json.loads(line) for line in (tmp_path / "served.jsonl").read_text().splitlines()]
    decided = {name: number(f'questions_total{{decision="{name}"}}', metrics)
               for name in ("answer", "defer", "degraded")}  # fmt: skip
    assert sum(decided.values()) == len(rows) == 180
    assert decided["answer"] == sum(row["decision"] == "answer" for row in rows)
    assert number("upstream_calls_total", metrics) == draws == len(endpoint.calls)
    assert number("cost_total", metrics) == sum(row["cost"] for row in rows) == draws
    assert number("request_seconds_count", metrics) == 181
    assert number('requests_total{status="4xx"}', metrics) == 1
    ends = re.findall(r'request_seconds_bucket\{le="(\S+)"\} (\d+)', metrics)
    assert ends[-1] == ("+Inf", "181")
    assert sorted(int(count) for _, count in ends) == [int(count) for _, count in ends]


def test_the_page_of_whoever_is_on_call_names_every_number(tmp_path, endpoint):
    async def act():
        path = saved(tmp_path / "p.json")
        async with served(tmp_path, path, endpoint.url) as (ask, _):
            return (await ask(None, "/metrics", "GET", raw=True))[1]

    there = set(re.findall(r"^# TYPE (calibrant_\w+) ", asyncio.run(act()), re.MULTILINE))
    named = re.findall(r"calibrant_\w+", (ROOT / "docs" / "operating.md").read_text())
    assert {*named} == there


# -- nothing can be written ------------------------------------------------------------------------


def test_a_full_ledger_is_503_and_buys_nothing_more(tmp_path, endpoint, monkeypatch):
    policy = saved(tmp_path / "p.json")
    full = StorageError("the disk is full", source="served.sqlite")

    def keep_all(*_):
        raise full

    async def act():
        async with served(tmp_path, policy, endpoint.url) as (ask, front):
            monkeypatch.setattr(front.engine.ledger, "keep_all", keep_all)
            paid = await ask(question("one"))
            calls = len(endpoint.calls)
            then = [await ask(question(f"q{n}")) for n in range(3)]
            ready = await ask(None, "/ready", "GET")
            metrics = (await ask(None, "/metrics", "GET", raw=True))[1]
            return paid, then, len(endpoint.calls) - calls, ready, metrics

    paid, then, bought, ready, metrics = asyncio.run(act())
    assert paid[0] == 200, "what was paid for is delivered"
    assert paid[1]["calibrant"]["promise"] == "none: it could not be recorded"
    assert [status for status, _, _ in then] == [503] * 3
    assert all("Retry-After" in headers for _, _, headers in then)
    assert bought == 0
    assert (ready[0], ready[1]["disk"]) == (503, "full")
    assert number("unrecorded_total", metrics) == 1


def test_trusted_answers_say_the_same(tmp_path, endpoint):
    policy = saved(tmp_path / "p.json", threshold=1.0)
    with cal.trusted(policy, f"{endpoint.url}/v1", measured_by="perplexity") as model:
        told = model.ask("What is the capital of Peru?")
    assert (told.decision, told.text) == ("defer", None)


@pytest.mark.parametrize(
    ("how", "passing", "failing", "words"),
    [
        ("min", [0.9], [0.9, 0.01], "of the units that pass have a wrong row"),
        ("stop", [0.9, 0.8], [0.01], "of the stopped runs would have succeeded"),
    ],
)
def test_a_policy_of_units_is_told_of_the_other_rows(
    tmp_path, endpoint, how, passing, failing, words
):
    path = tmp_path / "p.json"
    threshold = 0.95 if how == "stop" else 0.05
    promise = {"max_error": 0.1, "delta": 0.1, "certified": True}
    fitted = {"model": "oracle", "method": "confidence"}
    SelectivePolicy(UnitScore(how), threshold, promise, "2026-11-17", 9, fitted).save(path)
    with cal.trusted(path, f"{endpoint.url}/v1", measured_by="perplexity") as model:
        answers = [
            model.ask("What is the capital of Peru?", unit=rest) for rest in (passing, failing)
        ]
        before = len(endpoint.calls)
        with pytest.raises(InputError, match="needs the confidences of the other rows"):
            model.ask("What is the capital of Chile?")
        assert len(endpoint.calls) == before, "nothing is bought for a question that is refused"
    assert [answer.decision for answer in answers] == ["answer", "defer"]
    assert words in answers[0].promise
