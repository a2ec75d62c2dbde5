"""A study in a process of its own, to be killed.

Run as a module it starts one such process for every line it reads, and prints its number: a
fork is quicker than an interpreter that imports everything again. The line holds the options of
the process: caps, and by how many seconds its clock is wrong.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson

from calibrant.core.errors import BudgetError, InputError
from calibrant.models import Caps, Price
from calibrant.models.ledger import Ledger
from clients.sessions import Session, questions
from ledgers import in_flight

ASKS = questions(300, draws=2)
PRICES = {"m": Price(1.0, 1.0)}


class Place:
    """Where the endpoint is; the endpoint itself lives in the test's process."""

    def __init__(self, url):
        self.url = url


class Starter:
    """Starts studies: `with Starter(url, path) as starter: pid = starter.start()`."""

    def __init__(self, url, path, *, errors=None):
        self._errors = errors
        self._command = [sys.executable, "-m", "clients.killable", url, str(path)]

    def __enter__(self):
        folder = Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            self._command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def start(self, **options):
        print(json.dumps(options), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.002)


def in_flight_draws(ledger):
    """The draws, as the server counts them, of calls that have no recorded end."""
    bodies = {id_: orjson.loads(key.body) for id_, key in ledger.requests()}
    found = set()
    for attempt in in_flight(ledger):
        assert not attempt.live
        ((role, content),) = bodies[attempt.request_id]["messages"]
        prompt = json.dumps([{"role": role, "content": content}])
        found |= {(prompt, attempt.first_draw + offset) for offset in range(attempt.n)}
    return found


def work(url, path, *, clock_s=0.0, caps=None, most_bytes=None):
    """Run the study as a process whose clock is wrong, and whose files may not grow further."""
    if most_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    true_time = time.time
    time.time = lambda: true_time() + clock_s
    limits = None if caps is None else Caps(**caps)
    with Ledger(path) as ledger:
        try:
            Session(Place(url), ledger, caps=limits, prices=PRICES).run(ASKS)
        except BudgetError:
            assert caps is not None
        except InputError as error:
            os.write(2, f"{error}\n".encode())
            os._exit(2)


def main():
    url, path = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            work(url, path, **json.loads(line))
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
