"""A paid answer is kept whatever is odd about it, and is never bought again."""

import contextlib
import json
import time

import pytest
from aiohttp import web

from calibrant.data.formats import LIMITS
from calibrant.models import Request, open_client
from calibrant.models.replies import loose_json, short_name, token_count
from clients.endpoints.test_adapters import TALK, ask
from clients.sessions import questions, texts

DEEP = "[" * 100_000 + "]" * 100_000


def chat(text='"Paris"', *, call_id='"c"', usage='{"prompt_tokens":5,"completion_tokens":2}',
         more=""):  # fmt: skip
    return (
        f'{{"id":{call_id},"model":"m","usage":{usage},"choices":[{{"index":0,'
        f'"message":{{"content":{text}}},"finish_reason":"stop"}}]{more}}}'
    ).encode()


ODD = {
    "parts": chat('[{"type":"text","text":"Par"},{"type":"text","text":"is"}]'),
    "thoughts": chat('[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Paris"}]'),
    "structured id": chat(call_id='{"a":[1,2]}'),
    "list id": chat(call_id='["x"]'),
    "huge id": chat(call_id=json.dumps("i" * 1_000_000)),
    "huge number as id": chat(call_id="9" * 5_000),
    "endless number": chat(more=',"created":1e999'),
    "deep JSON": chat(more=f',"more":{DEEP}'),
    "half a character": chat('"Paris\\ud800"'),
    "huge usage": chat(usage='{"prompt_tokens":5,"completion_tokens":' + "9" * 40 + "}"),
    "negative usage": chat(usage='{"prompt_tokens":-5,"completion_tokens":-2}'),
    "usage of words": chat(usage='{"prompt_tokens":"many","completion_tokens":[2]}'),
    "no usage": chat(usage="null"),
    "usage is a list": chat(usage="[1,2]"),
    "index is a word": chat().replace(b'"index":0', b'"index":"first"'),
    "finish is an object": chat().replace(b'"finish_reason":"stop"', b'"finish_reason":{"a":1}'),
    "model is a list": chat().replace(b'"model":"m"', b'"model":["m",1]'),
}


@pytest.mark.parametrize("form", ODD)
def test_an_odd_answer_is_kept_and_read_again_from_the_ledger(server, session, form):
    server.behaviour.fault = lambda number, body: web.Response(
        body=ODD[form], content_type="application/json"
    )
    asks = questions(3, draws=2, temperature=1.0)
    run = session(client_options={"capabilities": {"native_n": 1}})
    outcomes = run.run(asks)
    assert all(outcome.complete for outcome in outcomes.values())
    assert {text.rstrip("?\ufffd") for some in texts(outcomes).values() for text in some} == {
        "Paris"
    }
    calls = len(server.calls)
    assert calls == 6, "nothing is bought twice"
    again = session(client_options={"capabilities": {"native_n": 1}}).run(asks)
    assert texts(again) == texts(outcomes)
    assert len(server.calls) == calls


@pytest.mark.parametrize(
    "form", ["huge usage", "negative usage", "usage of words", "no usage", "usage is a list"]
)
def test_tokens_that_nobody_counted_are_estimated_marked_and_count(server, session, ledger, form):
    server.behaviour.fault = lambda number, body: web.Response(
        body=ODD[form], content_type="application/json"
    )
    run = session()
    outcomes = run.run(questions(4))
    used = [outcome.draws[0].completion.usage for outcome in outcomes.values()]
    assert all(usage.completion_tokens == 2 for usage in used), "five letters are two tokens"
    assert all(usage.prompt_tokens > 0 for usage in used)
    assert run.findings["usage-estimated"].count == 4
    assert run.dispatcher.progress.completion_tokens == 8
    assert ledger.totals()["completion_tokens"] == 8


def test_the_raw_answer_is_kept_beside_what_was_read_of_it(server, session):
    server.behaviour.fault = lambda number, body: web.Response(
        body=ODD["parts"], content_type="application/json"
    )
    run = session()
    draw = run.run(questions(1))[0].draws[0].completion
    assert json.loads(draw.raw)["choices"][0]["message"]["content"][0]["text"] == "Par"
    assert run.findings["answers-odd"].count == 1


def test_a_text_has_a_longest_length(server, session):
    long = json.dumps("a" * (LIMITS["draw_characters"].usual + 50))
    server.behaviour.fault = lambda number, body: web.Response(
        body=chat(long), content_type="application/json"
    )
    run = session()
    draw = run.run(questions(1))[0].draws[0].completion
    assert len(draw.text) == LIMITS["draw_characters"].usual
    assert "characters" in run.findings["answers-odd"].message


MESSAGES = {
    "no usage": {"content": [{"type": "text", "text": "Paris"}], "id": "m"},
    "usage is words": {"content": [{"type": "text", "text": "Paris"}], "usage": "many"},
    "plain text": {"content": "Paris", "usage": {"input_tokens": 3, "output_tokens": 1}},
    "odd id": {
        "content": [{"type": "text", "text": "Paris"}],
        "id": [1],
        "stop_reason": ["end_turn"],
        "usage": {"input_tokens": -3, "output_tokens": 10**30},
    },
}


@pytest.mark.parametrize("form", MESSAGES)
def test_messages_of_odd_form_are_kept(server, form):
    body = json.dumps(MESSAGES[form])
    server.behaviour.fault = lambda number, _: web.Response(
        body=body.encode(), content_type="application/json"
    )
    client = open_client({"kind": "anthropic", "base_url": server.url})
    (completion,) = ask(client, Request("m", TALK))
    assert completion.text == "Paris"
    assert 0 < completion.usage.completion_tokens < 100
    assert len(server.calls) == 1


CONTENTS = {
    "no usage": {"candidates": [{"content": {"parts": [{"text": "Paris"}]}}]},
    "odd fields": {
        "candidates": [
            {"content": {"parts": [{"text": "Paris"}]}, "index": "a", "finishReason": [1]}
        ],
        "usageMetadata": {"promptTokenCount": -1, "candidatesTokenCount": 10**30},
        "responseId": {"a": 1},
    },
    "odd log-probs": {
        "candidates": [
            {"content": {"parts": [{"text": "Paris"}]}, "logprobsResult": {"chosen": 1}}
        ],
    },
}


@pytest.mark.parametrize("form", CONTENTS)
def test_candidates_of_odd_form_are_kept(server, form):
    body = json.dumps(CONTENTS[form])
    server.behaviour.fault = lambda number, _: web.Response(
        body=body.encode(), content_type="application/json"
    )
    client = open_client({"kind": "gemini", "base_url": server.url + "/v1beta"})
    (completion,) = ask(client, Request("m", TALK, logprobs=True))
    assert completion.text == "Paris"
    assert completion.usage_estimated is not None
    assert 0 < completion.usage.completion_tokens < 100


def test_what_is_no_json_stays_none():
    for raw in (b"", b"{", b'{"a": ', b"<html>", b'{"a": "' + b'\\"' * 1000):
        with pytest.raises(ValueError, match=r"."):
            loose_json(raw)


def test_reading_takes_time_that_grows_with_the_length():
    started = time.thread_time()
    for raw in (b'"\\"' * 300_000, b"[" * 1_000_000, b'{"a":' * 200_000, b'"' * 1_000_001):
        with contextlib.suppress(ValueError):
            loose_json(raw)
    assert time.thread_time() - started < 10


def test_names_and_counts():
    assert short_name("a" * 500 + "x") != short_name("a" * 500 + "y")
    assert short_name({"a": 1}) == '{"a": 1}'
    assert token_count(float("nan")) is None
    assert token_count(10**30) is None
