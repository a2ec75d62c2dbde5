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
from calibrant.clients.capabilities import PRESETS, Preset, adjusted
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
    reasoning_effort
        How long a model thinks: ``minimal``, ``low``, ``medium``, ``high``.
    timeout_s, extra_headers, extra_body, most_bytes
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
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> None:
        self._preset = PRESETS[preset]
        url = base_url or self._preset.base_url
        if url is None:
            raise InputError(
                f"the client {preset!r} needs a base_url",
                hint='for Azure base_url = "https://NAME.openai.azure.com/openai/v1"',
            )
        self.key_header, self.key_prefix = self._preset.key_header, self._preset.key_prefix
        super().__init__(
            url,
            key=key,
            capabilities=adjusted(self._able(model), capabilities),
            extra_body={**self._effort(reasoning_effort), **(extra_body or {})},
            **how,
        )

    def _able(self, model: str) -> Any:
        return self._preset.capabilities_of(model)

    def _effort(self, effort: str | None) -> dict[str, Any]:
        return {} if effort is None else {"reasoning_effort": effort}

    def prepare(self, request: Request) -> Request:
        """Return the request with the sampling settings that keep the whole distribution."""
        if self._preset.sampler:
            request = request.with_sampler(self._preset.sampler)
        return super().prepare(request)

    async def _call(self, request: Request) -> list[Completion]:
        body = write_request(request, self._preset)
        path = "/chat/completions"
        missing: tuple[str, ...] = ()
        if request.body is not None:
            # A caller's own request is the caller's own to change.
            raw, headers, latency = await self._send(path, body)
        else:
            raw, headers, latency, missing = await self._send_adapted(path, body, request.model)
        found = read_answer(
            self._parse(raw, headers),
            request,
            latency,
            one_choice_counted=self._preset.one_choice_counted,
        )
        if missing:
            found = [replace(one, not_sent=missing) for one in found]
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


def write_request(request: Request, preset: Preset) -> dict[str, Any]:
    """Return the body of the call."""
    if request.body is not None:
        return {**request.body, "model": request.model}
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [
            {"role": message.role, "content": message.content} for message in request.messages
        ],
        preset.max_tokens_field: request.most_tokens,
        "temperature": request.temperature,
    }
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
    return {**body, **request.extra} if request.extra else body
