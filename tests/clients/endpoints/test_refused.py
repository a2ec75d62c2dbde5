"""What an endpoint refuses is learned once, written down, and never met again."""

import asyncio
import socket
import time

import pytest

from calibrant.core.errors import CapabilityError, InputError
from calibrant.data import Study
from calibrant.models import Ask, Dispatcher, EndpointRefusedError, Message, Request, open_client
from calibrant.models.endpoints.chat import read_answer, typed_answer
from calibrant.models.endpoints.refused import Refusals
from calibrant.models.ledger import Ledger
from calibrant.verbs.run import run
from clients.strict import Strict, few_alternatives, gpt5, mistral, no_seed
from collect.studies import QUESTIONS, write_study

STATED = 'methods = ["verb", "self_ask", "p_true_consistency", "consistency"]'


def ask_all(client, ledger, count=24, *, draws=1, **settings):
    asks = [
        Ask(Request("m", (Message("user", f"What is {i}?"),), **settings), "answer", draws=draws)
        for i in range(count)
    ]

    async def work():
        dispatcher = Dispatcher(client, ledger)
        try:
            found = [outcome async for outcome in dispatcher.ask_all(asks)]
        finally:
            await client.close()
        return found, dispatcher.findings

    return asyncio.run(work())


def opened(server, kind="openai", **more):
    return open_client({"kind": kind, "model": "m", "base_url": server.url, **more})


@pytest.mark.parametrize(
    ("refuse", "kind", "settings", "wasted", "lost"),
    [
        (gpt5, "openai", {"temperature": 0.0, "logprobs": True, "top_logprobs": 5}, 1,
         ("temperature", "logprobs")),
        (gpt5, "vllm", {"temperature": 0.0, "stop": ("\n",), "seed": 3}, 1,
         ("temperature", "top_p", "stop")),
        (gpt5, "openai", {"temperature": 1.0, "logprobs": True}, 1, ("logprobs",)),
        (mistral, "openai", {"temperature": 0.5}, 1, ()),
        (few_alternatives, "openai", {"logprobs": True, "top_logprobs": 20}, 1, ()),
        (no_seed, "openai", {"seed": 5}, 1, ("seed",)),
    ],
)  # fmt: skip
def test_a_refusal_is_met_once_by_all_calls_together(
    tmp_path, refuse, kind, settings, wasted, lost
):
    with Strict(refuse) as server:
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            found, findings = ask_all(opened(server, kind), ledger, **settings)
        assert [outcome.problem for outcome in found] == [None] * 24
        assert (len(server.refused), len(server.calls)) == (wasted, 24)
        assert {o.draws[0].completion.not_sent for o in found} == {lost}
        assert ("settings-refused" in {f.kind for f in findings}) == bool(lost)
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            # A later run, with a client that knows nothing yet, and new questions.
            ask_all(opened(server, kind), ledger, 30, **settings)
        assert (len(server.refused), len(server.calls)) == (wasted, 30)


def test_several_choices_that_are_refused_become_several_calls(tmp_path):
    with Strict(few_alternatives) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        found, _ = ask_all(opened(server), ledger, 6, draws=4)
        assert all(outcome.complete for outcome in found)
        assert (len(server.refused), len(server.calls)) == (1, 24)


def test_other_refusals_are_told_and_not_tried_again(tmp_path):
    def refuse(_):
        return 400, {"error": {"message": "Your request has too many words"}}

    with Strict(refuse) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        found, _ = ask_all(opened(server), ledger, 3)
        assert {outcome.problem.kind for outcome in found} == {"permanent"}
        assert len(server.refused) == 3


def test_a_temperature_that_is_too_high_is_not_replaced():
    said = "temperature must be less than or equal to 1"
    assert not Refusals().learn(said, {"temperature": 1.5}, "temperature")


def test_a_longer_answer_than_there_can_be_is_not_shortened():
    said = "max_tokens is too large: 90000. This model supports at most 16384 completion tokens"
    assert not Refusals().learn(said, {"max_tokens": 90_000}, "max_tokens")


def test_a_study_with_stated_confidence_on_a_model_that_thinks(tmp_path):
    with Strict(gpt5, thinks=900) as server:
        folder = write_study(
            tmp_path / "study", server.url, extra=STATED, tail="thinking_tokens = 2000"
        )
        document = run(folder)
        assert len(server.refused) <= 2
        scores = Study(folder).read("scores")
        draws = Study(folder).read("draws")
    asked = set(scores.filter(scores["confidence"].is_not_null())["method"])
    assert asked == {"verb", "self_ask", "p_true_consistency", "consistency"}
    assert draws["thinking_tokens"].drop_nulls().unique().to_list() == [900]
    assert draws.filter(purpose="greedy")["temperature"].is_null().all()
    assert (draws.filter(purpose="answer")["temperature"] == 1.0).all()
    assert "settings-refused" in {finding["kind"] for finding in document["findings"]}
    assert document["failures"]["count"] == 0


def test_answers_cut_off_while_thinking_say_what_to_raise(tmp_path):
    with Strict(gpt5, thinks=900) as server:
        folder = write_study(tmp_path / "study", server.url, extra='methods = ["verb"]')
        with pytest.raises(Exception, match=r"cut off before they began.*set thinking_tokens"):
            run(folder)
        assert len(server.calls) < len(QUESTIONS) * 2


def test_a_named_method_whose_log_probs_are_refused_ends_the_run_at_once(tmp_path):
    with Strict(gpt5) as server:
        folder = write_study(tmp_path / "study", server.url, extra='methods = ["perplexity"]')
        for _ in range(2):
            with pytest.raises(CapabilityError, match="refuses logprobs of the model 'oracle'"):
                run(folder)
            assert len(server.refused) == 1
        assert server.calls == []


def test_thinking_in_plain_text_is_kept_apart_with_its_tokens():
    answer = {
        "choices": [
            {
                "message": {"content": "<think>Peru?</think>\n\nLima"},
                "finish_reason": "stop",
                "logprobs": {
                    "content": [
                        {"token": token, "logprob": value}
                        for token, value in (
                            ("<think>", -0.1), ("Peru?", -2.0), ("</think>", -0.1),
                            ("\n\n", -0.01), ("Lima", -0.5),
                        )
                    ]
                },
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    }  # fmt: skip
    (one,) = read_answer(typed_answer(answer), Request("m", (), logprobs=True), 0.1)
    assert (one.text, one.thinking) == ("Lima", "Peru?")
    assert "".join(token.token for token in one.logprobs).strip() == "Lima"
    assert one.usage.completion_tokens == 5


def test_azure_keeps_its_query_and_its_header(tmp_path, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-secret-12345")
    path = "/openai/deployments/mine/chat/completions"
    with Strict(path=path, root="/openai/deployments/mine?api-version=2024-10-21") as server:
        client = open_client(
            {
                "kind": "azure", "model": "mine", "base_url": server.url,
                "api_key_env": "AZURE_OPENAI_API_KEY", "reasoning_effort": "low",
                "extra_body": {"user": "study"}, "extra_headers": {"X-Team": "evaluation"},
            }
        )  # fmt: skip
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            found, _ = ask_all(client, ledger, 2, temperature=0.0)
        assert all(outcome.complete for outcome in found)
        assert set(server.queries) == {"api-version=2024-10-21"}
        assert {h["api-key"] for h in server.headers} == {"azure-secret-12345"}
        assert {h["X-Team"] for h in server.headers} == {"evaluation"}
        assert {(c["reasoning_effort"], c["user"]) for c in server.calls} == {("low", "study")}


def test_a_secret_does_not_go_into_the_ledger():
    with pytest.raises(InputError, match="extra_body is kept in the ledger"):
        open_client({"kind": "vllm", "model": "m", "extra_body": {"api_key": "x"}})


def test_a_probe_shows_what_an_endpoint_can_do_for_three_calls_at_most(tmp_path):
    with Strict(gpt5, thinks=40) as server:
        folder = write_study(tmp_path / "study", server.url)
        (found,) = run(folder, probe=True)["probe"]
        assert len(server.calls) + len(server.refused) <= 3
        assert not (folder / "ledger.sqlite").exists()
    assert found["problem"] is None
    assert set(found["refuses"]) == {"temperature", "top_p", "logprobs", "stop"}
    assert (found["takes"], found["thinking_tokens"]) == (["seed", "n"], 40)


def test_a_dead_address_is_told_within_five_seconds(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and nobody listens
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        client = open_client({"kind": "vllm", "model": "m", "base_url": url})
        started = time.monotonic()
        with (
            Ledger(tmp_path / "ledger.sqlite") as ledger,
            pytest.raises(EndpointRefusedError, match="nothing answers at"),
        ):
            ask_all(client, ledger, 12)
    # The clock of the dispatcher, not of this machine's load, decides; minutes would be a fault.
    assert time.monotonic() - started < 60
