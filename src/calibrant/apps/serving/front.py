"""The front: an OpenAI-compatible address that answers what the policy allows."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import orjson
from aiohttp import web
from msgspec.structs import replace

from calibrant.apps.serving.engine import ServingEngine
from calibrant.apps.serving.measure import PassedOn, UpstreamError
from calibrant.apps.serving.replies import Answer, ServedReply, as_chat, asked_of
from calibrant.apps.serving.watching import Meters, Watch, engine_lines, typed
from calibrant.core.errors import InputError, SchemaError, StorageError
from calibrant.core.loopback import Loopback

_MOST_BODY = 4 * 1024 * 1024
_BODY_S = 30.0
_DRAIN_S = 30.0
MOST_REQUESTS = 1000
"""Requests that are answered at a time; more are asked to come back."""
_ROOM_NEEDED = 16 * 1024**2
"""Bytes that a disk must have left: the next answers have to be written somewhere."""
# What an endpoint says about the caller's own request is handed on; the rest is a bad gateway.
_IN_HEADERS = (
    "id", "decision", "probability", "interval", "policy", "method", "promise", "days_left",
    "shift", "answered_by",
)  # fmt: skip
_HANDED_ON = frozenset({400, 408, 413, 415, 422, 429, 503, 504})
_AGAIN_S = 5


@dataclass
class Front:
    """Serve a policy in front of its models.

    Parameters
    ----------
    engine
        Asks and decides.
    token
        Secret that every request must carry.
    defer
        ``status`` (409), ``text:..`` (that text), or the name of `fallback`.
    fallback
        Another model that answers what is deferred.
    log_requests
        Write one JSON line per request to standard error, without texts.
    watch
        Looks whether what is served is still what was certified.
    names
        Names beside loopback by which callers may call it.
    most_requests
        Requests at a time.
    """

    engine: ServingEngine
    token: str
    defer: str = "status"
    fallback: PassedOn | None = None
    log_requests: bool = False
    watch: Watch | None = None
    names: tuple[str, ...] = ()
    most_requests: int = MOST_REQUESTS
    meters: Meters = field(default_factory=Meters)
    _door: Loopback | None = field(default=None, repr=False)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Look at what is known of the promise, listen, and return the base address."""
        await self.engine.open()
        self._door = Loopback(
            self.token, "calibrant serve", say=_error, drain_s=_DRAIN_S, gone=True,
            public=("/health", "/ready"), names=self.names,
        )  # fmt: skip
        app = self._door.app(most_body=_MOST_BODY)
        app.middlewares.append(self._counted)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/responses", self._respond)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/calibrant", self._totals)
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/metrics", self._metrics)
        try:
            if self.watch is not None:
                await self.watch.start()
            bound = await self._door.listen(app, (port,), host=host)
        except BaseException:
            await self.stop()
            raise
        return f"http://{host}:{bound}/v1"

    async def stop(self) -> None:
        """Stop listening; requests under way are finished first."""
        if self._door is not None:
            await self._door.stop()
        if self.watch is not None:
            await self.watch.stop()
        if self.fallback is not None:
            await self.fallback.close()
        with suppress(OSError, SchemaError):
            self.engine.standing.share()
        await self.engine.close()

    # -- requests --------------------------------------------------------------------------

    @web.middleware
    async def _counted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Count a request, unless too many are under way; say what cannot be written down."""
        if request.method != "POST":
            return await handler(request)
        began, status, meters = time.perf_counter(), 500, self.meters
        meters.under_way += 1
        try:
            if meters.under_way > self.most_requests:
                response: web.StreamResponse = _busy("too many requests are under way", 1)
            else:
                response = await handler(request)
            status = response.status
            return response
        except StorageError as error:
            status = 503
            return _busy(error.rule, _AGAIN_S)
        except InputError:
            status = 400
            raise
        except web.HTTPException as error:
            status = error.status
            raise
        except asyncio.CancelledError:
            status = 499
            raise
        finally:
            meters.under_way -= 1
            meters.see(status, time.perf_counter() - began)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._served(request, await _body(request), Answer.as_chat, Answer.chat_events)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """Answer in the shape of the Responses interface; texts only."""
        body = await _body(request)
        query = {**as_chat(body), "stream": body.get("stream")}
        return await self._served(request, query, Answer.as_response, Answer.response_events)

    async def _served(
        self,
        request: web.Request,
        body: Mapping[str, object],
        shape: Callable[[Answer], Mapping[str, object]],
        events: Callable[[Answer], Iterator[bytes]],
    ) -> web.StreamResponse:
        began = time.perf_counter()
        try:
            reply, answer = await self._answer(body)
        except UpstreamError as error:
            return _failed(error)
        except SchemaError as error:
            # Of a file that is written here; what callers send has no schema.
            raise StorageError(error.rule, source=error.source) from None
        headers = _headers(reply)
        if answer is None:
            message = "The policy leaves this question to somebody else."
            refusal = {"message": message, "type": "deferred", "code": "deferred"}
            return _json({"error": refusal, "calibrant": reply.said}, 409, headers)
        if not body.get("stream"):
            return _json(shape(answer), 200, headers)
        response = web.StreamResponse(
            headers={**headers, "Content-Type": "text/event-stream; charset=utf-8"}
        )
        await response.prepare(request)
        self.engine.counts["streams"] += 1
        self.engine.first_words += time.perf_counter() - began
        for event in events(answer):
            await response.write(event)
        await response.write_eof()
        return response

    async def _answer(self, body: Mapping[str, object]) -> tuple[ServedReply, Answer | None]:
        """Return what became of a request, and the answer; None where it is deferred by status."""
        started = time.perf_counter()
        request = asked_of(body)
        try:
            reply = await self.engine.ask(request)
            number = self.engine.counts["questions"]
            answer = None
            if reply.decision != "defer":
                answer = Answer(reply, reply.answer or "", reply.response, number)
            elif self.defer.startswith("text:"):
                answer = Answer(reply, self.defer.removeprefix("text:"), None, number)
            elif self.fallback is not None:
                peer = await self.fallback.measure(request)
                by_other = replace(reply, answered_by=self.defer)
                answer = Answer(by_other, peer.answer or "", peer.response, number)
        except UpstreamError as error:
            self._log(started, "failed", None, str(error))
            raise
        self._log(started, reply.decision, reply, reply.degraded)
        return reply, answer

    def _log(
        self, started: float, decision: str, reply: ServedReply | None, failure: str | None
    ) -> None:
        if not self.log_requests:
            return
        fields = {name: getattr(reply, name, None) for name in ("model", "confidence", "cost")}
        seconds = round(time.perf_counter() - started, 4)
        line = {"time": time.time(), "decision": decision, **fields, "seconds": seconds}
        sys.stderr.buffer.write(orjson.dumps({**line, "failure": failure}) + b"\n")
        sys.stderr.flush()

    # -- about the front -------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.Response:  # noqa: ARG002
        names = ["calibrant", *self.engine.measures]
        return _json({"object": "list", "data": [{"id": n, "object": "model"} for n in names]})

    async def _totals(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return _json(self.engine.totals())

    async def _health(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """Answer that the process lives; it is not ended for what others do."""
        now = time.monotonic()
        left_alone = [n for n, b in self.engine.breakers.items() if b.closed_for(now) > 0]
        status = "degraded" if left_alone else "ok"
        return _json({"status": status, "policy": self.engine.policy.id, "failing": left_alone})

    async def _ready(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """Answer whether answers can be given, written down, and with the promise."""
        engine, knowledge = self.engine, self.engine.standing.known
        states = {
            "disk": "full" if engine.no_room or _is_full(engine.rows) else "ok",
            "watch": "ok" if self.watch is None or self.watch.up else "not verified",
            "policy": "expired" if knowledge.expired or knowledge.changed or engine.ended else "ok",
        }
        ready = all(state == "ok" for state in states.values())
        return _json({"ready": ready, **states}, 200 if ready else 503)

    async def _metrics(self, request: web.Request) -> web.Response:  # noqa: ARG002
        now = time.monotonic()
        lines = [*self.meters.lines(), *engine_lines(self.engine, now)]
        lines += typed("requests_under_way", "gauge", self.meters.under_way)
        if self._door is not None:
            lines += typed("open_connections", "gauge", len(self._door.connections))
        if self.watch is not None:
            lines += typed("watch_up", "gauge", int(self.watch.up))
            last = self.watch.succeeded
            lines += typed("watch_last_success_timestamp_seconds", "gauge", f"{last:.3f}")
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")


def _is_full(rows: object) -> bool:
    """Return whether the disk has hardly any room left."""
    try:
        about = os.statvfs(os.path.dirname(os.path.abspath(str(rows))))
    except OSError:
        return True
    return about.f_bavail * about.f_frsize < _ROOM_NEEDED


def _busy(why: str, wait_s: int) -> web.Response:
    """Return that a request cannot be taken now, and when to come back."""
    reply = {"message": why, "type": "calibrant", "code": "busy"}
    return _json({"error": reply}, 503, {"Retry-After": str(wait_s)})


def _headers(reply: ServedReply) -> dict[str, str]:
    value_given = ((name, getattr(reply, name)) for name in _IN_HEADERS)
    return {
        f"X-Calibrant-{name.replace('_', '-').title()}": _header(value)
        for name, value in value_given
        if value is not None
    }


def _header(value: object) -> str:
    text = " to ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return " ".join(text.encode("ascii", "replace").decode().split())


def _failed(error: UpstreamError) -> web.Response:
    """Return the answer to a request whose model could not be asked."""
    status = error.status if error.status in _HANDED_ON else 502
    reply = {"message": str(error), "type": "upstream", "code": error.status}
    wait = error.retry_after
    headers = None if wait is None else {"Retry-After": str(max(1, round(wait)))}
    return _json({"error": reply}, status or 502, headers)


async def _body(request: web.Request) -> dict[str, object]:
    try:
        async with asyncio.timeout(_BODY_S):
            body = orjson.loads(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason=f"no body within {_BODY_S:g} s") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"the request is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise InputError("the request must be a JSON object")
    return body


def _json(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        body=orjson.dumps(value, default=str),
        status=status,
        headers=headers,
        content_type="application/json",
    )


def _error(status: int, message: str) -> web.Response:
    return _json({"error": {"message": message, "type": "calibrant"}}, status)
