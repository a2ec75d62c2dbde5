"""A hostile or broken endpoint: nothing leaks, nothing hangs, nothing swells."""

import base64
import gzip
import json
import time
from urllib.parse import quote

import pytest
from aiohttp import web

from calibrant.clients import EndpointRefusedError
from calibrant.clients.endpoints.factory import open_client
from calibrant.clients.endpoints.http import _retry_after
from calibrant.clients.endpoints.openai import OpenAIClient
from calibrant.clients.endpoints.secrets import KeyFinder
from calibrant.core.errors import InputError
from clients.server import Endpoint, error
from clients.sessions import Session, questions

KEY = "sk-Very/Secret+Key-0123456789"
ASKS = questions(3)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server, session, status):
    with Endpoint() as other:
        place = f"{other.url}/v1/chat/completions"
        server.behaviour.fault = lambda number, body: web.Response(
            status=status, headers={"Location": place}
        )
        with pytest.raises(EndpointRefusedError, match="not followed"):
            session(client_options={"key": KEY}).run(ASKS)
        assert other.calls == []
        assert other.headers == []


@pytest.mark.parametrize("kind", ["anthropic", "gemini", "openai"])
def test_a_usual_key_goes_to_its_own_provider_alone(kind, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    elsewhere = {"kind": kind, "model": "m", "base_url": "https://example.org/v1"}
    assert KEY not in str(vars(open_client(elsewhere)))
    named = open_client({**elsewhere, "api_key_env": "OPENAI_API_KEY"})
    assert KEY in str(vars(named))


WRITTEN = {
    "plain": KEY,
    "json escapes": "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    "slash escape": KEY.replace("/", "\\/"),
    "percent": quote(KEY, safe=""),
    "base64": base64.b64encode(b"x" + KEY.encode() + b"yz").decode(),
    "base64 for addresses": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "hexadecimal": KEY.encode().hex(),
    "hexadecimal with colons": KEY.encode().hex(":"),
    "percent twice": quote(quote(KEY, safe=""), safe=""),
    "base64 twice": base64.b64encode(base64.b64encode(b"a" + KEY.encode())).decode(),
    "JSON inside JSON": json.dumps("".join(f"\\u{ord(letter):04X}" for letter in KEY))[1:-1],
    "signs of a page": "".join(f"&#x{ord(letter):x};" for letter in KEY),
    "a page in an address": quote("".join(f"&#{ord(letter)};" for letter in KEY)),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_an_echoed_key_is_found_in_every_form_that_decodes_to_it(server, session, ledger, form):
    text = json.dumps({"id": "1", "choices": [], "note": "KEY"}).replace("KEY", WRITTEN[form])
    server.behaviour.fault = lambda number, body: web.Response(
        body=text.encode(), content_type="application/json"
    )
    with pytest.raises(EndpointRefusedError, match="repeats the API key"):
        session(client_options={"key": KEY}).run(ASKS)
    assert KEY.encode() not in ledger.path.read_bytes()


def test_another_text_is_no_key():
    finder = KeyFinder(KEY)
    for text in (
        "sk-Very",
        "Secret+Key",
        base64.b64encode(b"nothing to see here, move on").decode(),
    ):
        assert not finder.found_in(text)


def test_an_answer_that_unpacks_to_gigabytes_is_not_read(server, session):
    """One megabyte of zeros packed a thousandfold: refused after the limit, not unpacked whole."""
    bomb = gzip.compress(b"[" + b" " * (400 * 1024**2) + b"]")
    assert len(bomb) < 2 * 1024**2
    server.behaviour.fault = lambda number, body: web.Response(
        body=bomb, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
    )
    outcomes = session(client_options={"most_bytes": 8 * 1024**2}, max_attempts=1).run(questions(1))
    assert "larger than 8 MB" in str(outcomes[0].problem)


@pytest.mark.parametrize(
    "wait", ["86400", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"], ids=["a day", "digits", "9999"]
)
def test_a_wait_beyond_patience_ends_the_run_and_says_so(server, session, wait):
    server.behaviour.fault = lambda number, body: error(429, "later", headers={"Retry-After": wait})
    started = time.monotonic()
    with pytest.raises(EndpointRefusedError, match="asks to wait"):
        session(patience_s=5.0).run(ASKS)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("value", "expected"),
    [("²", None), ("1e3", None), ("-5", None), ("", None), ("nan", None), ("0.5", 0.5), ("7", 7.0)],
)
def test_only_plain_numbers_and_dates_are_a_wait(value, expected):
    assert _retry_after({"Retry-After": value}, b"") == expected


def test_a_key_is_never_written_into_a_study():
    with pytest.raises(InputError, match="never written down"):
        open_client({"kind": "openai", "model": "m", "api_key": KEY})


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_a_dead_endpoint_ends_after_a_stated_time(server, ledger, place):
    client = OpenAIClient(preset="vllm", base_url=place, timeout_s=5.0)
    started = time.monotonic()
    with pytest.raises(EndpointRefusedError, match=r"nothing answers at .* check base_url"):
        Session(server, ledger, client=client, patience_s=1.5).run(questions(200))
    assert time.monotonic() - started < 15
    assert ledger.failures() == [], "it is not the question's fault"
