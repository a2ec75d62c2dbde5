"""Endpoints that refuse what the providers' documentation says they refuse, in their own words."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from collect.endpoint import reply
from loopback import LoopbackApp

Refusal = Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None]


def openai_error(message: str, param: str, code: str) -> tuple[int, dict[str, Any]]:
    """Return an error as OpenAI writes it."""
    kind = "invalid_request_error"
    return 400, {"error": {"message": message, "type": kind, "param": param, "code": code}}


def gpt5(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Refuse what models that think refuse at OpenAI and Azure, one thing at a time."""
    if "max_tokens" in body:
        return openai_error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if body.get("temperature", 1) != 1:
        return openai_error(
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this "
            "model. Only the default (1) value is supported.",
            "temperature",
            "unsupported_value",
        )
    for name in ("top_p", "logprobs", "top_logprobs", "stop", "presence_penalty"):
        if name in body:
            return openai_error(
                f"Unsupported parameter: '{name}' is not supported with this model.",
                name,
                "unsupported_parameter",
            )
    return None


def mistral(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Refuse fields that the schema does not know, with status 422."""
    known = {"model", "messages", "temperature", "top_p", "max_tokens", "stop", "random_seed", "n"}
    extra = [name for name in body if name not in known]
    if not extra:
        return None
    detail = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in extra
    ]
    return 422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}


def few_alternatives(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Take at most five alternatives and one choice."""
    if body.get("top_logprobs", 0) > 5:
        return openai_error(
            "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 5, but got "
            f"{body['top_logprobs']} instead.",
            "top_logprobs",
            "integer_above_max_value",
        )
    if body.get("n", 1) > 1:
        return 400, {
            "error": {"message": "Only one completion choice is allowed: n is unsupported"}
        }
    return None


def no_seed(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Know no seed."""
    unknown = {"error": "Unrecognized request argument supplied: seed"}
    return (400, unknown) if "seed" in body else None


@dataclass
class Strict(LoopbackApp):
    """An endpoint that refuses by rule, and answers the shipped short prompts."""

    refuse: Refusal = gpt5
    model: str = "deployment-of-mine"
    thinks: int = 0
    """Tokens that every answer spends on thinking first."""
    path: str = "/v1/chat/completions"
    calls: list[dict[str, Any]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    root: str = "/v1"

    def app(self) -> web.Application:
        """The one interface."""
        app = web.Application()
        app.router.add_post(self.path, self._chat)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.queries.append(request.query_string)
        self.headers.append(dict(request.headers))
        if (refusal := self.refuse(body)) is not None:
            self.refused.append(body)
            return web.json_response(refusal[1], status=refusal[0])
        self.calls.append(body)
        return web.json_response(self.answer(body))

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; where there is no room for the thinking, an empty one."""
        most = body.get("max_completion_tokens", body.get("max_tokens", 10**6))
        cut = self.thinks >= most
        choices = []
        for place in range(body.get("n", 1)):
            text = "" if cut else reply(body, len(self.calls) + place)
            choice = {
                "index": place,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if cut else "stop",
            }
            if body.get("logprobs"):
                tops = [{"token": t, "logprob": -1.0 - p} for p, t in enumerate("ABCDEFGH")]
                tops = tops[: body.get("top_logprobs", 0)]
                choice["logprobs"] = {
                    "content": [
                        {"token": word, "logprob": -0.3, "top_logprobs": tops}
                        for word in text.split() or [""]
                    ]
                }
            choices.append(choice)
        return {
            "id": f"call-{len(self.calls)}",
            "model": self.model,
            "choices": choices,
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": most if cut else self.thinks + 3,
                "completion_tokens_details": {"reasoning_tokens": min(self.thinks, most)},
            },
        }
