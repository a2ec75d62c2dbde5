"""`view`: a page in the browser, from a server that only this machine reaches."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from aiohttp import web

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import INPUT, Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.report.typed import ReportResult
from calibrant.workflows.viewed import PROGRESS, Viewed

__all__ = ["ViewServer", "view"]

COOKIE = "calibrant_view"
# The page's own policy is stricter; this one holds for a page that somebody else wrote, too.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@verb(example="calibrant view study", outputs=("json",))
def view(
    path: Annotated[
        str | Path,
        Option(
            "Study folder, page, result (JSON) or table.",
            metavar="PATH",
            group=INPUT,
            argument=True,
            place="file or folder",
        ),
    ] = ".",
    *,
    port: Annotated[
        int, Option("Port on loopback; 0 takes a free one.", metavar="N", min=0, max=65_535)
    ] = 0,
    open_browser: Annotated[bool, Option("Open the page in a browser.", cli="open")] = True,
    on_start: Callable[[str], None] | None = None,
) -> ReportResult:
    """Show a page in the browser and follow its files; stop it with Ctrl-C.

    While `run` or `label` goes on, the page shows how far it has come and what it cost, and loads
    itself again when there is something new.

    Parameters
    ----------
    path
        A study folder, a page, a result (JSON), or a table: a pool that is being labelled shows
        where it stands, any other table is audited.
    port, open_browser
        Port on loopback, and whether to open a browser.
    on_start
        Called with the address of the page; by default it is printed.
    """
    viewed = Viewed(Path(path))
    viewed.check()
    head = document_head("report", path)

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address)
        else:
            sys.stderr.write(f"View it here: {address}\n")
            sys.stderr.flush()
        if open_browser:
            webbrowser.open(address)

    # That is how a server is stopped.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(ViewServer(viewed), port, started))
    return ReportResult({**head, "written": [], "documents": [], "viewed": Path(path).name})


async def _serve(server: ViewServer, port: int, started: Callable[[str], None]) -> None:
    try:
        started(await server.start(port))
        await asyncio.Event().wait()
    finally:
        await server.stop()


@dataclass(slots=True)
class ViewServer:
    """Serve one page on loopback, to whoever holds its token."""

    viewed: Viewed
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _hosts: frozenset[str] = frozenset()
    _runner: web.AppRunner | None = None

    def app(self) -> web.Application:
        """Return the application: the page, its progress, and nothing else."""
        app = web.Application(middlewares=[self._guard], client_max_size=1024)
        app.router.add_get("/", self._page)
        app.router.add_get(PROGRESS, self._progress)
        return app

    async def start(self, port: int = 0) -> str:
        """Listen on loopback and return the address to open, token included."""
        self._runner = web.AppRunner(self.app(), access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(
                f"port {port} cannot be used ({error.strerror})", hint=Hint("choose another {port}")
            ) from None
        found = self._runner.addresses[0][1]
        self._hosts = frozenset({f"127.0.0.1:{found}", f"localhost:{found}"})
        return f"http://127.0.0.1:{found}/?token={self.token}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def _guard(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            if refusal is not None:
                response: web.StreamResponse = web.Response(status=403, text=refusal)
            else:
                try:
                    response = await handler(request)
                except web.HTTPException as error:
                    response = error if error.status < 400 else _said(error.status, error.reason)
                except CalibrantError as error:
                    response = _said(500, str(error))
            response.headers.update(_HEADERS)
            return response

        return guard

    def _refusal(self, request: web.Request) -> str | None:
        """Return why a request is turned away: another host, another page, no token."""
        if request.host not in self._hosts:
            return "This address is not served here."
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return "Another page may not look here."
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.path != "/":
            return "Another page may not look here."
        given = request.query.get("token") or request.cookies.get(COOKIE) or ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "Open the whole address that `calibrant view` printed."
        return None

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "token" in request.query:
            # The token moves into a cookie, so that it stays out of history and screenshots.
            moved = web.Response(status=302, headers={"Location": "/"})
            moved.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict", path="/")
            return moved
        text = await asyncio.to_thread(self.viewed.page)
        return web.Response(text=text, content_type="text/html", charset="utf-8")

    async def _progress(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(await asyncio.to_thread(self.viewed.progress))


def _said(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)
