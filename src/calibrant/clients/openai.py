"""Endpoints with the OpenAI-style chat interface: OpenAI, vLLM, llama.cpp, Ollama, Mistral ..."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from calibrant.clients.capabilities import PRESETS, Preset, adjusted, check_request
from calibrant.clients.http import HttpClient
from calibrant.clients.logprobs import refusal
from calibrant.clients.protocol import Completion, Request, TokenLogprob, Usage
from calibrant.core.errors import InputError, PermanentClientError, TransientClientError

__all__ = ["OpenAIClient", "read_answer", "write_request"]

WHOLE_NUMBERS = ("top_k",)
_token_logprob = partial(tuple.__new__, TokenLogprob)


class OpenAIClient(HttpClient):
    """A chat interface in the style of OpenAI, over aiohttp and orjson.

    Parameters
    ----------
    preset
        Name of the provider, see `calibrant.clients.capabilities.PRESETS`.
    model
        Model that decides the capabilities; single requests may name another one.
    base_url
        Where the endpoint is, if not where the preset says.
    key
        API key, or None.
    capabilities
        Changes to what the preset says the endpoint can give.
    timeout_s, headers
        See `HttpClient`.
    """

    def __init__(
        self,
        *,
        preset: str = "openai",
        model: str = "",
        base_url: str | None = None,
        key: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._preset = PRESETS[preset]
        url = base_url or self._preset.base_url
        if url is None:
            raise InputError(f"the preset {preset!r} needs a base_url")
        super().__init__(
            url,
            key=key,
            capabilities=adjusted(self._preset.capabilities_of(model), capabilities),
            timeout_s=timeout_s,
            headers=headers,
        )

    def prepare(self, request: Request) -> Request:
        """Return the request with the sampling settings that keep the whole distribution."""
        if self._preset.sampler:
            request = request.with_sampler(self._preset.sampler)
        check_request(request, self._capabilities, endpoint=self._endpoint)
        return request

    async def _call(self, request: Request) -> list[Completion]:
        body = write_request(request, self._preset, send_temperature=self._capabilities.temperature)
        answer, latency = await self._post("/chat/completions", body)
        return read_answer(
            answer, request, latency, one_choice_counted=self._preset.one_choice_counted
        )


def write_request(
    request: Request, preset: Preset, *, send_temperature: bool = True
) -> dict[str, Any]:
    """Return the body of the call."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [
            {"role": message.role, "content": message.content} for message in request.messages
        ],
        preset.max_tokens_field: request.max_tokens,
    }
    if send_temperature:
        body["temperature"] = request.temperature
    if request.n > 1:
        body["n"] = request.n
    if request.logprobs:
        if preset.integer_logprobs:
            body["logprobs"] = max(1, request.top_logprobs)
        else:
            body["logprobs"] = True
            if request.top_logprobs:
                body["top_logprobs"] = request.top_logprobs
    if request.seed is not None:
        body[preset.seed_field] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": request.schema},
        }
    for name, value in request.sampler.items():
        body[name] = int(value) if name in WHOLE_NUMBERS else value
    return body


def read_answer(
    answer: Mapping[str, Any],
    request: Request,
    latency_s: float,
    *,
    one_choice_counted: bool = False,
) -> list[Completion]:
    """Return the completions of an answer, in the order of their index.

    With `one_choice_counted` the endpoint is llama.cpp, which counts the tokens of a single
    choice only, and shows a character of several tokens as one entry with the log-prob of the
    last of them: such log-probs are refused, because their sum is not that of the text.
    """
    choices = answer.get("choices")
    if not choices:
        raise _without_choices(answer)
    choices = sorted(choices, key=lambda choice: choice.get("index", 0))[: request.n]
    try:
        logprobs = [_read_logprobs(choice) if request.logprobs else None for choice in choices]
        usages = _read_usages(
            answer.get("usage") or {}, logprobs, one_choice_counted=one_choice_counted
        )
        completions = [
            _completion(answer, request, latency_s, *parts, position)
            for position, parts in enumerate(zip(choices, logprobs, usages, strict=True))
        ]
        if not one_choice_counted:
            return completions
        total = int((answer.get("usage") or {}).get("completion_tokens") or 0)
        return [
            _refuse_gaps(one, shown, request, total)
            for one, shown in zip(completions, logprobs, strict=True)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TransientClientError(
            f"the answer has not the form of a chat completion: {type(error).__name__}: {error}"
        ) from None


def _completion(
    answer: Mapping[str, Any],
    request: Request,
    latency_s: float,
    choice: Mapping[str, Any],
    logprobs: tuple[TokenLogprob, ...] | None,
    usage: Usage,
    position: int,
) -> Completion:
    message = choice["message"]
    if logprobs and not logprobs[-1].token and choice.get("finish_reason") == "stop":
        # llama.cpp shows the end of the text as an empty token; other endpoints do not, and
        # scores made of log-probs must not depend on who served the model.
        logprobs = logprobs[:-1]
    refused = refusal(logprobs) if logprobs else None
    return Completion(
        text=message.get("content") or message.get("refusal") or "",
        finish_reason=choice.get("finish_reason") or "unknown",
        usage=usage,
        logprobs=logprobs if refused is None else None,
        model=answer.get("model"),
        request_id=answer.get("id"),
        seed=None if request.seed is None else request.seed + position,
        native_n=request.n > 1,
        latency_s=round(latency_s, 4),
        sampler=request.sampler,
        logprobs_refused=refused,
    )


def _refuse_gaps(
    completion: Completion,
    shown: tuple[TokenLogprob, ...] | None,
    request: Request,
    counted: int,
) -> Completion:
    """Refuse log-probs that leave out tokens inside a character."""
    if completion.logprobs is None or shown is None or completion.text.isascii():
        return completion
    if completion.finish_reason == "length":
        expected = request.max_tokens
    elif request.n == 1:
        expected = counted
    else:
        # Of several choices only one is counted; a character of three bytes or more is
        # seldom one token.
        wide = any(len(entry.token.strip().encode()) > 2 * len(entry.token) for entry in shown)
        expected = len(shown) + wide
    if len(shown) >= expected:
        return completion
    reason = f"{len(shown)} entries for more tokens: those inside a character are left out"
    return replace(completion, logprobs=None, logprobs_refused=reason)


def _read_logprobs(choice: Mapping[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Return the token log-probs; None where a choice lacks them, which can happen."""
    found = choice.get("logprobs")
    if not found:
        return None
    content = found.get("content")
    if content is not None:
        # An answer may have thousands of entries: columns first, then all rows in one go.
        tokens = [entry["token"] for entry in content]
        values = [entry["logprob"] for entry in content]
        shown = [
            tuple([(top["token"], top["logprob"]) for top in entry.get("top_logprobs") or ()])
            for entry in content
        ]
    elif found.get("tokens") is not None:
        tokens, values = found["tokens"], found["token_logprobs"]
        tops = found.get("top_logprobs") or [None] * len(tokens)
        shown = [tuple((top or {}).items()) for top in tops]
    else:
        return None
    if None in values:
        values = [_number(value) for value in values]
    return tuple(map(_token_logprob, zip(tokens, values, shown, strict=True)))


def _number(value: float | None) -> float:
    """Return the value; null, which some servers write for minus infinity, is no number."""
    return math.nan if value is None else value


def _read_usages(
    usage: Mapping[str, Any],
    logprobs: list[tuple[TokenLogprob, ...] | None],
    *,
    one_choice_counted: bool,
) -> list[Usage]:
    """Share the tokens of a call among its draws: the prompt is paid once.

    Where log-probs show how long each draw is, that is its share; otherwise shares are equal
    and only their sum means anything.
    """
    count = len(logprobs)
    prompt = int(usage.get("prompt_tokens") or 0)
    total = int(usage.get("completion_tokens") or 0)
    if one_choice_counted:
        total *= count
    lengths = [len(entries) if entries else None for entries in logprobs]
    shares = [total // count + (position < total % count) for position in range(count)]
    known = [length for length in lengths if length is not None]
    if len(known) == count and (one_choice_counted or sum(known) == total or not total):
        shares = known
    return [Usage(prompt if position == 0 else 0, share) for position, share in enumerate(shares)]


def _without_choices(answer: Mapping[str, Any]) -> TransientClientError | PermanentClientError:
    """Return the error that an answer with status 200 holds; some gateways do that."""
    error = answer.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        message = f"error in an answer with status 200: {error.get('message')} ({code})"
        if isinstance(code, int) and 400 <= code < 500 and code not in (408, 429):
            return PermanentClientError(message[:400])
        return TransientClientError(message[:400])
    return TransientClientError("the answer holds no choices")
