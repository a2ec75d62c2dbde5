"""Endpoints with the OpenAI-style chat interface: OpenAI, vLLM, llama.cpp, Ollama, Mistral ..."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from calibrant.clients.answers.chat import (
    Answer,
    loose_answer,
    parse_answer,
    read_answer,
    without_choices,
)
from calibrant.clients.capabilities import PRESETS, Preset, adjusted, check_request
from calibrant.clients.endpoints.http import HttpClient
from calibrant.clients.protocol import Completion, Request
from calibrant.core.errors import InputError

WHOLE_NUMBERS = ("top_k",)


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
        most_bytes: int | None = None,
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
            most_bytes=most_bytes,
        )

    def prepare(self, request: Request) -> Request:
        """Return the request with the sampling settings that keep the whole distribution."""
        if self._preset.sampler:
            request = request.with_sampler(self._preset.sampler)
        check_request(request, self._capabilities, endpoint=self._endpoint)
        return request

    async def _call(self, request: Request) -> list[Completion]:
        body = write_request(request, self._preset, send_temperature=self._capabilities.temperature)
        raw, headers, latency = await self._send("/chat/completions", body)
        found = read_answer(
            self._parse(raw, headers),
            request,
            latency,
            one_choice_counted=self._preset.one_choice_counted,
        )
        # An answer of an odd form is kept as far as it was read; it is not handed on whole.
        if request.body is None or found[0].odd is not None:
            return found
        return [replace(one, response=self._json(raw, headers)) for one in found]

    def _parse(self, raw: bytes, headers: Mapping[str, str]) -> Answer:
        """Return the answer, or say in which way it is none."""
        answer = parse_answer(raw)
        if isinstance(answer, str):
            # It is paid for whatever its form: what can be read of it is kept.
            answer = loose_answer(raw, answer) or answer
        if isinstance(answer, Answer) and answer.choices:
            self._check_no_key(raw)
            return answer
        # The general reader names what is wrong: no JSON, no object, an error inside.
        raise without_choices(self._json(raw, headers), form=answer)


def write_request(
    request: Request, preset: Preset, *, send_temperature: bool = True
) -> dict[str, Any]:
    """Return the body of the call."""
    if request.body is not None:
        return {**request.body, "model": request.model}
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
