"""`view`: a page in the browser, from a server that only this machine reaches."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from aiohttp import web

from calibrant.core.event_loop import OwnLoop
from calibrant.core.loopback import LOOPBACK, Loopback
from calibrant.core.verb import INPUT, Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.report.typed import ReportResult
from calibrant.workflows.viewed import PROGRESS, Viewed

COOKIE = "calibrant_view"
# The page's own policy is stricter; this one holds for a page that somebody else wrote, too.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
}


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
    with contextlib.suppress(KeyboardInterrupt), OwnLoop() as loop:
        loop.run(_serve(ViewServer(viewed), port, started))
    return ReportResult({**head, "written": [], "documents": [], "viewed": Path(path).name})


async def _serve(server: ViewServer, port: int, started: Callable[[str], None]) -> None:
    try:
        started(await server.start(port))
        await asyncio.Event().wait()
    finally:
        await server.stop()


class ViewServer:
    """Serve one page on loopback, to whoever holds its token."""

    def __init__(self, viewed: Viewed) -> None:
        self.viewed = viewed
        self.token = secrets.token_urlsafe(24)
        self.door = Loopback(
            self.token, "calibrant view", cookie=COOKIE, headers=_HEADERS, error_status=500
        )

    def app(self) -> web.Application:
        """Return the application: the page, its progress, and nothing else."""
        app = self.door.app(most_body=1024)
        app.router.add_get("/", self._page)
        app.router.add_get(PROGRESS, self._progress)
        return app

    async def start(self, port: int = 0) -> str:
        """Listen on loopback and return the address to open, token included."""
        found = await self.door.listen(self.app(), (port,))
        return f"http://{LOOPBACK}:{found}/?token={self.token}"

    async def stop(self) -> None:
        """Stop listening."""
        await self.door.stop()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "token" in request.query:
            return self.door.keep_token()
        text = await asyncio.to_thread(self.viewed.page)
        return web.Response(text=text, content_type="text/html", charset="utf-8")

    async def _progress(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(await asyncio.to_thread(self.viewed.progress))
