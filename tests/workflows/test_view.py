"""`view`: one page on loopback, for whoever holds its token."""

import asyncio
import json

import pytest
from aiohttp import ClientSession, CookieJar
from hostile import MARK, hostile_document

import calibrant as cal
from calibrant.apps.view import PageServer, view
from calibrant.core.document import dump_document, plain
from calibrant.core.errors import InputError
from documents import document_of


def served(path, work):
    """Run `work(session, address, server)` beside a server of this path."""

    async def both():
        server = PageServer(path)
        address = await server.start()
        try:
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
                return await work(session, address, server)
        finally:
            await server.stop()

    return asyncio.run(both())


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "audit.json"
    path.write_bytes(dump_document(plain(document_of("audit"))))
    return path


def base_of(address):
    return address.split("/?")[0]


def test_the_page_is_shown_and_the_token_leaves_the_address(result):
    async def work(session, address, server):
        async with session.get(address) as response:
            return str(response.url), response.status, await response.text(), response.headers

    url, status, text, headers = served(result, work)
    assert status == 200
    assert "token" not in url
    assert "over-confident" in text
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("headers", "cookie"),
    [
        ({"Host": "evil.example"}, True),
        ({"Host": "127.0.0.1"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({}, False),
    ],
    ids=["another host", "host without port", "another origin", "no origin", "no token"],
)
def test_strangers_are_turned_away(result, headers, cookie):
    async def work(session, address, server):
        cookies = {server.cookie: server.token} if cookie else {server.cookie: "x" * 32}
        async with session.get(
            base_of(address) + "/", headers=headers, cookies=cookies, allow_redirects=False
        ) as response:
            return response.status, await response.text()

    status, text = served(result, work)
    assert status == 403
    assert "<html" not in text


@pytest.mark.parametrize(
    "path", ["/../secret.txt", "/%2e%2e/secret.txt", "/audit.json", "/secret.txt", "//etc/passwd"]
)
def test_no_other_file_is_served(result, path, tmp_path):
    (tmp_path / "secret.txt").write_text("secret words")

    async def work(session, address, server):
        from yarl import URL

        url = URL(base_of(address) + path, encoded=True)
        async with session.get(url, cookies={server.cookie: server.token}) as response:
            return response.status, await response.text()

    status, text = served(result, work)
    assert status in (403, 404)
    assert "secret words" not in text


@pytest.mark.parametrize("method", ["post", "put", "delete", "options"])
def test_nothing_can_be_sent(result, method):
    async def work(session, address, server):
        call = getattr(session, method)
        async with call(base_of(address) + "/", cookies={server.cookie: server.token}) as response:
            return response.status

    assert served(result, work) == 405


def test_it_listens_on_loopback_only(result):
    async def work(session, address, server):
        return [site[0] for site in server.door.runner.addresses]

    assert served(result, work) == ["127.0.0.1"]


def test_hostile_names_are_text_on_the_served_page(tmp_path):
    path = tmp_path / "hostile.json"
    path.write_bytes(dump_document(plain(hostile_document())))

    async def work(session, address, server):
        async with session.get(address) as response:
            return await response.text()

    text = served(path, work)
    assert f"<script>{MARK}" not in text
    assert "<iframe" not in text


def test_a_page_of_somebody_else_may_reach_nobody(tmp_path):
    path = tmp_path / "foreign.html"
    path.write_text("<img src='http://evil.example/x.png'><p>hello</p>")

    async def work(session, address, server):
        async with session.get(address) as response:
            return response.headers["Content-Security-Policy"], await response.text()

    policy, text = served(path, work)
    assert "default-src 'none'" in policy
    assert "img-src data:" in policy
    assert "hello" in text


def test_the_page_is_that_of_the_file_as_it_is_now(result):
    async def work(session, address, server):
        pages = []
        for kind in ("audit", "plan"):
            result.write_bytes(dump_document(plain(document_of(kind))))
            async with session.get(address) as response:
                pages.append(await response.text())
        return pages

    first, second = served(result, work)
    assert "over-confident" in first
    assert "calibrant.plan/1" in second


def test_a_study_without_answers_says_how_to_get_them(tmp_path):
    (tmp_path / "study.toml").write_text('name = "two capitals"\n')
    with pytest.raises(InputError, match="no answers yet") as caught:
        view(tmp_path, open_browser=False)
    assert "calibrant run" in str(caught.value)


def test_what_cannot_be_shown_is_refused_with_its_name(tmp_path):
    with pytest.raises(InputError, match="nothing to view"):
        view(tmp_path / "no.html")


def test_the_verb_serves_until_it_is_stopped(result):
    seen = []

    def stop(address):
        seen.append(address)
        raise KeyboardInterrupt

    document = cal.apps.view.view(result, open_browser=False, on_start=stop)
    assert seen[0].startswith("http://127.0.0.1:")
    assert json.loads(dump_document(document.to_dict()))["viewed"] == "audit.json"
