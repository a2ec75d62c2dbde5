"""A study in a process of its own, to be killed.

Run as a module it starts one such process for every line it reads, and prints its number: a
fork is quicker than an interpreter that imports everything again.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from calibrant.records.ledger import Ledger
from clients.sessions import Session, questions

ASKS = questions(300, draws=2)


class Place:
    """Where the endpoint is; the endpoint itself lives in the test's process."""

    def __init__(self, url):
        self.url = url


class Starter:
    """Starts studies: `with Starter(url, path) as starter: pid = starter.start()`."""

    def __init__(self, url, path):
        self._command = [sys.executable, "-m", "clients.killable", url, str(path)]

    def __enter__(self):
        folder = Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            self._command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def start(self):
        print(file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


def main():
    url, path = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            with Ledger(path) as ledger:
                Session(Place(url), ledger).run(ASKS)
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
