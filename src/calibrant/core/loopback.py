"""A server that only its own user reaches: loopback, a token, and no page of another site.

A page that is open in the same browser can send requests to any address of this machine. It can
neither forge the headers Host and Origin nor know the token, so all three are checked before
anything else happens.
"""

import asyncio
import hmac
import signal
import socket
import sys
import time
import traceback
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct, field

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.event_loop import BACKLOG, QUEUE, Connections
from calibrant.core.hints import Hint

LOOPBACK = "127.0.0.1"
COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_KEPT_S = 60.0
"""Seconds for which a connection without a request is kept."""


def said(status: int, text: str) -> web.Response:
    """Return an answer of plain text."""
    return web.Response(status=status, text=text)


async def until_stopped(
    start: Awaitable[str], stop: Callable[[], Awaitable[None]], started: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C or SIGTERM ends the wait; what was served is told afterwards."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    # In another thread, or on another system, whoever started the loop looks after signals.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTERM, ended.set)
    try:
        started(await start)
        await ended.wait()
    except asyncio.CancelledError:
        pass
    finally:
        await stop()
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)


def announced(
    words: str, on_start: Callable[[str], None] | None, *, open_browser: bool
) -> Callable[[str], None]:
    """Return what hands over the address of a page: to a function, or on standard error."""

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address)
        else:
            sys.stderr.write(f"{words}: {address}\n")
            sys.stderr.flush()
        if open_browser:
            webbrowser.open(address)

    return started


def _nothing(_: web.Request) -> str | None:
    return None


class _Site(web.SockSite):
    """A place to listen at, where connections are counted."""

    def __init__(self, runner: web.AppRunner, sock: socket.socket, open_: Connections) -> None:
        super().__init__(runner, sock)
        self._open = open_

    async def start(self) -> None:
        await web.BaseSite.start(self)
        loop = asyncio.get_running_loop()
        protocol = self._open.protocol(self._runner.server)  # type: ignore[arg-type]
        self._server = await loop.create_server(protocol, sock=self._sock, backlog=BACKLOG)
        self._sock.listen(QUEUE)


_REPEATED_S = 10.0


def _quiet(command: str) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return what tells of connections that could not be taken once in a while, not of each."""
    last = -_REPEATED_S

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last
        if "accept" not in str(context.get("message")):
            loop.default_exception_handler(context)
        elif time.monotonic() - last > _REPEATED_S:
            last = time.monotonic()
            why = f"{context['message']}: {context.get('exception')}"
            sys.stderr.write(f"{command}: connections are refused: {why}\n")

    return handle


class Loopback(Struct):
    """Listens for whoever holds the token, and turns everybody else away.

    Parameters
    ----------
    token
        Secret that every request must carry.
    command
        What printed the address, for the message to somebody without the token.
    cookie
        Name of the cookie that holds the token: a page gets it in the address once and keeps it
        there. None asks for ``Authorization: Bearer TOKEN``, as programs send it.
    headers
        Headers of every answer beside the common ones.
    also
        A further check: why a request is turned away, or None.
    say
        How a refusal or an error is written.
    error_status
        Status of an error that the user can mend.
    drain_s
        Seconds that requests under way get when the server is stopped.
    public
        Paths that need no token and may be asked by any name: what a supervisor asks to see
        whether it lives.
    names
        Names beside loopback by which this server may be called, with any port, as behind a proxy
        or a service; None takes loopback with its own port alone.
    gone
        Whether work for a caller that goes away is cancelled.
    """

    token: str
    command: str
    cookie: str | None = None
    headers: Mapping[str, str] = {}
    also: Callable[[web.Request], str | None] = _nothing
    say: Callable[[int, str], web.Response] = said
    error_status: int = 400
    drain_s: float = 0.5
    public: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    gone: bool = False
    hosts: frozenset[str] = frozenset()
    runner: web.AppRunner | None = None
    connections: Connections = field(default_factory=Connections)

    def app(self, *, most_body: int) -> web.Application:
        """Return an application without routes, behind the checks."""
        return web.Application(middlewares=[self._guard], client_max_size=most_body)

    async def listen(
        self, app: web.Application, ports: Sequence[int] = (0,), *, host: str = LOOPBACK
    ) -> int:
        """Listen on the first port that is free, and return it; 0 stands for any."""
        self.runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=self.drain_s,
            handler_cancellation=self.gone,
            keepalive_timeout=_KEPT_S,
        )
        await self.runner.setup()
        for port in ports:
            try:
                await _Site(self.runner, _bound(host, port), self.connections).start()
                break
            except OSError as error:
                if port == ports[-1]:
                    await self.stop()
                    rule = f"port {port} cannot be used ({error.strerror})"
                    raise InputError(rule, hint=Hint("choose another {port}")) from None
        asyncio.get_running_loop().set_exception_handler(_quiet(self.command))
        bound_port: int = self.runner.addresses[0][1]
        self.hosts = frozenset(f"{name}:{bound_port}" for name in (host, LOOPBACK, "localhost"))
        return bound_port

    async def stop(self) -> None:
        """Stop listening."""
        if self.runner is not None:
            await self.runner.cleanup()

    def keep_token(self, place: str = "/") -> web.Response:
        """Move the token into a cookie, so that it stays out of history and screenshots."""
        assert self.cookie is not None
        moved = web.Response(status=303, headers={"Location": place})
        moved.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return moved

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.connections.begin(request.protocol)
        try:
            response = await self._answer(request, handler)
        finally:
            self.connections.end(request.protocol)
        if not response.prepared:
            response.headers.update({**COMMON_HEADERS, **self.headers})
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self.refusal(request)
        if refusal is not None:
            return self.say(403, refusal)
        if self.cookie is None and request.path not in self.public and not self._known(request):
            words = "The token is missing or wrong: send 'Authorization: Bearer TOKEN'."
            refused = self.say(401, words)
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            most = f"{request.client_max_size / 1024**2:g} MB"
            return self.say(413, f"The request is too large: at most {most} are read.")
        except web.HTTPException as error:
            return error if error.status < 400 else self.say(error.status, error.reason)
        except CalibrantError as error:
            return self.say(self.error_status, str(error))
        except Exception as error:  # noqa: BLE001
            # Whatever it is, the page gets an answer that it can read, with all headers.
            traceback.print_exc()
            return self.say(500, f"The server failed ({type(error).__name__}); it goes on.")

    def refusal(self, request: web.Request) -> str | None:
        """Return why a request is turned away: another host, another page, no token."""
        if request.path in self.public:
            return None
        if not self._is_here(request.host):
            return "This address is not served here."
        origin = request.headers.get("Origin")
        if origin is not None:
            # Behind a proxy a page names the proxy, as the host does.
            own = {request.host, *self.hosts} if self.names is not None else self.hosts
            bare = origin.removeprefix("http://") if self.names is None else urlsplit(origin).netloc
            if bare not in own:
                return "Another page may not ask here."
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.path != "/":
            return "Another page may not ask here."
        if self.cookie is not None and not self._known(request):
            return f"Open the whole address that `{self.command}` printed."
        return self.also(request)

    def _is_here(self, host: str) -> bool:
        if host in self.hosts or self.names is None:
            return host in self.hosts
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        here = {urlsplit(f"//{known_names}").hostname for known_names in self.hosts}
        return name is not None and (name in here or name in self.names)

    def _known(self, request: web.Request) -> bool:
        return hmac.compare_digest(_bytes(self._given(request)), _bytes(self.token))

    def _given(self, request: web.Request) -> str:
        if self.cookie is None:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
        return request.query.get("token") or request.cookies.get(self.cookie) or ""


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address, of whichever family the address is."""
    result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = result[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _bytes(text: str) -> bytes:
    """Return the text as it came, whatever its bytes are."""
    return text.encode("utf-8", "surrogateescape")
