"""`calibrant serve` as a process: signals, probes, crowds, full disks, callers who go away."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from calibrant.models.ledger import Ledger
from clients.server import Endpoint
from workflows.test_serve_promise import question, saved

if sys.platform != "linux":
    pytest.skip("these are attacks on a Linux server", allow_module_level=True)

TOKEN = "a-token"
ENV = {**os.environ, "CALIBRANT_TOKEN": TOKEN}


class Process:
    """A server that was started, and how it is asked."""

    def __init__(self, program, address, said):
        self.program, self.said = program, said
        self.root = address.removesuffix("/v1")
        self.port = int(self.root.rpartition(":")[2])

    def ask(self, path="/v1/chat/completions", body=None, token=TOKEN, **headers):
        """Return status, text and headers."""
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data=sent, headers=headers)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        if sent is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode(), dict(reply.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), dict(error.headers)

    def connect(self, data=b""):
        """Return an open connection."""
        opened = socket.create_connection(("127.0.0.1", self.port))
        opened.sendall(data)
        return opened


@contextmanager
def process(folder, url, *more, before=None, wrap=()):
    """Start a server in front of one endpoint, and stop it again."""
    saved(folder / "policy.json")
    command = [*wrap, sys.executable, "-m", "calibrant", "serve", str(folder / "policy.json"),
               "--endpoint", f"m={url}/v1", "--measured-by", "perplexity",
               "--ledger", str(folder / "served.sqlite"), *map(str, more)]  # fmt: skip
    with (folder / "stderr").open("wb") as errors:
        program = subprocess.Popen(command, stderr=errors, env=ENV, preexec_fn=before)
    said = folder / "stderr"
    try:
        end = time.monotonic() + 60
        found = None
        while found is None and program.poll() is None and time.monotonic() < end:
            found = re.search(r" at (http://\S+) ", said.read_text())
            time.sleep(0.05)
        assert found, said.read_text()
        yield Process(program, found[1], said)
    finally:
        with suppress(ProcessLookupError):
            program.kill()
        program.wait(20)


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        yield server


def in_threads(count, work):
    found = [None] * count

    def one(number):
        found[number] = work(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads, found


def until(condition, within_s=20.0):
    end = time.monotonic() + within_s
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# -- signals ---------------------------------------------------------------------------------------


def test_sigterm_drains_where_sigint_is_ignored(tmp_path, endpoint):
    """As in `sh -c "calibrant serve & wait"`: five answers are paid for, five are delivered."""
    endpoint.behaviour.latency_s = 2.0
    with process(tmp_path, endpoint.url, before=ignore_interrupts) as server:
        threads, found = in_threads(5, lambda n: server.ask(body=question(f"What is {n}?")))
        assert until(lambda: endpoint.under_way == 5)
        server.program.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(30)
        assert server.program.wait(30) == 0
    assert [status for status, _, _ in found] == [200] * 5
    with Ledger(tmp_path / "served.sqlite", read_only=True) as ledger:
        assert ledger.totals()["draws"] == 5
    assert len((tmp_path / "served.jsonl").read_text().splitlines()) == 5


# -- crowds ----------------------------------------------------------------------------------------


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def test_371_idle_connections_keep_nobody_out(tmp_path, endpoint):
    with ExitStack() as opened, process(tmp_path, endpoint.url, before=few_files) as server:
        for _ in range(371):
            opened.enter_context(server.connect())
        for number in range(5):
            status, _, _ = server.ask(body=question(f"What is {number}?"))
            assert status == 200
        assert server.ask("/ready")[0] == 200
        assert server.said.stat().st_size < 2_000, "no traceback for each of them"


def test_half_a_header_is_not_waited_for(tmp_path, endpoint):
    with process(tmp_path, endpoint.url) as server:
        with server.connect(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ") as slow:
            slow.settimeout(30)
            began = time.monotonic()
            assert slow.recv(100) == b""
            assert time.monotonic() - began < 25
        assert server.ask("/health", token=None)[0] == 200


def test_more_requests_than_are_answered_come_back_later(tmp_path, endpoint):
    endpoint.behaviour.latency_s = 1.5
    with process(tmp_path, endpoint.url, "--most-requests", 3) as server:
        threads, found = in_threads(8, lambda n: server.ask(body=question(f"What is {n}?")))
        for thread in threads:
            thread.join(30)
        lines = server.ask("/metrics")[1].splitlines()
    statuses = sorted(status for status, _, _ in found)
    assert statuses == [200] * 3 + [503] * 5
    assert all("Retry-After" in headers for status, _, headers in found if status == 503)
    assert 'calibrant_requests_total{status="5xx"} 5' in lines


def test_a_body_without_end_is_refused_with_what_is_read(tmp_path, endpoint):
    with process(tmp_path, endpoint.url) as server:
        status, text, _ = server.ask(body=question("x" * 5_000_000))
        assert status == 413
        assert "at most 4 MB" in text


def test_a_caller_who_goes_away_is_not_paid_for(tmp_path):
    endpoint = Endpoint()
    endpoint.behaviour.latency_s = 30.0
    endpoint.ends_with_its_caller = True
    sent = json.dumps(question()).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{{}}\r\nAuthorization: Bearer "
        f"{TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    with endpoint, process(tmp_path, endpoint.url) as server:
        gone = server.connect(head.format(server.port).encode() + sent)
        assert until(lambda: endpoint.under_way == 1)
        gone.close()
        assert until(lambda: endpoint.under_way == 0), "the call of the model goes with its caller"
        assert until(lambda: "calibrant_requests_under_way 0" in server.ask("/metrics")[1])
        assert 'status="4xx"} 1' in server.ask("/metrics")[1]


def test_two_who_ask_the_same_share_a_call_also_when_one_goes(tmp_path, endpoint):
    endpoint.behaviour.latency_s = 2.0
    sent = json.dumps(question()).encode()
    with process(tmp_path, endpoint.url) as server:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        gone = server.connect(head.encode() + sent)
        assert until(lambda: endpoint.under_way == 1)
        threads, found = in_threads(1, lambda _: server.ask(body=question()))
        until(lambda: "requests_under_way 2" in server.ask("/metrics")[1], 1.5)
        gone.close()
        threads[0].join(30)
    assert found[0][0] == 200
    assert len(endpoint.calls) == 1


def test_patience_is_the_callers(tmp_path, endpoint):
    endpoint.behaviour.latency_s = 3.0
    with process(tmp_path, endpoint.url, "--patience", 1) as server:
        status, text, _ = server.ask(body=question())
        assert (status, "no answer within 1 s" in text) == (504, True)


def test_two_processes_share_rows_ledger_and_what_is_known(tmp_path, endpoint):
    labels = tmp_path / "labels.csv"
    labels.write_text("question_id,correct\n")
    watched = ("--watch", labels)
    with (process(tmp_path, endpoint.url, *watched) as one,
          process(tmp_path, endpoint.url, *watched) as other):  # fmt: skip
        known = {"calibrant": {"question_id": "same"}, "temperature": 0}
        for number in range(80):
            about = {"calibrant": {"question_id": str(number)}}
            server = (one, other)[number % 2]
            assert server.ask(body={**question(f"What is {number}?"), **about})[0] == 200
        both = [server.ask(body={**question(), **known})[1] for server in (one, other)]
        costs = [json.loads(text)["calibrant"]["cost"] for text in both]
        calls = len(endpoint.calls)
    assert calls == 81, "the second process found the answer in the ledger"
    assert costs == [0.0, 0.0]
    rows = [json.loads(line) for line in (tmp_path / "served.jsonl").read_text().splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 82
    labels.write_text("question_id,correct\n" + "".join(f"{n},0\n" for n in range(80)))
    # One of them finds the breach; the other, which sees no labels, tells it too.
    with process(tmp_path, endpoint.url, *watched) as one:
        assert "none: " in one.ask(body=question("after"))[1]
        with process(tmp_path, endpoint.url) as other:
            told = json.loads(other.ask(body=question("and there"))[1])["calibrant"]["promise"]
    assert told.startswith("none: ")


# -- behind a service ------------------------------------------------------------------------------


def test_probes_and_proxies_are_answered_as_they_ask(tmp_path, endpoint):
    names = ("--allow-host", "serve.team.svc", "--host", "0.0.0.0")
    with process(tmp_path, endpoint.url, *names) as server:
        server.root = server.root.replace("0.0.0.0", "127.0.0.1")
        kubelet = {"Host": f"10.42.0.17:{server.port}", "User-Agent": "kube-probe/1.30"}
        for path in ("/health", "/ready"):
            status, text, _ = server.ask(path, token=None, **kubelet)
            assert status == 200
            assert TOKEN not in text
            assert str(tmp_path) not in text
        for host in ("serve.team.svc", "serve.team.svc:80", "SERVE.team.svc:8080"):
            assert server.ask(body=question(), Host=host)[0] == 200
        proxied = {"Host": "serve.team.svc", "X-Forwarded-Proto": "https",
                   "X-Forwarded-Host": "api.example.org", "Via": "1.1 proxy"}  # fmt: skip
        assert server.ask(body=question(), **proxied)[0] == 200
        assert server.ask(body=question(), Host="evil.example")[0] == 403
        assert server.ask("/metrics", Host="evil.example")[0] == 403
        assert server.ask("/metrics", token="wrong")[0] == 401
        assert server.ask("/metrics", token=None)[0] == 401
        assert server.ask("/metrics", token=None, Authorization=f"bearer {TOKEN}")[0] == 200


# -- full disks ------------------------------------------------------------------------------------


def can_mount():
    check = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
    with suppress(OSError):
        return subprocess.run(check, capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.skipif(not can_mount(), reason="no volume of its own can be mounted here")
def test_a_full_volume_buys_nothing_tears_nothing_and_is_told(tmp_path, endpoint):
    """A volume of 24 MB is filled to the last byte, and then has room again."""
    volume = tmp_path / "volume"
    volume.mkdir()
    script = f'mount -t tmpfs -o size=24m none {volume} && exec "$@"'
    wrap = ("unshare", "-rm", "sh", "-c", script, "sh")
    with process(tmp_path, endpoint.url, "--ledger", volume / "served.sqlite", wrap=wrap) as server:
        inside = Path(f"/proc/{server.program.pid}/root") / volume.relative_to("/")
        assert server.ask(body=question("first"))[0] == 200
        assert server.ask("/ready", token=None)[0] == 200
        with (inside / "filler").open("wb", buffering=0) as filler:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while filler.write(b"x" * size):
                        pass
        assert server.ask("/ready", token=None)[0] == 503
        found = [server.ask(body=question(f"full {n}")) for n in range(40)]
        bought = len(endpoint.calls) - 1
        statuses = [status for status, _, _ in found]
        assert set(statuses) <= {200, 503}
        assert 503 in statuses
        assert all("Retry-After" in headers for s, _, headers in found if s == 503)
        for status, text, _ in found:
            if status == 200:
                recorded = json.loads(text)["calibrant"]["promise"]
                assert recorded.startswith(("at most", "none: it could not be recorded"))
        metrics = server.ask("/metrics")[1]
        unrecorded = float(re.search(r"^calibrant_unrecorded_total (\S+)", metrics, re.M)[1])
        assert bought <= statuses.count(200) + unrecorded
        (inside / "filler").unlink()
        assert until(lambda: server.ask(body=question("again"))[0] == 200)
        assert server.ask("/ready", token=None)[0] == 200
        lines = (inside / "served.jsonl").read_bytes()
        assert lines.endswith(b"\n")
        rows = [json.loads(line) for line in lines.splitlines()]
    delivered = statuses.count(200) + 2
    assert len(rows) >= delivered - unrecorded
    assert len({row["id"] for row in rows}) == len(rows)
