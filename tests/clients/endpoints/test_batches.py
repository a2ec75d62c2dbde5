"""Batches of three providers: submitted once, followed, collected, also by a later run."""

import asyncio
import json

import pytest
from aiohttp import web

from calibrant.models import Ask, Dispatcher, Message, Request, open_client
from calibrant.models.endpoints import batches
from calibrant.models.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(batches, "GATHER_S", 0.05)
    monkeypatch.setattr(batches, "POLL_S", 0.02)


class Provider:
    """Takes batches as OpenAI, Anthropic and Gemini document it; `ends` says when they end."""

    def __init__(self):
        self.batches, self.files, self.alone = [], {}, 0
        self.ends, self.spoilt = True, set()
        self.app = web.Application()
        routes = {
            "/v1/files": self.upload,
            "/v1/batches": self.openai,
            "/v1/messages/batches": self.anthropic,
            "/v1beta/models/m:batchGenerateContent": self.gemini,
            "/v1/chat/completions": self.single,
        }
        for path, handler in routes.items():
            self.app.router.add_post(path, handler)
        self.app.router.add_get("/v1/batches/{id}", self.openai_about)
        self.app.router.add_get("/v1/files/{id}/content", self.content)
        self.app.router.add_get("/v1/messages/batches/{id}", self.anthropic_about)
        self.app.router.add_get("/v1/messages/batches/{id}/results", self.anthropic_results)
        self.app.router.add_get("/v1beta/batches/{id}", self.gemini_about)

    async def single(self, request):
        self.alone += 1
        return web.Response(status=500)

    async def upload(self, request):
        form = await request.post()
        assert form["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = form["file"].file.read()
        return web.json_response({"id": name})

    async def openai(self, request):
        body = await request.json()
        assert body["endpoint"] == "/v1/chat/completions"
        lines = self.files[body["input_file_id"]].splitlines()
        return web.json_response({"id": self.taken([json.loads(line) for line in lines])})

    async def anthropic(self, request):
        return web.json_response({"id": self.taken((await request.json())["requests"])})

    async def gemini(self, request):
        given = (await request.json())["batch"]["input_config"]["requests"]["requests"]
        return web.json_response({"name": f"batches/{self.taken(given)}"})

    def taken(self, calls):
        self.batches.append(calls)
        return f"b{len(self.batches) - 1}"

    def calls(self, request):
        return self.batches[int(request.match_info["id"].removeprefix("b"))]

    async def openai_about(self, request):
        if not self.ends:
            return web.json_response({"status": "in_progress"})
        lines = []
        for call in self.calls(request):
            text, asked = call["body"]["messages"][-1]["content"], call["body"].get("n", 1)
            choices = [
                {"index": i, "message": {"content": f"{text}!"}, "finish_reason": "stop"}
                for i in range(asked)
            ]
            usage = {"prompt_tokens": 5, "completion_tokens": asked}
            body = {"id": "x", "model": "m", "choices": choices, "usage": usage}
            reply = {"status_code": 200, "body": body}
            if text in self.spoilt:
                reply = {"status_code": 400, "body": {"error": {"message": "no"}}}
            lines.append(json.dumps({"custom_id": call["custom_id"], "response": reply}))
        self.files["out"] = "\n".join(reversed(lines)).encode()  # any order
        return web.json_response({"status": "completed", "output_file_id": "out"})

    async def content(self, request):
        return web.Response(body=self.files[request.match_info["id"]])

    async def anthropic_about(self, request):
        state = "ended" if self.ends else "in_progress"
        return web.json_response({"processing_status": state})

    async def anthropic_results(self, request):
        lines = []
        for call in self.calls(request):
            text = call["params"]["messages"][-1]["content"]
            message = {
                "id": "x", "model": "m", "content": [{"type": "text", "text": f"{text}!"}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 1},
            }  # fmt: skip
            result = {"type": "succeeded", "message": message}
            if text in self.spoilt:
                result = {"type": "errored", "error": {"error": {"type": "invalid_request_error"}}}
            lines.append(json.dumps({"custom_id": call["custom_id"], "result": result}))
        return web.Response(text="\n".join(lines))

    async def gemini_about(self, request):
        if not self.ends:
            return web.json_response({"name": "b", "metadata": {"state": "BATCH_STATE_RUNNING"}})
        found = []
        for call in self.calls(request):
            text = call["request"]["contents"][-1]["parts"][0]["text"]
            count = call["request"]["generationConfig"]["candidateCount"]
            parts = {"content": {"parts": [{"text": f"{text}!"}]}, "finishReason": "STOP"}
            usage = {"promptTokenCount": 5, "candidatesTokenCount": count}
            reply = {"response": {"candidates": [parts] * count, "usageMetadata": usage}}
            if text in self.spoilt:
                reply = {"error": {"code": 400, "message": "no"}}
            found.append({**reply, "metadata": call["metadata"]})
        return web.json_response(
            {"done": True, "response": {"inlinedResponses": {"inlinedResponses": found}}}
        )


async def _with(provider, act):
    runner = web.AppRunner(provider.app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await act(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


KINDS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}


def client_of(kind, url, folder):
    spec = {"kind": kind, "model": "m", "base_url": url + KINDS[kind], "api_key_env": ""}
    return open_client({**spec, "batch": str(folder / "batches.json")})


async def collected(kind, url, folder, draws=3, questions=4, timeout=20.0):
    client = client_of(kind, url, folder)
    asks = [
        Ask(Request("m", (Message("user", f"q{i}"),)), "answer", draws=draws, tag=i)
        for i in range(questions)
    ]
    with Ledger(folder / "ledger.sqlite") as ledger:
        try:
            async with asyncio.timeout(timeout):
                dispatcher = Dispatcher(client, ledger, first_backoff_s=0.01)
                return {o.ask.tag: o async for o in dispatcher.ask_all(asks)}
        finally:
            await client.close()


@pytest.mark.parametrize("kind", KINDS)
def test_all_calls_of_a_turn_are_one_batch_and_every_draw_comes_home(kind, tmp_path):
    provider = Provider()
    found = asyncio.run(_with(provider, lambda url: collected(kind, url, tmp_path)))
    assert {tag: [d.completion.text for d in o.draws] for tag, o in found.items()} == {
        i: [f"q{i}!"] * 3 for i in range(4)
    }
    assert len(provider.batches) == 1
    assert len(provider.batches[0]) == (12 if kind == "anthropic" else 4)
    assert provider.alone == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_stopped_collects_what_it_has_paid_for(kind, tmp_path):
    provider = Provider()

    async def act(url):
        provider.ends = False
        with pytest.raises(TimeoutError):
            await collected(kind, url, tmp_path, timeout=1.5)
        provider.ends = True
        return await collected(kind, url, tmp_path)

    found = asyncio.run(_with(provider, act))
    assert all(outcome.complete for outcome in found.values())
    assert len(provider.batches) == 1, "nothing is paid twice"


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_is_refused_sets_its_question_aside(kind, tmp_path):
    provider = Provider()
    provider.spoilt = {"q1"}
    found = asyncio.run(_with(provider, lambda url: collected(kind, url, tmp_path, draws=1)))
    assert found[1].problem.kind == "permanent"
    assert all(found[i].complete for i in (0, 2, 3))


def test_a_setting_of_a_study_that_halves_the_price(tmp_path):
    from calibrant.models.study.config import parse_config
    from calibrant.models.study.costs import study_prices

    def prices(**more):
        model = {"name": "m", "client": "openai", "model": "gpt-4.1-mini", **more}
        values = {"questions": "q.jsonl", "models": [model]}
        return study_prices(parse_config(values, folder=tmp_path, source="study.toml"))["m"]

    assert prices(batch=True).completion == prices().completion / 2
    assert prices(batch=True).prompt == prices().prompt / 2
