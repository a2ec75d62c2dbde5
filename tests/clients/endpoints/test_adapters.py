"""The wire formats: what is sent, what is read, and what never leaves."""

import asyncio
import logging

import pytest

from calibrant.core.errors import CapabilityError, InputError, TransientClientError
from calibrant.models import Ask, Message, Request, open_client
from calibrant.models.asks import PRESETS
from calibrant.models.endpoints.chat import read_answer, typed_answer
from calibrant.models.endpoints.wires import read_response, write_request
from clients.server import error
from clients.sessions import Session

KEY = "sk-test-0123456789abcdef"
TALK = (
    Message("system", "Be brief."),
    Message("user", "Hello"),
    Message("assistant", "Hello."),
    Message("user", "What is the capital of Peru?"),
)


def ask(client, request):
    async def go():
        try:
            return await client.ask(request)
        finally:
            await client.close()

    return asyncio.run(go())


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    return KEY


def test_openai_request_and_answer(server, key):
    client = open_client(
        {"kind": "openai", "model": "gpt-4.1", "base_url": server.url + "/v1",
         "api_key_env": "TEST_KEY"}
    )  # fmt: skip
    request = Request(
        "gpt-4.1", TALK, n=3, temperature=0.7, max_tokens=9, logprobs=True, top_logprobs=2, seed=5,
        stop=("\n",), schema={"type": "object"}, sampler={"top_p": 0.9},
    )  # fmt: skip
    completions = ask(client, request)
    assert server.calls[0] == {
        "model": "gpt-4.1",
        "messages": [{"role": message.role, "content": message.content} for message in TALK],
        "max_completion_tokens": 9,
        "temperature": 0.7,
        "n": 3,
        "logprobs": True,
        "top_logprobs": 2,
        "seed": 5,
        "stop": ["\n"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
        },
        "top_p": 0.9,
    }
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert [one.seed for one in completions] == [5, 6, 7]
    assert [one.usage.prompt_tokens for one in completions] == [10, 0, 0]
    assert [one.usage.completion_tokens for one in completions] == [6, 6, 6]
    first = completions[0]
    assert first.logprobs[0].top == ((first.logprobs[0].token, -0.1), ("other", -5.0))
    assert first.native_n
    assert first.request_id == "call-1"


@pytest.mark.parametrize("preset", ["llamacpp", "vllm"])
def test_sampling_is_never_cut_by_the_servers_defaults(server, preset):
    client = open_client({"kind": preset, "base_url": server.url + "/v1"})
    (completion,) = ask(client, Request("m", TALK))
    sent = server.calls[0]
    assert (sent["top_k"], sent["top_p"], sent["min_p"]) == (
        0 if preset == "llamacpp" else -1,
        1,
        0,
    )
    assert isinstance(sent["top_k"], int)
    assert completion.sampler == PRESETS[preset].sampler


def test_fan_out_where_n_is_not_native(server):
    client = open_client({"kind": "ollama", "base_url": server.url + "/v1"})
    completions = ask(client, Request("m", TALK, n=4, seed=3))
    assert len(server.calls) == 4
    assert not any("n" in call for call in server.calls)
    assert [one.native_n for one in completions] == [False] * 4
    assert [one.seed for one in completions] == [3, 4, 5, 6]


def test_anthropic_request_and_answer(server, key):
    client = open_client({"kind": "anthropic", "base_url": server.url, "api_key_env": "TEST_KEY"})
    request = Request("claude-test", TALK, max_tokens=5, stop=("END",), sampler={"top_k": 3.0})
    (completion,) = ask(client, request)
    assert server.calls[0] == {
        "model": "claude-test",
        "system": "Be brief.",
        "messages": [{"role": m.role, "content": m.content} for m in TALK[1:]],
        "max_tokens": 5,
        "temperature": 1.0,
        "stop_sequences": ["END"],
        "top_k": 3,
    }
    assert server.headers[0]["x-api-key"] == KEY
    assert server.headers[0]["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in server.headers[0]
    assert completion.finish_reason == "length"
    assert completion.model == "claude-test-20250929"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (12, 6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"logprobs": True}, "no log-probs"),
        ({"seed": 1}, "no seed"),
        ({"temperature": 1.3}, "temperatures up to 1"),
        ({"schema": {}}, "no JSON schema"),
        ({"sampler": {"min_p": 0.1}}, "no sampling setting min_p"),
    ],
)
def test_anthropic_says_what_it_cannot_give_before_sending(server, key, settings, words):
    client = open_client({"kind": "anthropic", "base_url": server.url, "api_key_env": "TEST_KEY"})
    with pytest.raises(CapabilityError, match=words):
        ask(client, Request("claude-test", TALK, **settings))
    assert server.calls == []


def test_gemini_request_and_answer(server, key):
    client = open_client(
        {"kind": "gemini", "base_url": server.url + "/v1beta", "api_key_env": "TEST_KEY"}
    )
    request = Request(
        "gemini-test", TALK, n=2, max_tokens=7, logprobs=True, top_logprobs=3, seed=4,
        schema={"type": "object"}, sampler={"top_p": 0.5},
    )  # fmt: skip
    completions = ask(client, request)
    assert server.calls[0]["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [turn["role"] for turn in server.calls[0]["contents"]] == ["user", "model", "user"]
    assert server.calls[0]["generationConfig"] == {
        "temperature": 1.0, "maxOutputTokens": 7, "candidateCount": 2, "responseLogprobs": True,
        "logprobs": 3, "seed": 4, "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"}, "topP": 0.5,
    }  # fmt: skip
    assert server.headers[0]["x-goog-api-key"] == KEY
    assert [one.seed for one in completions] == [4, 5]
    assert completions[0].logprobs[0].top[1] == ("other", -3.0)
    assert [one.usage.prompt_tokens for one in completions] == [11, 0]
    assert completions[0].model == "gemini-test-001"


def test_gemini_blocked_prompt_is_the_questions_fault(server, ledger, key):
    from aiohttp import web

    server.behaviour.fault = lambda number, body: web.json_response(
        {"promptFeedback": {"blockReason": "SAFETY"}}
    )
    client = open_client(
        {"kind": "gemini", "base_url": server.url + "/v1beta", "api_key_env": "TEST_KEY"}
    )
    run = Session(server, ledger, client=client)
    outcome = run.run([Ask(Request("g", TALK), "answer", 1, "q")])["q"]
    assert outcome.problem.kind == "permanent"
    assert "SAFETY" in outcome.problem.message


def test_the_key_is_nowhere(server, ledger, tmp_path, key, caplog):
    """Neither in the ledger, nor in errors, nor in logs, nor in what an object shows."""
    caplog.set_level(logging.DEBUG)

    def echo(number, body):
        return error(400, f"you sent {KEY}, which is wrong for this") if number % 2 else None

    server.behaviour.fault = echo
    client = open_client(
        {"kind": "openai", "model": "m", "base_url": server.url + "/v1",
         "api_key_env": "TEST_KEY"}
    )  # fmt: skip
    run = Session(server, ledger, client=client)
    outcomes = run.run([Ask(Request("m", TALK, seed=i), "answer", 1, i) for i in range(6)])
    problems = [one.problem for one in outcomes.values() if one.problem]
    assert problems
    assert "[key]" in problems[0].message
    seen = [repr(outcomes), repr(client), caplog.text, *(one.message for one in problems)]
    ledger.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"which is wrong" in stored
    for secret in (KEY, "Bearer", "Authorization"):
        assert secret.encode() not in stored
        assert not any(secret in text for text in seen)


def test_an_answer_that_holds_the_key_is_not_stored(server, ledger, tmp_path, key):
    from aiohttp import web

    server.behaviour.fault = lambda number, body: web.json_response(
        {"choices": [{"index": 0, "message": {"content": KEY}}], "usage": {}}
    )
    client = open_client(
        {"kind": "openai", "model": "m", "base_url": server.url + "/v1",
         "api_key_env": "TEST_KEY"}
    )  # fmt: skip
    with pytest.raises(Exception, match="repeats the API key"):
        Session(server, ledger, client=client).run([Ask(Request("m", TALK), "answer", 1, 0)])
    ledger.close()
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "openai"}, "OPENAI_API_KEY holds no API key"),
        ({"kind": "openai", "api_key": "x"}, "never written down"),
        ({"kind": "vllm", "base_url": "http://me:secret@127.0.0.1"}, "user name or password"),
        ({"kind": "vllm", "base_url": "http://127.0.0.1/?key=1"}, "key in its query"),
        ({"kind": "vllm", "base_url": "127.0.0.1:80"}, "starts with http"),
        ({"kind": "vllm", "timeout": 3}, "no setting 'timeout'"),
        ({"kind": "replay"}, "path of a ledger"),
        ({}, "no kind of client None"),
    ],
)
def test_bad_descriptions_are_refused(monkeypatch, spec, words):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=words):
        open_client(spec)


def test_the_usual_key_is_not_sent_to_another_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client = open_client({"kind": "openai", "model": "m", "base_url": server.url + "/v1"})
    ask(client, Request("m", TALK))
    assert "Authorization" not in server.headers[0]


def test_reasoning_models_take_no_temperature_and_get_room_for_thinking():
    client = open_client({"kind": "openai", "model": "o3-mini", "api_key_env": ""})
    request = client.prepare(Request("o3-mini", TALK, temperature=0.0, max_tokens=16))
    body, missing = client.refusals("o3-mini").adapted(write_request(request, PRESETS["openai"]))
    assert "temperature" not in body
    assert missing == ("temperature",)
    assert body["max_completion_tokens"] == 16 + 4096


def test_anthropic_thinks_within_a_budget_and_keeps_the_thinking_apart(server):
    server.behaviour.spoil = lambda _, answer: {
        **answer,
        "content": [
            {"type": "thinking", "thinking": "Peru: Lima."},
            {"type": "text", "text": "Lima"},
        ],
    }
    spec = {"kind": "anthropic", "base_url": server.url, "api_key_env": "", "thinking_tokens": 1024}
    client = open_client({**spec, "reasoning_effort": "low"})
    (done,) = ask(client, Request("m", TALK, temperature=0.0, max_tokens=16))
    assert (done.text, done.thinking, done.not_sent) == ("Lima", "Peru: Lima.", ("temperature",))
    sent = server.calls[-1]
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert (sent["max_tokens"], sent["output_config"]) == (1040, {"effort": "low"})
    assert "temperature" not in sent


def test_the_responses_interface_is_read_with_its_log_probs():
    token = {"token": "Lima", "logprob": -0.2, "top_logprobs": [{"token": "Lima", "logprob": -0.2}]}
    answer = {
        "id": "resp_1", "status": "incomplete", "model": "m",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Peru."}]},
            {"type": "message", "content": [
                {"type": "output_text", "text": "Lima", "logprobs": [token]}]},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 41,
                  "output_tokens_details": {"reasoning_tokens": 40}},
    }  # fmt: skip
    (done,) = read_answer(read_response(answer), Request("m", TALK, logprobs=True), 0.1)
    assert (done.text, done.thinking, done.thinking_tokens) == ("Lima", "Peru.", 40)
    assert (done.finish_reason, done.usage.completion_tokens) == ("length", 41)
    assert [entry.logprob for entry in done.logprobs] == [-0.2]


def test_the_older_form_of_log_probs_is_read():
    answer = {
        "choices": [
            {
                "message": {"content": "Lima."},
                "logprobs": {"tokens": ["Lima", "."], "token_logprobs": [-0.1, -0.2]},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    (completion,) = read_answer(typed_answer(answer), Request("m", TALK, logprobs=True), 0.1)
    assert [entry.logprob for entry in completion.logprobs] == [-0.1, -0.2]


def test_the_end_token_is_no_token_of_the_text():
    content = [{"token": "Lima", "logprob": -0.1}, {"token": "", "logprob": -0.4}]
    answer = {
        "choices": [
            {
                "message": {"content": "Lima"},
                "finish_reason": "stop",
                "logprobs": {"content": content},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    (completion,) = read_answer(typed_answer(answer), Request("m", TALK, logprobs=True), 0.1)
    assert [entry.token for entry in completion.logprobs] == ["Lima"]
    assert completion.usage.completion_tokens == 2


def test_an_empty_reply_has_the_log_prob_of_its_end():
    choice = {
        "message": {"content": ""},
        "finish_reason": "stop",
        "logprobs": {"content": [{"token": "", "logprob": -1.5}]},
    }
    answer = {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    (completion,) = read_answer(typed_answer(answer), Request("m", TALK, logprobs=True), 0.1)
    assert [entry.logprob for entry in completion.logprobs] == [-1.5]


def test_null_log_probs_are_refused_and_missing_ones_are_none():
    def read(logprobs):
        answer = {"choices": [{"message": {"content": "x"}, "logprobs": logprobs}], "usage": {}}
        return read_answer(typed_answer(answer), Request("m", TALK, logprobs=True), 0.1)[0]

    null = read({"content": [{"token": "x", "logprob": None}]})
    assert null.logprobs is None
    assert "not a number" in null.logprobs_refused
    absent = read(None)
    assert absent.logprobs is None
    assert absent.logprobs_refused is None


def test_a_choice_without_a_text_is_tried_again_and_one_of_an_odd_form_is_kept():
    with pytest.raises(TransientClientError, match="form of a chat completion"):
        typed_answer({"choices": [{"index": 0}]})
    odd = typed_answer({"choices": [{"index": 0, "message": "text"}]})
    assert read_answer(odd, Request("m", TALK), 0.1)[0].text == "text"
