"""A hostile or broken endpoint: nothing leaks, nothing hangs, nothing swells."""

import base64
import functools
import gzip
import json
from urllib.parse import quote

import pytest
from aiohttp import web

from calibrant.core.errors import InputError
from calibrant.models import EndpointRefusedError
from calibrant.models.endpoints.factory import open_client
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.endpoints.refused import retry_after_s
from calibrant.models.endpoints.secrets import KeyFinder
from clients.server import Endpoint, error
from clients.sessions import Session, client_of, questions
from ledgers import failures

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
    "percent five times": functools.reduce(lambda text, _: quote(text, safe=""), range(5), KEY),
    "percent in base64": base64.b64encode(quote(KEY, safe="").encode()).decode(),
    "JSON escapes in base64": base64.b64encode(
        "".join(f"\\u{ord(letter):04x}" for letter in KEY).encode()
    ).decode(),
    "hexadecimal in base64": base64.b64encode(KEY.encode().hex().encode()).decode(),
    "base64 in hexadecimal": base64.b64encode(KEY.encode()).hex(),
    "base64 three times": functools.reduce(
        lambda raw, _: base64.b64encode(raw), range(3), b"ab" + KEY.encode()
    ).decode(),
    "UTF-16 in base64": base64.b64encode(KEY.encode("utf-16-le")).decode(),
    "base64 in lines": json.dumps(base64.encodebytes(b"x" * 40 + KEY.encode()).decode())[1:-1],
    "hexadecimal in both cases": KEY.encode().hex()[:20] + KEY.encode().hex()[20:].upper(),
    "hexadecimal with dashes": KEY.encode().hex("-"),
    "hexadecimal in a program": ", ".join(f"0x{byte:02X}" for byte in KEY.encode()),
    "octal": "".join(f"\\\\{byte:03o}" for byte in KEY.encode()),
    "a list of bytes": ", ".join(map(str, KEY.encode())),
    "a mail": "".join(f"={byte:02X}" for byte in KEY.encode()),
    "an old address": "".join(f"%u{ord(letter):04x}" for letter in KEY),
    "blanks between": " ".join(KEY),
    "letters without width between": "\u200b".join(KEY),
    "a line end inside": KEY[:10] + "\\n" + KEY[10:],
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


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
def test_parts_that_make_up_the_key_together_are_not_stored(server, ledger, kind):
    halves = (KEY[:12], KEY[12:])
    parts = [{"type": "text", "text": half} for half in halves]
    body = {
        "openai": {"id": "1", "choices": [{"message": {"content": parts}}]},
        "anthropic": {"id": "1", "content": parts, "stop_reason": "end_turn"},
        "gemini": {"candidates": [{"content": {"parts": [{"text": half} for half in halves]}}]},
    }[kind]
    server.behaviour.fault = lambda number, _: web.json_response(body)
    address = server.url if kind == "anthropic" else f"{server.url}/v1"
    client = {
        "openai": lambda: client_of(server, key=KEY),
        "anthropic": lambda: ProviderClient(preset="anthropic", base_url=address, key=KEY),
        "gemini": lambda: ProviderClient(preset="gemini", base_url=f"{server.url}/v1beta", key=KEY),
    }[kind]()
    asks = questions(1, seed=None)
    with pytest.raises(EndpointRefusedError, match="repeats the API key"):
        Session(server, ledger, client=client).run(asks)
    assert KEY.encode() not in ledger.path.read_bytes()


def test_a_key_at_the_end_of_what_is_quoted_is_not_cut_in_two(server, session):
    page = "word\n" + " " * 1_170 + KEY + " " * 400
    server.behaviour.fault = lambda number, body: web.Response(status=400, text=page)
    problem = session(client_options={"key": KEY}).run(questions(1))[0].problem
    assert "[key]" in problem.message
    assert KEY[:6] not in problem.message


def test_words_of_an_endpoint_are_printable_and_short(server, session):
    kind = "text/" + KEY + ";" + "x" * 2_000
    server.behaviour.fault = lambda number, body: web.Response(
        body=b"no \x1b[31mJSON\x07", headers={"Content-Type": kind}
    )
    problem = session(client_options={"key": KEY}, max_attempts=1).run(questions(1))[0].problem
    assert KEY not in problem.message
    assert len(problem.message) < 1_000
    assert "\\x1b[31mJSON\\x07" in problem.message


@pytest.mark.parametrize("key", ["test", "EMPTY", "ollama"])
def test_a_word_in_place_of_a_key_may_stand_in_an_answer(server, session, key):
    server.behaviour.fault = lambda number, body: web.json_response(
        {"id": "1", "choices": [{"message": {"content": f"this is a {key}"}}]}
    )
    outcomes = session(client_options={"key": key}).run(questions(1))
    assert outcomes[0].draws[0].completion.text == f"this is a {key}"


@pytest.mark.parametrize("status", [201, 202, 203, 206])
def test_an_answer_with_another_status_of_success_is_kept(server, session, status):
    server.behaviour.fault = lambda number, body: web.json_response(
        {"id": "1", "choices": [{"message": {"content": "Lima"}}]}, status=status
    )
    assert session().run(questions(1))[0].draws[0].completion.text == "Lima"


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1",
        "http://h:99999/v1",
        "http://h:abc/v1",
        "http://h/v1#key=sk-0123456789",
        "http://h/v1?pwd=sk-0123456789",
        "htp://me:sk-0123456789@h",
        "sk-0123456789@h/v1",
        5,
    ],
)
def test_an_address_that_is_none_is_named_without_a_secret(address):
    with pytest.raises(InputError, match="base_url") as caught:
        open_client({"kind": "vllm", "model": "m", "base_url": address})
    assert "sk-0123456789" not in str(caught.value)


@pytest.mark.parametrize("name", ["Authorization", "api-key", "X-Auth-Token", "Cookie"])
def test_a_key_in_a_header_of_ones_own_is_looked_for_as_well(server, session, ledger, name):
    server.behaviour.fault = lambda number, body: web.json_response(
        {"id": "1", "choices": [{"message": {"content": f"you sent {KEY}"}}]}
    )
    with pytest.raises(EndpointRefusedError, match="repeats the API key"):
        session(client_options={"extra_headers": {name: f"Bearer {KEY}"}}).run(ASKS)
    assert KEY.encode() not in ledger.path.read_bytes()


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"api_key_env": "sk-Zq9Secret0123456789abc"}, "name of an environment variable"),
        ({"api_key_env": "sk_Zq9Secret0123456789abc"}, "name of an environment variable"),
        ({"api_key_env": 5}, "name of an environment variable"),
        ({"api_key_env": "BROKEN_KEY"}, "control character"),
        ({"timeout_s": "x"}, "timeout_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"most_bytes": 0}, "most_bytes"),
        ({"extra_headers": ["a"]}, "headers"),
        ({"extra_headers": {"a": 5}}, "headers"),
        ({"base_url": "http://exam ple.org/v1"}, "base_url"),
    ],
)
def test_odd_settings_are_named_without_a_secret(monkeypatch, setting, match):
    monkeypatch.setenv("BROKEN_KEY", "sk-Zq9Secret\n0123456789abc")
    spec = {"kind": "vllm", "model": "m", "base_url": "http://127.0.0.1:9/v1", **setting}
    with pytest.raises(InputError, match=match) as caught:
        open_client(spec)
    assert "Zq9Secret" not in str(caught.value)


def test_another_text_is_no_key():
    finder = KeyFinder(KEY)
    for text in (
        "sk-Very",
        "Secret",
        base64.b64encode(b"nothing to see here, move on").decode(),
    ):
        assert not finder.found_in(text)


def test_an_answer_that_unpacks_to_gigabytes_is_not_read(server, session):
    """One megabyte of zeros packed a thousandfold: refused after the limit, not unpacked whole."""
    bomb = gzip.compress(b"[" + b" " * (100 * 1024**2) + b"]")
    assert len(bomb) < 1024**2
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
    with pytest.raises(EndpointRefusedError, match="asks to wait"):
        session(patience_s=5.0).run(ASKS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("²", None), ("1e3", None), ("-5", None), ("", None), ("nan", None), ("0.5", 0.5), ("7", 7.0)],
)
def test_only_plain_numbers_and_dates_are_a_wait(value, expected):
    assert retry_after_s({"Retry-After": value}, b"") == expected


def test_a_key_is_never_written_into_a_study():
    with pytest.raises(InputError, match="never written down"):
        open_client({"kind": "openai", "model": "m", "api_key": KEY})


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_a_dead_endpoint_ends_after_a_stated_time(server, ledger, place):
    client = ProviderClient(preset="vllm", base_url=place, timeout_s=5.0)
    with pytest.raises(EndpointRefusedError, match=r"nothing answers at .* check base_url"):
        Session(server, ledger, client=client, patience_s=1.5).run(questions(200))
    assert failures(ledger) == [], "it is not the question's fault"


LONG = "sk-proj-Tq8vR2mZx7Lw0Kc9Yb4Nd6Hs"


@pytest.mark.parametrize("part", [LONG[8:16], LONG[11:20], LONG[-8:], LONG[10:], f"x{LONG[9:18]}x"])
def test_a_part_of_a_key_is_the_key(part):
    assert KeyFinder(LONG).found_in(f"You sent ...{part}...")
    assert part not in KeyFinder(LONG).cleaned(f"You sent ...{part}...")


@pytest.mark.parametrize(
    "text", ["sk-proj-", "Keys begin with sk-proj- and are long.", LONG[8:15], "Tq8v R2mZ"]
)
def test_the_beginning_of_all_keys_and_short_parts_are_no_secret(text):
    finder = KeyFinder(LONG)
    assert finder.found_in(text) is (text == "Tq8v R2mZ")


def test_any_header_that_a_user_sets_may_be_a_secret(server, session, ledger):
    value = "tenant-7f3a9c2e5b81"
    server.behaviour.fault = lambda number, body: web.json_response(
        {"id": "1", "choices": [{"message": {"content": f"I see {value}"}}]}
    )
    with pytest.raises(EndpointRefusedError, match="repeats the API key"):
        session(client_options={"extra_headers": {"X-Tenant": value}}).run(ASKS)
    assert value.encode() not in ledger.path.read_bytes()
