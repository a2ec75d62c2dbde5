"""Calls of a provider in batches, for half the price."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from msgspec import Struct, structs

from calibrant.core.errors import InputError
from calibrant.models.asks import for_draws
from calibrant.models.endpoints.provider import ProviderClient, Received
from calibrant.models.protocol import Capabilities, Completion, Json, Request

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
