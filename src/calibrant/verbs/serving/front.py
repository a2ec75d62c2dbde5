"""The front: an OpenAI-compatible address that asks models until the policy is content."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp
import orjson
from aiohttp import web

from calibrant.core.errors import InputError
from calibrant.core.loopback import Loopback
from calibrant.epistemic.deferral.policy import question_key
from calibrant.verbs.serving.log import ServedLog, call_key

_MOST_BODY = 4 * 1024 * 1024
_MOST_REPLY = 64 * 1024 * 1024
_SECONDS = 600
# Names under which tables hold the number of tokens of an answer.
_TOKENS = ("token_length", "completion_tokens", "tokens", "n_tokens", "length", "len")
_OWN = ("calibrant",)


class Decider(Protocol):
    """What the front needs of a policy: the next step with one question."""

    def __call__(self, question: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
        """Return a step with ``action``, ``model`` and ``risk``."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked.

    Parameters
    ----------
    url
        Base address, up to and with ``/v1``.
    name
        What the endpoint calls the model.
    key
        Secret sent along, or None.
    price
        Cost per call, or per token of the answer where `per_token`.
    """

    url: str
    name: str
    key: str | None = None
    price: float = 0.0
    per_token: bool = False


def answer_confidence(response: Mapping[str, Any]) -> float | None:
    """Return the confidence of an answer: stated by the endpoint, or the mean token chance.

    Examples
    --------
    >>> tokens = [{"logprob": -0.1}, {"logprob": -0.3}]
    >>> round(answer_confidence({"choices": [{"logprobs": {"content": tokens}}]}), 3)
    0.819
    """
    stated = (response.get("calibrant") or {}).get("confidence")
    if isinstance(stated, int | float) and 0 <= stated <= 1:
        return float(stated)
    choices = response.get("choices") or [{}]
    content = ((choices[0].get("logprobs") or {}).get("content")) or []
    values = [token["logprob"] for token in content if token.get("logprob") is not None]
    return math.exp(sum(values) / len(values)) if values else None


@dataclass(slots=True)
class Front:
    """Serve a policy in front of its models.

    Parameters
    ----------
    decide
        The policy's next step.
    endpoints
        By model of the policy.
    log
        What was asked.
    token
        Secret that every request must carry.
    describe
        Adds features that are computed from the text, where the policy has an embedding.
    """

    decide: Decider
    endpoints: Mapping[str, Endpoint]
    log: ServedLog
    token: str
    describe: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    _client: aiohttp.ClientSession | None = None
    _door: Loopback | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen and return the base address."""
        self._door = Loopback(self.token, "calibrant serve", say=_error)
        app = self._door.app(most_body=_MOST_BODY)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/calibrant", self._totals)
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_SECONDS), json_serialize=_text
        )
        try:
            found = await self._door.listen(app, (port,), host=host)
        except InputError:
            await self.stop()
            raise
        return f"http://{host}:{found}/v1"

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._client is not None:
            await self._client.close()
        if self._door is not None:
            await self._door.stop()

    async def _models(self, request: web.Request) -> web.Response:  # noqa: ARG002
        names = ["calibrant", *self.endpoints]
        return _json({"object": "list", "data": [{"id": n, "object": "model"} for n in names]})

    async def _totals(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return _json(self.log.totals())

    async def _complete(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        body = await _body(request)
        question = self._question(body)
        sent = {name: value for name, value in body.items() if name not in _OWN}
        sent.setdefault("logprobs", True)
        asked: dict[str, Any] = {}
        responses: dict[str, dict[str, Any]] = {}
        cost = 0.0
        step = self.decide(question, asked)
        while step.action == "ask" and step.model in self.endpoints and step.model not in asked:
            try:
                found, spent = await self._ask(step.model, sent)
            except (aiohttp.ClientError, TimeoutError) as error:
                return _error(502, f"{step.model} could not be asked: {type(error).__name__}")
            cost += spent
            responses[step.model], asked[step.model] = found, _said(found)
            step = self.decide(question, asked)
        self.log.add_question(
            question_key(question),
            step.action,
            step.model if step.action == "answer" else None,
            list(asked),
            step.risk,
            cost,
            time.perf_counter() - started,
        )
        told = {
            "decision": step.action,
            "answered_by": step.model if step.action == "answer" else None,
            "asked": list(asked),
            "risk": step.risk,
            "cost": cost,
        }
        given = responses.get(step.model) or next(reversed(responses.values()), {})
        return _json({**given, "model": step.model, "calibrant": told})

    def _question(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is known of the question: its text, and what the caller says about it."""
        if body.get("stream"):
            raise InputError("streams are not served: an answer is judged before it is given")
        texts = [m.get("content") for m in body.get("messages") or () if m.get("role") == "user"]
        if not texts:
            raise InputError("a question needs a message of the role 'user'")
        told = {**(body.get("metadata") or {}), **(body.get("calibrant") or {})}
        question = {"text": _plain_text(texts[-1]), **told}
        return question if self.describe is None else self.describe(question)

    async def _ask(self, model: str, sent: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """Ask one model, or return what it said to the very same question before."""
        endpoint = self.endpoints[model]
        body = {**sent, "model": endpoint.name}
        key = call_key(model, body)
        known = self.log.answered(key)
        if known is not None:
            return known, 0.0
        headers = {} if endpoint.key is None else {"Authorization": f"Bearer {endpoint.key}"}
        started = time.perf_counter()
        assert self._client is not None
        url = f"{endpoint.url.rstrip('/')}/chat/completions"
        # A redirect would carry the key and the question to an address that nobody chose.
        async with self._client.post(
            url, json=body, headers=headers, allow_redirects=False
        ) as reply:
            found = await _reply(reply)
        tokens = (found.get("usage") or {}).get("completion_tokens")
        spent = endpoint.price * (tokens or 0) if endpoint.per_token else endpoint.price
        seconds = time.perf_counter() - started
        self.log.add_call(key, model, 200, answer_confidence(found), tokens, spent, seconds, found)
        return found, spent


async def _reply(reply: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the JSON object that a model's endpoint answers, read up to a size."""
    reply.raise_for_status()
    raw = b""
    async for piece in reply.content.iter_any():
        raw += piece
        if len(raw) > _MOST_REPLY:
            raise aiohttp.ClientPayloadError(f"more than {_MOST_REPLY:,} bytes")
    try:
        found = orjson.loads(raw) if reply.status == 200 else None
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise aiohttp.ClientPayloadError("no JSON object")
    return found


def _said(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a policy may know of an answer: its confidence and its length."""
    tokens = (response.get("usage") or {}).get("completion_tokens")
    known = dict.fromkeys(_TOKENS, tokens) if tokens is not None else {}
    return {**known, **(response.get("calibrant") or {}), "confidence": answer_confidence(response)}


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise InputError(f"the request is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise InputError("the request must be a JSON object")
    return body


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    return _json({"error": {"message": message, "type": "calibrant"}}, status)
