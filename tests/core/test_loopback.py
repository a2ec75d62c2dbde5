"""The three local servers turn strangers away: another host, another page, no token, a path."""

import asyncio
from types import SimpleNamespace

import aiohttp
import polars as pl
import pytest
from aiohttp import web
from yarl import URL

from calibrant.apps.serving.engine import ServingEngine
from calibrant.apps.serving.front import Front
from calibrant.apps.serving.measure import PassedOn
from calibrant.apps.serving.replies import Served
from calibrant.apps.view import PageServer
from calibrant.data.label_store import LabelStore
from calibrant.labels.labelling.session import LabelSession
from calibrant.labels.page.server import LabelServer
from calibrant.models.dispatch.limits import Breaker
from calibrant.models.ledger import Ledger

SECRET = "secret words"
TOKEN = "a-token-that-nobody-guesses"


class View:
    """`calibrant view` of a file."""

    pages = ("/",)

    def __init__(self, folder):
        page = folder / "page.html"
        page.write_text("<p>page</p>")
        self.server = PageServer(page)
        self.door = self.server.door

    def credentials(self, token):
        return {"Cookie": f"{self.door.cookie}={token}"}


class Label:
    """`calibrant label serve` of a pool."""

    pages = ("/", "/page.js", "/api/next?who=me")

    def __init__(self, folder):
        rows = pl.DataFrame(
            {
                "question_id": [str(number) for number in range(8)],
                "model": ["m"] * 8,
                "method": ["said"] * 8,
                "confidence": [0.5] * 8,
                "answer": ["a"] * 8,
            }
        )
        self.server = LabelServer(LabelSession(rows, LabelStore(folder / "labels.sqlite")))
        self.door = self.server.door

    def credentials(self, token):
        return {"Cookie": f"{self.door.cookie}={token}", "X-Labelling": "1"}


class Serve:
    """`calibrant serve` of a policy."""

    pages = ("/v1/models", "/v1/calibrant")

    def __init__(self, folder):
        step = SimpleNamespace(action="ask", model="small", risk=None)
        policy = Served("1", "endpoint", "none")
        ledger = Ledger(folder / "served.sqlite")
        rows = folder / "served.jsonl"
        self.server = Front(ServingEngine(lambda *_: step, {}, ledger, rows, policy), TOKEN)

    @property
    def door(self):
        return self.server._door

    def credentials(self, token):
        return {"Authorization": f"Bearer {token}"}


SERVERS = [View, Label, Serve]


def served(kind, folder, work, **options):
    """Start a server, do some work with it, stop it."""

    async def go():
        made = kind(folder, **options)
        await made.server.start()
        port = made.door.runner.addresses[0][1]
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
                return await work(session, f"http://127.0.0.1:{port}", made)
        finally:
            await made.server.stop()

    return asyncio.run(go())


def asked(kind, folder, path, *, headers=None, token=None):
    async def work(session, base, made):
        given = made.credentials(made.server.token if token is None else token)
        url = URL(base + path, encoded=True)
        async with session.get(
            url, headers={**given, **(headers or {})}, allow_redirects=False
        ) as response:
            return response.status, await response.text(), response.headers

    return served(kind, folder, work)


ALL_PAGES = [(kind, page) for kind in SERVERS for page in kind.pages]


@pytest.mark.parametrize(("kind", "page"), ALL_PAGES)
def test_the_user_is_let_in(kind, page, tmp_path):
    status, _, headers = asked(kind, tmp_path, page)
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
    ],
    ids=lambda headers: "=".join(*headers.items()),
)
@pytest.mark.parametrize(("kind", "page"), ALL_PAGES)
def test_another_host_or_page_is_turned_away(kind, page, headers, tmp_path):
    status, text, _ = asked(kind, tmp_path, page, headers=headers)
    assert status == 403
    assert "page</p>" not in text


@pytest.mark.parametrize(("kind", "page"), ALL_PAGES)
def test_a_forwarded_port_is_taken_by_serve_alone(kind, page, tmp_path):
    """A container's port has another number outside; a page in a browser has one port."""
    status, _, _ = asked(kind, tmp_path, page, headers={"Host": "127.0.0.1"})
    assert status == (200 if kind is Serve else 403)


@pytest.mark.parametrize("token", ["", "x" * 32, "\u00e9\u00e8", "a" * 5000])
@pytest.mark.parametrize(("kind", "page"), ALL_PAGES)
def test_nobody_comes_in_without_the_token(kind, page, token, tmp_path):
    status, text, _ = asked(kind, tmp_path, page, token=token)
    assert status == (401 if kind is Serve else 403)
    assert "page</p>" not in text


@pytest.mark.parametrize("path", ["/rows", "/v1/models"])
@pytest.mark.parametrize("kind", SERVERS)
def test_a_request_that_another_site_starts_is_turned_away(kind, path, tmp_path):
    """Turned away before anything is looked up; a link to the page itself may be followed."""
    status, _, _ = asked(kind, tmp_path, path, headers={"Sec-Fetch-Site": "cross-site"})
    assert status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/..\\secret.txt",
        "/page.js/../../secret.txt",
        "/secret.txt",
        "//etc/passwd",
        "/v1/../../secret.txt",
        "/%00",
    ],
)
@pytest.mark.parametrize("kind", SERVERS)
def test_no_path_leads_to_another_file(kind, path, tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)
    status, text, _ = asked(kind, tmp_path, path)
    assert status in (400, 403, 404)
    assert SECRET not in text
    assert "root:" not in text


@pytest.mark.parametrize("kind", SERVERS)
def test_they_listen_on_loopback_only(kind, tmp_path):
    async def work(session, base, made):
        return [place[0] for place in made.door.runner.addresses]

    assert served(kind, tmp_path, work) == ["127.0.0.1"]


@pytest.mark.parametrize("kind", [View, Label])
def test_the_token_moves_out_of_the_address(kind, tmp_path):
    async def work(session, base, made):
        url = f"{base}/?token={made.server.token}"
        async with session.get(url, allow_redirects=False) as response:
            return response.status, response.headers

    status, headers = served(kind, tmp_path, work)
    assert status == 303
    assert "token" not in headers["Location"]
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(status=307, headers={"Location": "http://127.0.0.1:9/v1"}),
        lambda: web.Response(text="<html>"),
        lambda: web.Response(body=b"[1]", content_type="application/json"),
    ],
    ids=["redirect", "web page", "list"],
)
def test_a_front_follows_no_redirect_and_takes_no_other_answer(answer, tmp_path, monkeypatch):
    async def work(session, base, made):
        app = web.Application()
        app.router.add_post("/v1/chat/completions", _give)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        place = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        monkeypatch.setenv("SMALL_KEY", "sk-secret-of-small")
        engine = made.server.engine
        engine.measures["small"] = PassedOn("m", place, "SMALL_KEY", engine.ledger)
        engine.breakers["small"] = Breaker()
        body = {"messages": [{"role": "user", "content": "Q?"}]}
        try:
            async with session.post(
                f"{base}/v1/chat/completions", json=body, headers=made.credentials(TOKEN)
            ) as response:
                return response.status, await response.text()
        finally:
            await runner.cleanup()

    async def _give(_):
        return answer()

    status, text = served(Serve, tmp_path, work)
    assert status == 502
    assert '"type":"upstream"' in text
    assert "sk-secret" not in text
