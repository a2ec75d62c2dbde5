"""The server of the app: its routes, for whoever holds the token, on this machine only."""

import asyncio
import os
import secrets
from dataclasses import replace
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from calibrant.apps.browser import beside, tabs
from calibrant.apps.browser.opened import MOST_UPLOADED, AppData, BrowserJob, Dropped, NamedColumns
from calibrant.apps.browser.state import PAGE, State, read_state
from calibrant.apps.browser.tabs import Tab, call_of, resolved, tab_of
from calibrant.core.errors import InputError
from calibrant.core.hints import Call
from calibrant.core.loopback import LOOPBACK, Handler, Loopback, said
from calibrant.data.formats import store_path
from calibrant.report.page import page_asset, page_templates

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCRIPTS = ("parts.js",)
_STYLES = ("page.css", "picture.css")
_OWN_HEADER = "X-Calibrant"
# Work that is done so soon is shown at once, without a word about waiting.
_SOON = 0.25


@lru_cache(maxsize=16)
def app_asset(name: str) -> str:
    """Return a file of the app, or one that it shares with pages."""
    asset = resources.files(__package__).joinpath("assets", name)
    return asset.read_text("utf-8") if asset.is_file() else page_asset(name)


class LocalServer:
    """Listens on loopback for whoever holds its token.

    Parameters
    ----------
    policy
        Content security policy of every answer.
    """

    most_body = 1024

    def __init__(self, policy: str) -> None:
        self.token = secrets.token_urlsafe(24)
        # A name of its own: two servers in one browser do not take each other's token.
        self.cookie = f"calibrant_view_{secrets.token_hex(4)}"
        self.door = Loopback(
            self.token,
            "calibrant view",
            cookie=self.cookie,
            headers={"Content-Security-Policy": policy},
            also=self.turned_away,
            error_status=422,
        )

    def turned_away(self, _: web.Request) -> str | None:
        """Return why a request is turned away although it has the token."""
        return None

    def routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        raise NotImplementedError

    async def start(self, port: int = 0) -> str:
        """Listen on loopback and return the address to open, token included."""
        app = self.door.app(most_body=self.most_body)
        self.routes(app.router)
        bound = await self.door.listen(app, (port,))
        return f"http://{LOOPBACK}:{bound}/?token={self.token}"

    async def stop(self) -> None:
        """Stop listening."""
        await self.door.stop()

    def without_token(self, request: web.Request) -> web.Response | None:
        """Return the answer that takes the token out of the address, where it stands there."""
        if "token" not in request.query:
            return None
        return self.door.keep_token(str(request.rel_url.without_query_params("token")))


class _Grade(msgspec.Struct):
    place: int
    grade: str
    note: str = ""


class AppServer(LocalServer):
    """Serve the app.

    Parameters
    ----------
    data
        What is looked at; None until a file is dropped.
    """

    most_body = MOST_UPLOADED + 1024

    def __init__(self, data: AppData | None = None) -> None:
        super().__init__(_POLICY)
        self.data = data
        self._dropped: Dropped | None = None
        self._labels: Any = None
        self._address = ""
        if data is not None:
            data.worker.start()

    def routes(self, router: web.UrlDispatcher) -> None:
        """Add the page, its parts, what is saved and what is sent."""
        router.add_get("/", self._page)
        router.add_get("/app.js", _file("app.js", "text/javascript"))
        router.add_get("/app.css", _file("app.css", "text/css"))
        router.add_get("/api/picker", self._picker)
        router.add_get("/api/tab/{tab}", self._tab)
        router.add_get("/api/rows", self._rows)
        router.add_get("/api/row/{place}", self._row)
        router.add_get("/save/{name}", self._save)
        router.add_post("/api/grade", self._grade)
        router.add_post("/api/cancel/{tab}", self._cancel)
        router.add_post("/api/again/{tab}", self._again)
        router.add_post("/api/open", self._open)
        router.add_post("/api/label", self._label)
        router.add_post("/api/read", self._read)

    async def stop(self) -> None:
        """Stop listening and working."""
        await super().stop()
        if self._labels is not None:
            await self._labels.stop()
        if self.data is not None:
            self.data.close()

    def turned_away(self, request: web.Request) -> str | None:
        """Only the page sends this header; a form of another page cannot."""
        if request.method != "GET" and request.headers.get(_OWN_HEADER) != "1":
            return "This is for the page of the app only."
        return None

    # -- what is shown --------------------------------------------------------------------

    @property
    def _looked_at(self) -> AppData:
        if self.data is None:
            raise InputError("nothing is open yet: drop a file")
        return self.data

    async def _page(self, request: web.Request) -> web.StreamResponse:
        moved = self.without_token(request)
        if moved is not None:
            return moved
        name = "" if self.data is None else self.data.name
        page = _templates().get_template("app.html")
        return _html(page.render(name=name, tabs=tabs.TABS, most=MOST_UPLOADED >> 20))

    async def _picker(self, request: web.Request) -> web.Response:
        offered = await asyncio.to_thread(tabs.picker, self._looked_at, _state(request))
        return _html(_fragment("picker", **offered))

    async def _tab(self, request: web.Request) -> web.StreamResponse:
        tab, state, data = tab_of(request.match_info["tab"]), _state(request), self._looked_at
        page = await self._shown(tab, state, data)
        if isinstance(page, web.Response):
            return page
        answers_served = (
            await asyncio.to_thread(beside.traffic_of, data.paths) if tab.name == "watch" else None
        )
        if answers_served is not None:
            page += _fragment("traffic", found=answers_served)
        return _html(page)

    async def _shown(self, tab: Tab, state: State, data: AppData) -> str | web.Response:
        """Return what is shown on a tab, or what is being worked on."""
        if tab.name == "questions":
            return _fragment("tab_questions")
        if tab.name == "labels" and not store_path(data.paths[0]).is_file():
            return _fragment("tab_labels", **_labelling(tab, data))
        try:
            call = await asyncio.to_thread(call_of, tab, state, data)
        except InputError as error:
            return await asyncio.to_thread(_failed, tab, str(error), state, data)
        job = data.document(call)
        if not job.done:
            await asyncio.sleep(_SOON)
        if not job.done:
            words = f"{tab.working} {data.name}"
            return web.json_response({"words": words, "seconds": job.seconds}, status=202)
        if job.error:
            return await asyncio.to_thread(_failed, tab, job.error, state, data)
        return await asyncio.to_thread(_document, tab, state, data, job, call)

    async def _rows(self, request: web.Request) -> web.Response:
        return _html(await asyncio.to_thread(_row_page, self._looked_at, _state(request)))

    async def _row(self, request: web.Request) -> web.Response:
        place = request.match_info["place"]
        if not place.isdecimal():
            raise InputError(f"there is no row {place!r}")
        return _html(await asyncio.to_thread(_question, self._looked_at, int(place)))

    async def _save(self, request: web.Request) -> web.Response:
        data, name = self._looked_at, request.match_info["name"]
        tab = tab_of(request.query.get("tab", "overview"))
        kind, body = await asyncio.to_thread(beside.saved, name, tab, _state(request), data)
        head = {"Content-Disposition": f'attachment; filename="{name}"'}
        return web.Response(body=body, content_type=kind, headers=head)

    # -- what is sent ---------------------------------------------------------------------

    async def _grade(self, request: web.Request) -> web.Response:
        data = self._looked_at
        try:
            payload = msgspec.json.decode(await request.read(), type=_Grade)
        except msgspec.DecodeError as error:
            raise InputError(f"no grade can be read: {error}") from None

        def keep() -> str:
            row = data.rows().question(payload.place)
            data.corrections.add(row, payload.grade, payload.note)
            return _question(data, payload.place)

        return _html(await asyncio.to_thread(keep))

    async def _read(self, request: web.Request) -> web.Response:
        try:
            roles = msgspec.json.decode(await request.read(), type=NamedColumns)
        except msgspec.DecodeError as error:
            raise InputError(f"no columns can be read: {error}") from None
        self._looked_at.read_as(roles)
        return said(200, "read")

    async def _cancel(self, request: web.Request) -> web.Response:
        call = await self._call(request)
        await asyncio.to_thread(self._looked_at.cancel, call)
        return said(200, "stopped")

    async def _again(self, request: web.Request) -> web.Response:
        self._looked_at.forget(await self._call(request))
        return said(200, "forgotten")

    async def _call(self, request: web.Request) -> Call:
        tab = tab_of(request.match_info["tab"])
        return await asyncio.to_thread(call_of, tab, _state(request), self._looked_at)

    async def _open(self, request: web.Request) -> web.Response:
        """Take a dropped file; `left` more come before they are opened together."""
        query, dropped = request.query, self._dropped
        if dropped is None or query.get("more") != "1":
            dropped = Dropped()
        self._dropped = None
        await dropped.take(request.content, query.get("name", ""))
        if query.get("left", "0") != "0":
            self._dropped = dropped
            return said(200, "taken")
        before, self.data = self.data, dropped.opened()
        self.data.worker.start()
        if self._labels is not None:
            # Labels belong to what was open before.
            await self._labels.stop()
            self._labels = None
        if before is not None:
            await asyncio.to_thread(before.close)
        return said(200, "opened")

    async def _label(self, _: web.Request) -> web.Response:
        data = self._looked_at
        if self._labels is None:
            # Loaded here: most who look label nothing.
            from calibrant.labels.page.options import LABELLING, open_task
            from calibrant.labels.page.server import LabelServer, widest_block

            task = open_task(data.paths[0], {**LABELLING.defaults, **data.table})
            precise = partial(widest_block, task.work.session, **task.goals)
            self._labels = LabelServer(task.work.session, precise, task.goals["budget"])
            self._address = await self._labels.start()
        return web.json_response({"address": self._address})


# -- answers ------------------------------------------------------------------------------


def _state(request: web.Request) -> State:
    return read_state(request.query.items())


def _templates() -> Any:
    return page_templates(app_asset)


def _fragment(macro: str, /, *places: object, **values: object) -> str:
    module = _templates().get_template("fragments.html").module
    return str(getattr(module, macro)(*places, **values))


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html", charset="utf-8")


def _file(name: str, kind: str) -> Handler:
    parts = {"app.js": (*_SCRIPTS, name), "app.css": (*_STYLES, name)}[name]

    async def answer(_: web.Request) -> web.StreamResponse:
        text = "\n".join(app_asset(part) for part in parts)
        return web.Response(text=text, content_type=kind, charset="utf-8")

    return answer


def _document(tab: Tab, state: State, data: AppData, job: BrowserJob, call: Call) -> str:
    """Return a tab with its command; its lists are those of the document."""
    # Ratings have no confidence: nothing of them is in focus.
    focused = state if tab.name == "judge" else tabs.focused(state, data)
    display = tabs.shown_of(tab, focused, job)
    own = ("overview", "decide", "mend", "judge", "labels")
    name = tab.name if tab.name in own else "document"
    if name == "overview":
        reading = job.result.get("reading") if job.result else None
        display["columns"] = beside.reading_fields(data, (reading or {}).get("columns") or {})
    if name == "judge":
        display["columns"] = beside.judged_columns(state, data)
    if name == "labels":
        display |= {**_labelling(tab, data), "form": []}
    settings, paths = data.settings(call), data.paths
    shell = Call(call.verb, *paths, **settings).shell()
    source = repr(paths[0] if len(paths) == 1 else paths)
    python = Call(call.verb, source, **settings).python()
    return _fragment(f"tab_{name}", **display) + _fragment("command", shell=shell, python=python)


def _failed(tab: Tab, error: str, state: State, data: AppData) -> str:
    """Return what a tab shows in place of a result, and a way to say how the table is meant."""
    # The page names files, and no place of a machine.
    words = error.replace(str(Path(data.paths[0]).parent) + os.sep, "")
    shown: dict[str, object] = {
        "columns": beside.reading_fields(data),
        "asked": beside.reading_question(data),
    }
    roles = data.judged()
    if tab.name == "judge":
        words, proposed = beside.proposed_settings(words)
        columns = beside.judged_columns(state, data)
        form = tabs.form_of(tab.verb, state, proposed)
        return _fragment("judge_failed", tab, words, form, columns)
    if tab.name == "overview" and roles["human"]:
        # Ratings without a confidence: the answer is on another tab.
        shown["instead"] = "both" if roles["judge"] else "people"
    return _fragment("tab_failed", tab, words, tabs.form_of(tab.verb, state), **shown)


def _labelling(tab: Tab, data: AppData) -> dict[str, object]:
    store = store_path(data.paths[0]).name
    command = Call("label serve", data.paths[0], **data.settings(Call("label serve"))).shell()
    return {"tab": tab, "store": store, "command": command}


def _row_page(data: AppData, state: State) -> str:
    rows = data.rows()
    if not state.method and len(rows.methods) > 1:
        # Each answer once: the other confidences stand beside it when it is opened.
        state = replace(state, method=rows.methods[0])
    page = rows.page(resolved(state, data).rows(), patience=_SOON)
    graded = replace(page, rows=[data.corrections.graded(row) for row in page.rows])
    has = {name: any(row.get(name) for row in page.rows) for name in ("answer", "reference")}
    several = len(rows.models) > 1
    return _fragment("rows", page=graded, has=has, state=state, several=several, size=PAGE)


def _question(data: AppData, place: int) -> str:
    row, graded = data.rows().question(place), data.corrections.graded
    return _fragment("question", row={**graded(row), "all": list(map(graded, row["all"]))})
