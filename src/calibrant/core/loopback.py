"""A server that only its own user reaches: loopback, a token, and no page of another site.

A page that is open in the same browser can send requests to any address of this machine. It can
neither forge the headers Host and Origin nor know the token, so all three are checked before
anything else happens.
"""

from __future__ import annotations

import asyncio
import hmac
import sys
import traceback
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.hints import Hint

LOOPBACK = "127.0.0.1"
COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def said(status: int, text: str) -> web.Response:
    """Return an answer of plain text."""
    return web.Response(status=status, text=text)


async def until_stopped(
    start: Awaitable[str], stop: Callable[[], Awaitable[None]], started: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C ends the wait; what was served is told afterwards."""
    try:
        started(await start)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    finally:
        await stop()


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


@dataclass(slots=True)
class Loopback:
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
        Paths that need no token: what a supervisor asks to see whether it lives.
    """

    token: str
    command: str
    cookie: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    also: Callable[[web.Request], str | None] = _nothing
    say: Callable[[int, str], web.Response] = said
    error_status: int = 400
    drain_s: float = 0.5
    public: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()
    runner: web.AppRunner | None = None

    def app(self, *, most_body: int) -> web.Application:
        """Return an application without routes, behind the checks."""
        return web.Application(middlewares=[self._guard], client_max_size=most_body)

    async def listen(
        self, app: web.Application, ports: Sequence[int] = (0,), *, host: str = LOOPBACK
    ) -> int:
        """Listen on the first port that is free, and return it; 0 stands for any."""
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=self.drain_s)
        await self.runner.setup()
        for port in ports:
            try:
                await web.TCPSite(self.runner, host, port, reuse_address=True).start()
                break
            except OSError as error:
                if port == ports[-1]:
                    await self.stop()
                    rule = f"port {port} cannot be used ({error.strerror})"
                    raise InputError(rule, hint=Hint("choose another {port}")) from None
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
        response = await self._answer(request, handler)
        response.headers.update({**COMMON_HEADERS, **self.headers})
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self.refusal(request)
        if refusal is not None:
            return self.say(403, refusal)
        try:
            return await handler(request)
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
        if request.host not in self.hosts:
            return "This address is not served here."
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return "Another page may not ask here."
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.path != "/":
            return "Another page may not ask here."
        if request.path in self.public:
            return None
        if not hmac.compare_digest(_bytes(self._given(request)), _bytes(self.token)):
            if self.cookie is None:
                return "The token is missing or wrong: send 'Authorization: Bearer TOKEN'."
            return f"Open the whole address that `{self.command}` printed."
        return self.also(request)

    def _given(self, request: web.Request) -> str:
        if self.cookie is None:
            return request.headers.get("Authorization", "").removeprefix("Bearer ")
        return request.query.get("token") or request.cookies.get(self.cookie) or ""


def _bytes(text: str) -> bytes:
    """Return the text as it came, whatever its bytes are."""
    return text.encode("utf-8", "surrogateescape")
