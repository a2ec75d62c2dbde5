"""A real HTTP endpoint on the loopback that can be told to misbehave."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from loopback import LoopbackApp

WORDS = ("Lima", "Quito", "Bogota", "Sucre", "Paris", "Rome", "Oslo", "Bern", "Riga", "Kyiv")


@dataclass
class Behaviour:
    """What the server does; the defaults are a good endpoint."""

    latency_s: float = 0.0
    # Called with (number of the call, body): a response to give instead of an answer, or None.
    fault: Callable[[int, dict[str, Any]], Any] | None = None
    choices_at_most: int | None = None
    same_text: bool = False
    ignore_seed: bool = False
    copies_within_call: bool = False
    same_id: bool = False
    logprob: Callable[[int], float] = lambda position: -0.1 - 0.01 * position
    model: str | None = None
    # Called with (number of the call, good answer): the JSON, bytes or response to send instead.
    spoil: Callable[[int, dict[str, Any]], Any] | None = None


@dataclass
class Endpoint(LoopbackApp):
    """An endpoint in a thread of its own: `with Endpoint() as server: server.url`."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    calls: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    drawn: Counter = field(default_factory=Counter)
    under_way: int = 0
    most_under_way: int = 0

    def app(self) -> web.Application:
        """The three interfaces."""
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._message)
        app.router.add_post("/v1beta/models/{name}", self._content)
        return app

    async def _take(self, request: web.Request) -> tuple[int, dict[str, Any], Any]:
        body = json.loads(await request.read())
        self.calls.append(body)
        self.headers.append(dict(request.headers))
        number = len(self.calls)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.behaviour.latency_s:
                await asyncio.sleep(self.behaviour.latency_s)
            fault = self.behaviour.fault(number, body) if self.behaviour.fault else None
            if callable(fault):
                fault = await fault(request)
        finally:
            self.under_way -= 1
        return number, body, fault

    def text(self, body: dict[str, Any], number: int, position: int) -> str:
        """The answer is a function of the prompt and the seed of the draw."""
        prompt = json.dumps(body["messages"])
        if self.behaviour.same_text:
            return f"The capital is, as everyone knows, the city of {WORDS[len(prompt) % 10]}."
        if body.get("temperature") == 0:
            position, number = 0, 0
        if self.behaviour.copies_within_call:
            position = 0
        seed = body.get("seed")
        if seed is None or self.behaviour.ignore_seed:
            salt = f"call {number} choice {position}"
        else:
            salt = f"seed {seed + position}"
        digest = hashlib.sha256((prompt + salt).encode()).digest()
        return " ".join(WORDS[byte % 10] for byte in digest[:6])

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        number, body, fault = await self._take(request)
        if fault is not None:
            return fault
        n = body.get("n", 1)
        if self.behaviour.choices_at_most is not None:
            n = min(n, self.behaviour.choices_at_most)
        choices = [self._choice(body, number, position) for position in range(n)]
        seed = body.get("seed")
        prompt = json.dumps(body["messages"])
        for position in range(n):
            self.drawn[prompt, None if seed is None else seed + position] += 1
        tokens = sum(len(choice["message"]["content"].split()) for choice in choices)
        return self._reply(
            number,
            {
                "id": "always-the-same" if self.behaviour.same_id else f"call-{number}",
                "model": self.behaviour.model or body["model"],
                "choices": choices,
                "usage": {"prompt_tokens": 10, "completion_tokens": tokens},
            },
        )

    def _reply(self, number: int, answer: dict[str, Any]) -> web.StreamResponse:
        spoilt = self.behaviour.spoil(number, answer) if self.behaviour.spoil else answer
        if isinstance(spoilt, web.StreamResponse):
            return spoilt
        body = spoilt if isinstance(spoilt, bytes) else json.dumps(spoilt).encode()
        return web.Response(body=body, content_type="application/json")

    def _choice(self, body: dict[str, Any], number: int, position: int) -> dict[str, Any]:
        text = self.text(body, number, position)
        choice: dict[str, Any] = {
            "index": position,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        if body.get("logprobs"):
            choice["logprobs"] = {
                "content": [
                    {
                        "token": token,
                        "logprob": self.behaviour.logprob(place),
                        "top_logprobs": [
                            {"token": token, "logprob": self.behaviour.logprob(place)},
                            {"token": "other", "logprob": -5.0},
                        ][: body.get("top_logprobs", 0)],
                    }
                    for place, token in enumerate(text.split())
                ]
            }
        return choice

    async def _message(self, request: web.Request) -> web.StreamResponse:
        number, body, fault = await self._take(request)
        if fault is not None:
            return fault
        return self._reply(
            number,
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": body["model"] + "-20250929",
                "content": [{"type": "text", "text": self.text(body, number, 0)}],
                "stop_reason": "max_tokens" if body["max_tokens"] < 6 else "end_turn",
                "usage": {"input_tokens": 12, "output_tokens": 6},
            },
        )

    async def _content(self, request: web.Request) -> web.StreamResponse:
        number, body, fault = await self._take(request)
        if fault is not None:
            return fault
        config = body["generationConfig"]
        asked = {"messages": body["contents"], "seed": config.get("seed")}
        candidates = []
        for position in range(config["candidateCount"]):
            text = self.text(asked, number, position)
            candidate: dict[str, Any] = {
                "index": position,
                "content": {"role": "model", "parts": [{"text": text}]},
                "finishReason": "STOP",
            }
            if config.get("responseLogprobs"):
                candidate["logprobsResult"] = {
                    "chosenCandidates": [
                        {"token": token, "logProbability": -0.2} for token in text.split()
                    ],
                    "topCandidates": [
                        {
                            "candidates": [
                                {"token": token, "logProbability": -0.2},
                                {"token": "other", "logProbability": -3.0},
                            ]
                        }
                        for token in text.split()
                    ],
                }
            candidates.append(candidate)
        return self._reply(
            number,
            {
                "candidates": candidates,
                "usageMetadata": {
                    "promptTokenCount": 11,
                    "candidatesTokenCount": 6 * len(candidates),
                },
                "modelVersion": "gemini-test-001",
                "responseId": f"resp-{number}",
            },
        )


def error(status: int, message: str = "no", *, headers: dict[str, str] | None = None) -> Any:
    """A refusal in OpenAI's form."""
    return web.json_response(
        {"error": {"message": message, "type": "test"}}, status=status, headers=headers
    )


async def half_written(request: web.Request) -> web.StreamResponse:
    """Promise more bytes than are sent, then cut the connection."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = 5000
    await response.prepare(request)
    await response.write(b'{"id": "x", "choices": [{"index": 0, "mess')
    request.transport.close()
    return response


async def half_json(request: web.Request) -> web.StreamResponse:
    """A complete HTTP answer whose JSON is cut."""
    return web.Response(body=b'{"id": "x", "choices": [{"in', content_type="application/json")


async def web_page(request: web.Request) -> web.StreamResponse:
    """What a gateway shows when the server behind it is away."""
    return web.Response(text="<html>Please wait</html>", content_type="text/html")


async def silence(request: web.Request) -> web.StreamResponse:
    """Say nothing until the client has given up."""
    await asyncio.sleep(3.0)
    return web.Response()


async def cut_chunks(request: web.Request) -> web.StreamResponse:
    """Send an answer in pieces and cut the connection before the last one."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(b'{"id": "x"')
    request.transport.abort()
    return response


async def trickle(request: web.Request) -> web.StreamResponse:
    """Send one byte after the other, for longer than anybody waits."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionError):
        for _ in range(60):
            await response.write(b" ")
            await asyncio.sleep(0.05)
    return response


async def reset(request: web.Request) -> web.StreamResponse:
    """Cut the connection before any answer."""
    request.transport.abort()
    return web.Response()
