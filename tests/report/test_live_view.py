"""`view` beside a real run: how far it is, what it cost, the picture filling up."""

import asyncio
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL

import pytest
from pages import wait_for

from calibrant.workflows.view import PageServer
from calibrant.workflows.viewed import Viewed
from collect.endpoint import Oracle
from collect.studies import write_study

pytestmark = pytest.mark.browser

CALIBRANT = Path(sys.executable).parent / "calibrant"
WAIT = 120
SHOWN = "return document.getElementById('progress')?.textContent || ''"
# Text, bar and counts at one moment: the page loads itself again between two questions.
SEEN = (
    "return [document.getElementById('progress')?.textContent || '',"
    " document.querySelector('#progress progress')?.value ?? null,"
    " [...document.querySelectorAll('main td')].map(t => t.textContent)]"
)


@contextmanager
def viewing(path):
    """Serve a path from a thread of its own; yields the address."""
    loop, server = asyncio.new_event_loop(), PageServer(Viewed(path))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    try:
        yield done(server.start())
    finally:
        done(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def test_a_run_is_followed_to_its_result(browser, tmp_path):
    with Oracle(latency_s=0.4) as oracle:
        folder = write_study(
            tmp_path / "study",
            oracle.url,
            draws=8,
            extra="concurrency = 4",
            tail='[budget]\nprices = "prices.toml"',
        )
        (folder / "prices.toml").write_text("[oracle]\nprompt = 500\ncompletion = 500\n")
        with viewing(folder) as address:
            # A process of its own, as it is when somebody types it.
            work = subprocess.Popen(
                [CALIBRANT, "run", str(folder), "--quiet", "--yes"], stdout=DEVNULL
            )
            browser.get(address)
            wait_for(browser, f"return ({SHOWN[7:]}).startsWith('Running:')", WAIT)
            seen = []
            while work.poll() is None:
                # Loading itself again, the page has no bar for a moment.
                said, share, counts = browser.execute_script(SEEN)
                if share is not None:
                    seen.append((said, share, counts))
                time.sleep(0.2)
            assert work.returncode == 0
            shares = [share for _, share, _ in seen]
            assert len(set(shares)) > 2
            assert shares == sorted(shares)
            assert all(" of at most " in said for said, _, _ in seen)
            spent = [float(re.search(r"\$([\d.]+) so far", said)[1]) for said, _, _ in seen]
            assert spent == sorted(spent)
            assert spent[-1] > spent[0]
            # The table fills up: more answers, purpose by purpose.
            assert len({tuple(counts) for _, _, counts in seen}) > 1
            wait_for(browser, "return !!document.querySelector('.badge')", WAIT)
            assert browser.execute_script("return document.querySelector('h1').textContent")
