"""`view`: the app in the browser, from a server that only this machine reaches."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Unpack

from aiohttp import web

from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.server import AppServer, LocalServer
from calibrant.core.document import load_document
from calibrant.core.errors import InputError
from calibrant.core.event_loop import OwnLoop
from calibrant.core.hints import Call
from calibrant.core.loopback import announced, until_stopped
from calibrant.core.shared_options import TABLE, TableOptions, inputs
from calibrant.core.verb import Option, verb
from calibrant.data import Study, read_table
from calibrant.data.formats import is_study
from calibrant.data.sources.input import document_head
from calibrant.report import render_html
from calibrant.report.result import ReportResult, Result
from calibrant.verbs.study.analysis import study_page

# The page's own policy is stricter; this one holds for a page that somebody else wrote, too.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@verb(example="calibrant view scores.csv", outputs=("json",), shared=TABLE)
def view(
    data: Annotated[Any, inputs(metavar="PATH..", place="file or folder")] = (),
    *,
    port: Annotated[int, Option(metavar="N", min=0, max=65_535)] = 0,
    open_browser: Annotated[bool, Option(cli="open")] = True,
    on_start: Callable[[str], None] | None = None,
    **table: Unpack[TableOptions],
) -> ReportResult:
    """Look at data in the browser, click, and decide; stop it with Ctrl-C.

    Overview, comparison, groups, a threshold, every question, labels and a watch over time are
    tabs of one app. Nothing is written unless you save it.

    Parameters
    ----------
    data
        Tables, logs or a study; a page or a result (JSON). None: drop a file on the page.

        A dataframe or a result of another verb too. A page or a result (JSON) is shown as it is.
    port
        Port on loopback; 0 takes a free one.
    open_browser
        Open the page in a browser.
    on_start
        Called with the address of the page; by default it is printed.
    **table
        How the table is read, see `calibrant.data.load_scores`.
    """
    server, paths = _server(data, table)
    head = document_head("report", paths or None)

    started = announced("View it here", on_start, open_browser=open_browser)
    # That is how a server is stopped.
    with contextlib.suppress(KeyboardInterrupt), OwnLoop() as loop:
        loop.run(until_stopped(server.start(port), server.stop, started))
    viewed = ", ".join(Path(path).name for path in paths)
    return ReportResult({**head, "written": [], "documents": [], "viewed": viewed})


def _server(data: Any, table: Mapping[str, object]) -> tuple[LocalServer, list[str]]:
    """Return the server for what was given, and its paths."""
    if isinstance(data, str | Path):
        data = [data]
    if not isinstance(data, list | tuple):
        data = [_kept(data)]
    paths = [str(path) for path in data]
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise InputError(
            "there is nothing to view",
            source=missing[0],
            hint="name a table, a log, a study folder, a page or a result (JSON)",
        )
    if not paths:
        return AppServer(), paths
    if len(paths) == 1 and _is_page(Path(paths[0])):
        _page_of(Path(paths[0]))
        return PageServer(Path(paths[0])), paths
    return AppServer(AppData(paths[0] if len(paths) == 1 else paths, table)), paths


def _is_page(path: Path) -> bool:
    """Return whether a path is shown as it is: a page, a result, or a study without answers."""
    if path.suffix == ".html":
        return True
    if path.suffix == ".json":
        # Tables may be JSON too; a result says what it is.
        return b'"calibrant.' in path.read_bytes()[:4096]
    return is_study(path) and not Study(path).has("scores")


def _page_of(path: Path) -> str:
    """Return the page of a path that is shown as it is."""
    if path.suffix == ".html":
        return path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return render_html([load_document(path)])
    study = Study(path)
    if not study.results():
        raise InputError(
            "this study has no answers yet",
            source=str(path),
            hint=f"ask its models first: {Call('run', path).text()}",
        )
    return study_page(study)


def _kept(data: Any) -> Path:
    """Return a file of this process that holds a table in memory, or the page of a result."""
    folder = Path(tempfile.mkdtemp(prefix="calibrant-view-"))
    if isinstance(data, Result):
        data.to_json(folder / "result.json")
        return folder / "result.json"
    read_table(data).write_parquet(folder / "table.parquet")
    return folder / "table.parquet"


class PageServer(LocalServer):
    """Serve one page, as its file is when it is asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(_POLICY)
        self.path = path

    def routes(self, router: web.UrlDispatcher) -> None:
        """Add the page, and nothing else."""
        router.add_get("/", self._page)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        moved = self.without_token(request)
        if moved is not None:
            return moved
        text = await asyncio.to_thread(_page_of, self.path)
        return web.Response(text=text, content_type="text/html", charset="utf-8")
