"""`serve` keeps what was certified: the same confidence, deferral enforced, no key let out."""

import asyncio
import gzip
import json
from contextlib import asynccontextmanager

import aiohttp
import polars as pl
import pytest
from aiohttp import web

import calibrant as cal
from calibrant.apps.serve import open_front
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.models.dispatch.limits import Breaker
from calibrant.models.ledger import Ledger
from calibrant.trust.policy import RawScore, SelectivePolicy
from calibrant.verbs.run import run
from clients.endpoints.test_hardening import WRITTEN
from clients.faults import FAULTS, KEPT, KEY, NAMED, SAME, STOPS
from clients.server import Endpoint
from collect.endpoint import Oracle
from collect.studies import write_study

ASKED = [
    {
        "question_id": f"even-{low}",
        "text": f"Name one even number from {low} to {low + 5}, both included.",
        "references": [[str(n)] for n in range(low, low + 6) if n % 2 == 0],
        "kind": "number",
    }
    for low in range(10, 130, 2)
]
PROMISE = {"max_error": 0.1, "delta": 0.1, "certified": True}


def saved(path, threshold=0.5, model="m", **fitted_on):
    """Save a policy that answers from a threshold on."""
    fitted = {"model": model, **fitted_on}
    SelectivePolicy(RawScore(), threshold, PROMISE, "2026-11-17", 500, fitted).save(path)
    return path


@asynccontextmanager
async def served(folder, policy, url, *, key_env=None, confidence="perplexity", model="m", **more):
    """Serve a policy in front of one endpoint; yield how it is asked, and the front."""
    endpoints = {} if url is None else {model: f"{url}/v1" if not url.endswith("/v1") else url}
    front = open_front(
        policy,
        endpoints={**endpoints, **more.pop("endpoints", {})},
        keys={} if key_env is None else {model: key_env},
        price={model: 1.0},
        per_token=False,
        ledger=folder / "served.sqlite",
        token="secret-token",
        measured_by=confidence,
        **more,
    )
    address = await front.start()
    headers = {"Authorization": "Bearer secret-token"}

    async def ask(body, path="/v1/chat/completions", method="POST", raw=False):
        root = address.removesuffix("/v1")
        sent = {"json": body} if method == "POST" else {}
        async with client.request(method, root + path, **sent) as reply:
            text = await reply.text()
            return reply.status, (text if raw else json.loads(text)), dict(reply.headers)

    async with aiohttp.ClientSession(headers=headers) as client:
        try:
            yield ask, front
        finally:
            await front.stop()


def question(text="What is the capital of Peru?", **more):
    return {"model": "calibrant", "messages": [{"role": "user", "content": text}], **more}


# -- the confidence that was certified -------------------------------------------------------------


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A study with several methods, and the endpoint it asked."""
    folder = tmp_path_factory.mktemp("studied")
    methods = 'methods = ["verb", "consistency", "perplexity", "p_true_prob", "self_ask"]\n'
    with Oracle() as oracle:
        study = write_study(folder / "study", oracle.url, extra=methods)
        lines = "".join(json.dumps(row) + "\n" for row in ASKED)
        (study / "questions.jsonl").write_text(lines)
        run(study)
        yield study, oracle


@pytest.mark.parametrize("method", ["verb", "consistency", "perplexity", "p_true_prob", "self_ask"])
def test_the_served_confidence_is_the_certified_one(studied, tmp_path, method):
    study, _ = studied
    scores = Study(study).read("scores").filter(method=method)
    expected = dict(zip(scores["question_id"], scores["confidence"], strict=True))
    assert any(value is not None for value in expected.values())
    policy = tmp_path / "policy.json"
    cal.decide(study, costs={"wrong": 2, "ask": 1}, only_method=method, on_invalid="drop",
               save=policy)  # fmt: skip
    loaded = cal.load_policy(policy)

    async def act():
        found = []
        async with served(tmp_path, policy, None, confidence=None, model="oracle") as (ask, _):
            for row in ASKED[::4]:
                known = {"question_id": row["question_id"], "kind": row["kind"]}
                body = question(row["text"], calibrant=known)
                found.append((row["question_id"], *(await ask(body))[:2]))
        return found

    compared = 0
    for id_, status, body in asyncio.run(act()):
        told = body["calibrant"]
        if expected.get(id_) is not None:
            assert told["probability"] == pytest.approx(expected[id_], abs=1e-12)
            answers = loaded.answers(expected[id_])
            assert (told["decision"] == "answer") is answers
            assert status == (200 if answers else 409)
            compared += 1
    assert compared >= 5
    rows = pl.read_ndjson(tmp_path / "served.jsonl")
    assert rows.height == len(ASKED[::4])
    assert {"question_id", "answer", "confidence", "decision"} <= set(rows.columns)


def test_a_table_that_does_not_say_how_it_was_asked_is_refused(tmp_path):
    policy = saved(tmp_path / "p.json", asked={"method": "confidence", "not_live": "a table"})
    with pytest.raises(InputError, match="how the confidence is measured is not known: a table"):
        open_front(policy, endpoints={"m": "http://127.0.0.1:1/v1"}, keys={}, price={},
                   per_token=False, ledger=tmp_path / "l.sqlite", token="t")  # fmt: skip


def test_a_policy_says_when_it_is_saved_that_it_cannot_be_asked_live(tmp_path):
    table = pl.DataFrame({"confidence": [0.9, 0.4] * 40, "correct": [1, 0] * 40})
    cal.decide(table, max_error=0.2, save=tmp_path / "p.json")
    saved_as = json.loads((tmp_path / "p.json").read_text())["fitted_on"]["asked"]
    assert "table" in saved_as["not_live"]


# -- deferral --------------------------------------------------------------------------------------


def test_below_the_threshold_the_caller_gets_what_was_chosen(tmp_path):
    policy = saved(tmp_path / "p.json", threshold=1.0)

    async def act():
        found = {}
        with Endpoint() as small, Endpoint() as large:
            async with served(tmp_path, policy, small.url) as (ask, _):
                found["status"] = await ask(question())
            async with served(tmp_path, policy, small.url, defer="text:I do not know") as (ask, _):
                found["text"] = await ask(question())
            more = {"endpoints": {"large": f"{large.url}/v1"}}
            async with served(tmp_path, policy, small.url, defer="large", **more) as (ask, _):
                found["large"] = await ask(question())
            found["asked"] = [call["model"] for call in large.calls]
        return found

    found = asyncio.run(act())
    status, body, headers = found["status"]
    assert (status, body["error"]["type"]) == (409, "deferred")
    assert "choices" not in body, "the answer is not given"
    assert headers["X-Calibrant-Decision"] == "defer"
    status, body, _ = found["text"]
    assert (status, body["choices"][0]["message"]["content"]) == (200, "I do not know")
    status, body, _ = found["large"]
    assert (status, body["calibrant"]["answered_by"]) == (200, "large")
    assert found["asked"] == ["large"]


def test_an_answer_carries_its_promise(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            async with served(tmp_path, policy, endpoint.url) as (ask, _):
                return await ask(question(tools=[{"type": "function"}])), endpoint.calls

    (status, body, headers), calls = asyncio.run(act())
    assert status == 200
    told = body["calibrant"]
    assert "at most 10% of the answers given are wrong" in told["promise"]
    assert headers["X-Calibrant-Probability"] == str(told["probability"])
    assert headers["X-Calibrant-Policy"] == told["policy"]
    assert calls[0]["tools"] == [{"type": "function"}], "other fields are passed on"


# -- paid once, kept, counted ----------------------------------------------------------------------


def test_twenty_equal_requests_at_a_time_are_one_call(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            endpoint.behaviour.latency_s = 0.3
            async with served(tmp_path, policy, endpoint.url) as (ask, front):
                asked = [ask(question()) for _ in range(20)]
                found = [body["calibrant"]["cost"] for _, body, _ in await asyncio.gather(*asked)]
                first = len(endpoint.calls)
                await ask(question())
                return found, first, len(endpoint.calls), front.engine.cost

    costs, first, then, total = asyncio.run(act())
    assert sorted(costs) == [0.0] * 19 + [1.0]
    assert first == 1
    assert then == 2, "at a temperature nothing is answered from the store"
    assert total == 2.0


def test_at_temperature_0_the_ledger_answers(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            async with served(tmp_path, policy, endpoint.url) as (ask, _):
                for _ in range(3):
                    status, _, _ = await ask(question(temperature=0))
                    assert status == 200
            return len(endpoint.calls)

    assert asyncio.run(act()) == 1


@pytest.mark.parametrize(
    "name", [n for n, f in FAULTS.items() if f.timeout_s > 2 and n != "the key"]
)
def test_an_endpoint_that_fails_is_handed_on_typed_and_nothing_is_kept(tmp_path, name):
    fault = FAULTS[name]
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            if fault.call is not None:
                endpoint.behaviour.fault = lambda number, body: fault.call()
            else:
                endpoint.behaviour.spoil = lambda number, answer: fault.spoil("openai", answer)
            async with served(tmp_path, policy, endpoint.url) as (ask, front):
                dispatcher = front.engine.measures["m"]._dispatcher
                dispatcher.first_backoff_s, dispatcher.patience_s = 0.001, 0.5
                bad = await ask(question(temperature=0))
                endpoint.behaviour.fault = endpoint.behaviour.spoil = None
                front.engine.breakers["m"] = Breaker()
                return bad, await ask(question(temperature=0))

    (status, body, _), (then, good, _) = asyncio.run(act())
    assert then in (200, 409)
    assert good["calibrant"]["cost"] >= 0
    if fault.end in (NAMED, STOPS) or name.startswith("status"):
        assert body["error"]["type"] == "upstream"
        assert status >= 400
        said = int(name.split()[1]) if name.startswith("status") else None
        if said in (400, 413, 422, 429, 503):
            assert status == said
        assert then == 200, "a failure is never answered from the store"
    else:
        assert fault.end in (SAME, KEPT)
    with Ledger(tmp_path / "served.sqlite", read_only=True) as ledger:
        assert ledger.path.is_file()


# -- no key gets out -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", WRITTEN)
def test_a_repeated_key_is_not_stored_forwarded_or_logged(tmp_path, form, monkeypatch, capfdbinary):
    monkeypatch.setenv("SERVED_KEY", KEY)
    policy = saved(tmp_path / "p.json")
    answer = {"id": "1", "choices": [{"message": {"role": "assistant", "content": "KEY"}}]}
    text = json.dumps(answer).replace("KEY", WRITTEN[form])

    def echo(number, body):
        return web.Response(
            body=text.encode(), content_type="application/json", headers={"X-Echo": KEY}
        )

    async def act():
        with Endpoint() as endpoint:
            endpoint.behaviour.fault = echo
            async with served(
                tmp_path, policy, endpoint.url, key_env="SERVED_KEY", log_requests=True
            ) as (ask, _):
                return await ask(question(), raw=True), endpoint.headers

    (status, forwarded, headers), sent = asyncio.run(act())
    assert sent[0]["Authorization"] == f"Bearer {KEY}"
    assert status == 502
    logged = capfdbinary.readouterr()
    places = [forwarded.encode(), str(headers).encode(), logged.out, logged.err]
    places += [path.read_bytes() for path in tmp_path.iterdir()]
    for place in places:
        assert KEY.encode() not in place
        assert WRITTEN[form].encode() not in place


HALVES = (KEY[:14], KEY[14:])


def _said(content="yes", status=200, headers=None, **more):
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, **more}
    body = {"id": "1", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    return web.json_response(body, status=status, headers=headers)


def _failed(status, reason=None, headers=None, **error):
    return web.json_response(
        {"error": {"message": "no", **error}}, status=status, reason=reason, headers=headers
    )


def _tokens(*texts):
    return {"content": [{"token": text, "logprob": -0.1, "top_logprobs": []} for text in texts]}


# Places of an answer where nobody looks for a key.
PLACES = {
    "a packed body": lambda: web.Response(
        body=gzip.compress(json.dumps({"choices": [], "note": KEY}).encode()),
        headers={"Content-Encoding": "gzip"},
        content_type="application/json",
    ),
    "two fields": lambda: _said(HALVES[0], note=HALVES[1]),
    "two parts of a stream": lambda: web.Response(
        text="".join(f'data: {{"choices": [{{"text": "{half}"}}]}}\n\n' for half in HALVES),
        content_type="text/event-stream",
    ),
    "tokens": lambda: _said(logprobs=_tokens(*(KEY[at : at + 3] for at in range(0, len(KEY), 3)))),
    "other tokens": lambda: _said(
        logprobs={"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": [
            {"token": half, "logprob": -2.0} for half in HALVES]}]}
    ),
    "backwards": lambda: _said(KEY[::-1]),
    "the name of a field": lambda: _said(**{KEY: 1}),
    "the name of a header": lambda: _failed(429, headers={f"X-{KEY.replace('/', '-')}": "1"}),
    "a header that is read": lambda: _failed(429, headers={"Retry-After": KEY}),
    "the reason of a status": lambda: _failed(503, reason=KEY),
    "the field of an error": lambda: _failed(400, param=KEY),
    "the kind of an error": lambda: _failed(500, type=KEY, code=KEY),
    "a cookie": lambda: _said(headers={"Set-Cookie": f"session={KEY}; Path=/"}),
    "a redirection": lambda: web.Response(status=307, headers={"Location": f"/v2?key={KEY}"}),
    "a tool": lambda: _said(None, tool_calls=[{"function": {"arguments": f'{{"k": "{KEY}"}}'}}]),
    "why it ended": lambda: _said(finish_reason=KEY),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_key_in_an_unusual_place_is_not_stored_forwarded_or_logged(
    tmp_path, place, monkeypatch, capfdbinary
):
    monkeypatch.setenv("SERVED_KEY", KEY)
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            endpoint.behaviour.fault = lambda number, body: PLACES[place]()
            async with served(
                tmp_path, policy, endpoint.url, key_env="SERVED_KEY", log_requests=True
            ) as (ask, front):
                dispatcher = front.engine.measures["m"]._dispatcher
                dispatcher.first_backoff_s, dispatcher.patience_s = 0.001, 0.3
                return await ask(question(), raw=True)

    status, forwarded, headers = asyncio.run(act())
    assert status >= 400 or "yes" in forwarded
    logged = capfdbinary.readouterr()
    places = [forwarded.encode(), str(headers).encode(), logged.out, logged.err]
    places += [path.read_bytes() for path in tmp_path.iterdir()]
    for held in places:
        for form in (KEY, KEY[::-1], *HALVES, KEY.replace("/", "-")):
            assert form.encode() not in held


# -- shapes, health, failures ----------------------------------------------------------------------


def test_streams_and_responses_have_their_shapes(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            async with served(tmp_path, policy, endpoint.url) as (ask, _):
                whole = await ask(question(temperature=0))
                stream = await ask(question(temperature=0, stream=True), raw=True)
                text = "What is the capital of Peru?"
                made = await ask({"input": text, "temperature": 0}, "/v1/responses")
                health = await ask(None, "/health", "GET")
                models = await ask(None, "/v1/models", "GET")
                metrics = await ask(None, "/metrics", "GET", raw=True)
                return whole, stream, made, health, models, metrics, len(endpoint.calls)

    whole, stream, made, health, models, metrics, calls = asyncio.run(act())
    text = whole[1]["choices"][0]["message"]["content"]
    events = [line.removeprefix("data: ") for line in stream[1].split("\n\n") if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == text
    assert chunks[-1]["calibrant"]["decision"] == "answer"
    assert made[1]["output"][0]["content"][0]["text"] == text
    assert calls == 1, "the same question in three shapes"
    assert health[1]["status"] == "ok"
    assert "calibrant" in [entry["id"] for entry in models[1]["data"]]
    assert 'calibrant_questions_total{decision="answer"} 3' in metrics[1]


def test_health_needs_no_token_and_everything_else_does(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            async with served(tmp_path, policy, endpoint.url) as (_ask, front):
                root = f"http://127.0.0.1:{front._door.runner.addresses[0][1]}"
                async with aiohttp.ClientSession() as stranger:
                    found = {}
                    for path in ("/health", "/metrics", "/v1/models"):
                        async with stranger.get(root + path) as reply:
                            found[path] = reply.status
                    return found

    assert asyncio.run(act()) == {"/health": 200, "/metrics": 401, "/v1/models": 401}


def test_an_endpoint_that_keeps_failing_is_left_alone(tmp_path):
    policy = saved(tmp_path / "p.json")

    async def act():
        with Endpoint() as endpoint:
            endpoint.behaviour.fault = lambda number, body: web.Response(status=500)
            async with served(tmp_path, policy, endpoint.url) as (ask, front):
                dispatcher = front.engine.measures["m"]._dispatcher
                dispatcher.first_backoff_s, dispatcher.patience_s = 0.001, 0.5
                for _ in range(3):
                    assert (await ask(question()))[0] == 502
                before = len(endpoint.calls)
                status, _body, headers = await ask(question())
                health = await ask(None, "/health", "GET")
                return status, headers, len(endpoint.calls) - before, health[1]

    status, headers, sent, health = asyncio.run(act())
    assert (status, sent) == (503, 0)
    assert int(headers["Retry-After"]) > 0
    assert health == {"status": "degraded", "policy": health["policy"], "failing": ["m"]}


# -- without a server ------------------------------------------------------------------------------


def test_one_line_in_a_program_measures_and_decides_the_same(studied, tmp_path):
    study, _ = studied
    scores = Study(study).read("scores").filter(method="consistency")
    expected = dict(zip(scores["question_id"], scores["confidence"], strict=True))
    policy = tmp_path / "policy.json"
    cal.decide(study, costs={"wrong": 2, "ask": 1}, only_method="consistency",
               on_invalid="drop", save=policy)  # fmt: skip
    loaded = cal.load_policy(policy)
    row = next(row for row in ASKED if expected.get(row["question_id"]) is not None)
    known = {"question_id": row["question_id"], "kind": row["kind"]}
    # The draws are made at a temperature: only what may be reused is answered from the ledger.
    with cal.trusted(policy, ledger=tmp_path / "l.sqlite", reuse=True) as model:
        told = model.ask(row["text"], **known)
        again = model.ask([{"role": "user", "content": row["text"]}], **known)
    assert told.probability == pytest.approx(expected[row["question_id"]], abs=1e-12)
    assert (told.decision == "answer") is loaded.answers(told.probability)
    assert "of 4 draws say" in told.why
    assert told.cost > 0
    assert (again.text, again.probability, again.cost) == (told.text, told.probability, 0)


def test_a_program_with_an_event_loop_asks_too(tmp_path):
    policy = saved(tmp_path / "p.json")

    class FromOpenAI:
        base_url = ""

    async def act():
        with Endpoint() as endpoint:
            FromOpenAI.base_url = f"{endpoint.url}/v1/"
            model = cal.trusted(
                policy, FromOpenAI(), key_env="PROGRAM_KEY", measured_by="perplexity"
            )
            told = await model.aask("What is the capital of Peru?")
            await model.aclose()
            return told, endpoint.headers[0]["Authorization"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROGRAM_KEY", KEY)
        told, sent = asyncio.run(act())
    assert told.decision == "answer"
    assert told.text
    assert "at most 10%" in told.promise
    assert sent == f"Bearer {KEY}"
