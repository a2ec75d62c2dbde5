"""A chat endpoint on the loopback whose replies depend on the prompt and the seed alone.

It answers the shipped prompts of the style ``short`` in their form, so that a whole study can be
run against it in a second. A share of the replies is refused, empty or out of form, as a real
model's would be.
"""

import asyncio
import hashlib
import json
import math
import random
import re
import time
from typing import Any

from aiohttp import web

from loopback import LoopbackApp

CITIES = ("Lima", "Quito", "Bogota", "Sucre", "Paris")


def verdict(asked: str) -> str:
    """Return what a judge says who finds all answers different and wrong, in the form asked for."""
    code = re.search(r'"check": "([0-9a-f]+)"', asked)[1]
    field = re.search(r'"check": "[0-9a-f]+", "(\w+)"', asked)[1]
    value = {"same": False, "number": 0, "groups": [], "verdict": "INCORRECT"}[field]
    return json.dumps({"check": code, field: value})


def reply(body: dict[str, Any], seed: int | None) -> str:
    """Return the reply to a prompt."""
    asked = body["messages"][-1]["content"]
    salt = body["model"] if body.get("temperature") == 0 else f"seed {seed}"
    dice = random.Random(hashlib.sha256(f"{asked}|{salt}".encode()).digest())
    if "Reply in this form:" in asked:
        return verdict(asked)
    numbers = re.findall(r"\d+", asked)
    guess = str(dice.randint(int(numbers[0]), int(numbers[1]))) if len(numbers) >= 2 else None
    guess = guess or dice.choice(CITIES)
    sure = round(dice.random(), 2)
    if "one word, Yes or No" in asked:
        return dice.choice(["Yes", "No"])
    if "A. " in asked and asked.endswith("\nAnswer:"):
        return dice.choice("ABC")
    if asked.endswith("A. True B. False") or "letter A or B" in asked:
        return dice.choices(["A", "B", "C"], [6, 3, 1])[0]
    if "Probability that it is right:" in asked:
        return dice.choices([f"{sure}", "rather sure"], [9, 1])[0]
    if "Two answers with probabilities:" in asked:
        return f"1. {guess} | {sure}\n2. {dice.choice(CITIES)} | {round((1 - sure) / 2, 2)}"
    if "Answer and probability:" in asked:
        return f"{guess} | {sure}"
    return dice.choices([guess, "I don't know", ""], [18, 1, 1])[0]


class Oracle(LoopbackApp):
    """The endpoint, in a thread of its own: ``with Oracle() as oracle: oracle.url``."""

    root = "/v1"

    def __init__(self, *, latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.calls: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        """The one interface."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.calls.append({"at": time.time(), **body})
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        choices = [_choice(body, place) for place in range(body.get("n", 1))]
        return web.json_response(
            {
                "id": f"call-{len(self.calls)}",
                "model": body["model"],
                "choices": choices,
                "usage": {
                    "prompt_tokens": sum(len(m["content"].split()) for m in body["messages"]),
                    "completion_tokens": sum(
                        len(choice["message"]["content"].split()) for choice in choices
                    ),
                },
            }
        )


def _choice(body: dict[str, Any], place: int) -> dict[str, Any]:
    seed = None if body.get("seed") is None else body["seed"] + place
    text = reply(body, seed)
    choice: dict[str, Any] = {
        "index": place,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if body.get("logprobs"):
        tokens = text.split() or [""]
        choice["logprobs"] = {"content": [_token(token, body) for token in tokens]}
    return choice


def _token(token: str, body: dict[str, Any]) -> dict[str, Any]:
    share = 0.05 + 0.9 * (hashlib.sha256(json.dumps(body["messages"]).encode()).digest()[0] / 255)
    yes_no = "Yes or No" in body["messages"][-1]["content"]
    words = ("Yes", "No", "Maybe") if yes_no else ("A", "B", "C")
    alternatives = [
        {"token": word, "logprob": round(_log(chance), 6)}
        for word, chance in zip(words, (share, 0.97 - share, 0.02), strict=True)
    ]
    return {
        "token": token,
        "logprob": _log(0.05 + 0.9 * hashlib.sha256(token.encode()).digest()[0] / 255),
        "top_logprobs": alternatives[: body.get("top_logprobs", 0)],
    }


def _log(share: float) -> float:
    return math.log(share)
