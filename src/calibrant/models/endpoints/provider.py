"""One client for all providers that are asked over HTTP."""

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.models.capabilities import PRESETS, adjusted
from calibrant.models.endpoints.http import HttpClient, Received
from calibrant.models.endpoints.refused import fields_of
from calibrant.models.endpoints.wires import WIRES
from calibrant.models.protocol import Completion, Json, Request
from calibrant.models.replies import chat


class ProviderClient(HttpClient):
    """A provider of `PRESETS`, over aiohttp and orjson.

    Parameters
    ----------
    preset
        Name of the provider.
    model
        Model that decides the capabilities; single requests may name another one.
    base_url
        Where the endpoint is, if not where the preset says.
    api
        ``responses`` asks at ``/responses``: one draw per call, log-probs, no seed.
    capabilities
        Changes to what the preset says the endpoint can give.
    reasoning_effort
        How long a model thinks, in the provider's own words.
    key, timeout_s, extra_headers, extra_body, most_bytes
        See `HttpClient`.
    """

    def __init__(
        self,
        *,
        preset: str = "openai",
        model: str = "",
        base_url: str | None = None,
        api: str = "chat",
        capabilities: Mapping[str, Json] | None = None,
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Json] | None = None,
        **how: Any,
    ) -> None:
        self.preset = PRESETS[preset]
        if api not in ("chat", "responses"):
            raise InputError(f"api is chat or responses, got {api!r}")
        url = base_url or self.preset.base_url
        if url is None:
            raise InputError(
                f"the client {preset!r} needs a base_url",
                hint='for Azure base_url = "https://NAME.openai.azure.com/openai/v1"',
            )
        able = self.preset.capabilities_of(model)
        if api == "responses":
            able = changed(able, native_n=1, seed=False)
        self.wire = WIRES["responses" if api == "responses" else self.preset.wire]
        self.key_header, self.key_prefix = self.preset.key_header, self.preset.key_prefix
        self.own_headers = self.preset.headers
        super().__init__(
            url,
            capabilities=adjusted(able, capabilities),
            extra_body={**self.wire.effort_fields(reasoning_effort), **(extra_body or {})},
            **how,
        )

    def prepare(self, request: Request) -> Request:
        """Return the request with the sampling settings that keep the whole distribution."""
        if self.preset.sampler:
            request = request.with_sampler(self.preset.sampler)
        return super().prepare(request)

    async def _call(self, request: Request) -> list[Completion]:
        path, body = self.written(request)
        if request.body is not None:
            # A caller's own request is the caller's own to change.
            return self.completions(await self._send(path, body), request)
        return self.completions(await self._send_adapted(path, body, request.model), request)

    def written(self, request: Request) -> tuple[str, dict[str, Json]]:
        """Return where a call goes and what is sent."""
        path = self.wire.path.replace("{model}", quote(request.model.removeprefix("models/")))
        return path, self.wire.write(request, self.preset)

    def completions(self, received: Received, request: Request) -> list[Completion]:
        """Return what an answer holds."""
        counts, missing = self.preset.one_choice_counted, [*received.not_sent]
        answer = self._parse(received)
        choices = chat.read_answer(answer, request, received.latency_s, one_choice_counted=counts)
        if request.body is None:
            # Settings for which an interface has no field; texts are cut here.
            _, body = self.written(request)
            if request.stop and "input" in body:
                missing.append("stop")
            warm = request.temperature != 1.0 and "temperature" not in fields_of(body)
            if warm and "temperature" not in missing:
                missing.append("temperature")
        if missing:
            choices = [replace(item, not_sent=tuple(missing)) for item in choices]
        # An answer of an odd form is kept as far as it was read; it is not handed on whole.
        if request.body is None or choices[0].odd is not None:
            return choices
        return [replace(item, response=self._json(received)) for item in choices]

    def _parse(self, received: Received) -> chat.ChatAnswer:
        """Return the answer, or say in which way it is none."""
        if self.wire.read is not None:
            return self.wire.read(self._json(received))
        answer = chat.parse_answer(received.raw)
        if isinstance(answer, str):
            # It is paid for whatever its form: what can be read of it is kept.
            answer = chat.loose_answer(received.raw, answer) or answer
        if isinstance(answer, chat.ChatAnswer) and answer.choices:
            self._check_no_key(received.text)
            return answer
        # The general reader names what is wrong: no JSON, no object, an error inside.
        raise chat.without_choices(self._json(received), form=answer)
