"""One client for all providers over HTTP, call by call or in batches for half the price."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
from msgspec import Struct, structs

from calibrant.core.errors import InputError
from calibrant.models.asks import PRESETS, adjusted, for_draws
from calibrant.models.endpoints.http import HttpClient, Received
from calibrant.models.endpoints.refused import fields_of
from calibrant.models.endpoints.wires import WIRES
from calibrant.models.protocol import Capabilities, Completion, Json, Request
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
            able = structs.replace(able, native_n=1, seed=False)
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
            choices = [structs.replace(item, not_sent=tuple(missing)) for item in choices]
        # An answer of an odd form is kept as far as it was read; it is not handed on whole.
        if request.body is None or choices[0].odd is not None:
            return choices
        return [structs.replace(item, response=self._json(received)) for item in choices]

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


MOST_CALLS = 10_000
"""Calls of one batch; the interfaces take more, but not of any size."""
GATHER_S, POLL_S = 2.0, 20.0
"""Seconds without a further call after which a batch is sent, and between two looks at it."""
DISCOUNT = 0.5
Result = tuple[int, bytes]
"""Status and body of one call, as if it had been sent alone."""


class Batching(Struct, frozen=True):
    """How one interface takes batches.

    `submit` sends calls and returns the batch's id; `results` returns what became of them, or None
    while the batch is under way.
    """

    submit: Callable[[ProviderClient, str, Mapping[str, Json]], Any]
    results: Callable[[ProviderClient, str], Any]


class BatchClient:
    """A provider whose calls go into batches.

    Calls are gathered until none has come for a moment, sent together, and answered when the batch
    has ended. Which call stands in which batch is written to `state` before anybody waits: a run
    that was stopped collects later what it has paid for. Draws have the ledger keys of ordinary
    calls.

    Parameters
    ----------
    client
        The provider.
    state
        File that keeps the batches of a study.
    """

    def __init__(self, client: ProviderClient, state: Path) -> None:
        self._of, self._state = client, state
        wire = client.preset.wire if client.wire.path != "/responses" else "responses"
        if wire not in BATCHING:
            raise InputError(f"the interface {wire} takes no batches", hint="leave out batch")
        self._how = BATCHING[wire]
        self.members, self.endpoint = [client], client.endpoint
        self._waiting: dict[str, asyncio.Future[Result]] = {}
        self._new: dict[str, tuple[str, Mapping[str, Json]]] = {}
        selection = state.read_bytes() if state.is_file() else b"{}"
        self._batches: dict[str, list[str]] = orjson.loads(selection)
        self._place = {id_: batch for batch, ids in self._batches.items() for id_ in ids}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def capabilities(self) -> Capabilities:
        """What the provider can give; a batch takes many calls at a time."""
        return structs.replace(self._of.capabilities, concurrency=MOST_CALLS)

    def resolve(self, model: str) -> str:
        """Return the model's name."""
        return self._of.resolve(model)

    def prepare(self, request: Request) -> Request:
        """Return the request as it will be sent, or raise CapabilityError."""
        return self._of.prepare(request)

    async def ask(self, request: Request) -> list[Completion]:
        """Ask at once, for the ordinary price: a batch needs to know which draw it makes."""
        return await self._of.ask(request)

    async def replay(
        self, request: Request, *, purpose: str, first_draw: int, n: int
    ) -> list[Completion]:
        """Return these draws of the request when their batch has ended."""
        query = for_draws(request, first_draw, n)
        path, body = self._of.written(query)
        payload, missing = self._of.refusals(request.model).adapted(body)
        # The draw is part of the name: equal calls for further draws are calls of their own.
        names = orjson.dumps([purpose, first_draw, path, payload], option=orjson.OPT_SORT_KEYS)
        id_ = hashlib.blake2b(names, digest_size=16).hexdigest()
        status, raw = await self._result(id_, path, payload)
        if status != 200:
            # It is sent anew when it is tried again.
            self._place.pop(id_, None)
            raise self._of.error(status, {}, raw)
        return self._of.completions(Received(raw, not_sent=missing), query)

    async def close(self) -> None:
        """Follow no batch any more, and close the connections; batches go on at the provider."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._of.close()

    async def _result(self, id_: str, path: str, body: Mapping[str, Json]) -> Result:
        if id_ not in self._waiting:
            self._waiting[id_] = asyncio.get_running_loop().create_future()
            batch = self._place.get(id_)
            if batch is None:
                self._new[id_] = (path, body)
                self._start("", self._gather())
            else:
                self._start(batch, self._follow(batch))
        try:
            return await self._waiting[id_]
        finally:
            self._waiting.pop(id_, None)

    def _start(self, name: str, work: Any) -> None:
        if name in self._tasks and not self._tasks[name].done():
            work.close()
        else:
            self._tasks[name] = asyncio.create_task(work)

    async def _gather(self) -> None:
        observed = -1
        while observed != len(self._new) and len(self._new) < MOST_CALLS:
            observed = len(self._new)
            await asyncio.sleep(GATHER_S)
        calls, self._new = self._new, {}
        try:
            path = next(iter(calls.values()))[0]
            bodies = {id_: body for id_, (_, body) in calls.items()}
            batch = await self._how.submit(self._of, path, bodies)
        except Exception as error:  # noqa: BLE001 - handed on to everyone who waits
            self._fail(calls, error)
            return
        self._batches[batch] = list(calls)
        self._place |= dict.fromkeys(calls, batch)
        part = self._state.with_suffix(".part")
        part.write_bytes(orjson.dumps(self._batches, option=orjson.OPT_INDENT_2))
        part.replace(self._state)
        self._start(batch, self._follow(batch))

    async def _follow(self, batch: str) -> None:
        ids = self._batches[batch]
        try:
            while (replies := await self._how.results(self._of, batch)) is None:
                await asyncio.sleep(POLL_S)
        except Exception as error:  # noqa: BLE001 - handed on to everyone who waits
            self._fail(ids, error)
            return
        for id_ in ids:
            future = self._waiting.get(id_)
            if future is not None and not future.done():
                future.set_result(replies.get(id_, (503, b"the batch ended without this call")))

    def _fail(self, ids: Iterable[str], error: Exception) -> None:
        for id_ in ids:
            future = self._waiting.get(id_)
            if future is not None and not future.done():
                future.set_exception(error)


def _lines(raw: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in raw.splitlines() if line.strip()]


# -- OpenAI ----------------------------------------------------------------------------------------


async def _submit_files(of: ProviderClient, path: str, bodies: Mapping[str, Json]) -> str:
    lines = [
        {"custom_id": id_, "method": "POST", "url": f"/v1{path}", "body": body}
        for id_, body in bodies.items()
    ]
    form = aiohttp.FormData({"purpose": "batch"})
    text = b"\n".join(map(orjson.dumps, lines))
    form.add_field("file", text, filename="calls.jsonl", content_type="application/jsonl")
    file = await of.exreplace("/files", form=form)
    targets = {"input_file_id": file["id"], "endpoint": f"/v1{path}", "completion_window": "24h"}
    return str((await of.exreplace("/batches", targets))["id"])


async def _file_results(of: ProviderClient, batch: str) -> dict[str, Result] | None:
    about = await of.exreplace(f"/batches/{batch}")
    if about.get("status") not in ("completed", "failed", "expired", "cancelled"):
        return None
    results = {}
    for name in ("output_file_id", "error_file_id"):
        if about.get(name):
            for line in _lines(await of.fetched(f"/files/{about[name]}/content")):
                reply = line.get("response") or {}
                error = orjson.dumps({"error": line.get("error")})
                body = orjson.dumps(reply["body"]) if reply.get("body") else error
                results[line["custom_id"]] = (int(reply.get("status_code") or 503), body)
    return results


# -- Anthropic -------------------------------------------------------------------------------------


async def _submit_messages(of: ProviderClient, path: str, bodies: Mapping[str, Json]) -> str:
    requests = [{"custom_id": id_, "params": body} for id_, body in bodies.items()]
    return str((await of.exreplace(f"{path}/batches", {"requests": requests}))["id"])


async def _message_results(of: ProviderClient, batch: str) -> dict[str, Result] | None:
    place = f"{of.wire.path}/batches/{batch}"
    if (await of.exreplace(place)).get("processing_status") != "ended":
        return None
    results = {}
    for line in _lines(await of.fetched(f"{place}/results")):
        result = line["result"]
        body, error = result.get("message"), result.get("error") or {"type": result.get("type")}
        wrong = "invalid_request" in str(error)
        status = 200 if body else 400 if wrong else 503
        results[line["custom_id"]] = (status, orjson.dumps(body or {"error": error}))
    return results


# -- Gemini ----------------------------------------------------------------------------------------


async def _submit_content(of: ProviderClient, path: str, bodies: Mapping[str, Json]) -> str:
    requests = [{"request": body, "metadata": {"key": id_}} for id_, body in bodies.items()]
    batch = {"display_name": "calibrant", "input_config": {"requests": {"requests": requests}}}
    place = path.replace(":generateContent", ":batchGenerateContent")
    return str((await of.exreplace(place, {"batch": batch}))["name"])


async def _content_results(of: ProviderClient, batch: str) -> dict[str, Result] | None:
    about = await of.exreplace(f"/{batch}")
    if not about.get("done"):
        return None
    inlined = (about.get("response") or {}).get("inlinedResponses") or {}
    results = {}
    for item in inlined.get("inlinedResponses") or ():
        error = item.get("error") or {}
        status = 200 if item.get("response") else int(error.get("code") or 503)
        body = item.get("response") or {"error": error}
        results[str((item.get("metadata") or {}).get("key"))] = (status, orjson.dumps(body))
    return results


BATCHING = {
    "chat": Batching(_submit_files, _file_results),
    "messages": Batching(_submit_messages, _message_results),
    "content": Batching(_submit_content, _content_results),
}
