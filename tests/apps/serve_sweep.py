"""Every write of a server and of its labels fails once; what was acknowledged is then looked for.

Run as a module by `test_serve_faults`, with how the names of the files begin: it prints the points
that were swept, and what was lost.
"""

import asyncio
import contextlib
import io
import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from apps.faulty_files import KINDS, Faults
from calibrant.apps.serve import open_engine
from calibrant.apps.serving.replies import asked_of
from calibrant.apps.serving.watching import Watch
from calibrant.core.errors import CalibrantError
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.models.ledger import Ledger
from clients.server import Endpoint
from workflows.test_serve_promise import question, saved

ASKED = 4


def easily_broken():
    """Return a watch for which two wrong answers are enough."""
    return PromiseWatch(0.01, horizon=1, alpha=0.5)


class Acknowledged:
    """What a server and a labeller have said is done."""

    def __init__(self):
        self.rows, self.delivered, self.labels = [], 0, 0
        self.expired = self.shared = self.overstated = False


async def serve(folder, url, done, *, ask):
    """Serve, look at the labels, and note what was acknowledged."""
    engine = open_engine(folder / "policy.json", endpoints={"m": f"{url}/v1"}, keys={}, price={},
                         per_token=False, ledger=folder / "served.sqlite",
                         measured_by="perplexity")  # fmt: skip
    watch = Watch(engine, None, folder / "labels.sqlite", easily_broken)
    try:
        await engine.open()
        await watch.look()
        for number in range(ask):
            about = {"calibrant": {"question_id": str(number)}}
            with contextlib.suppress(CalibrantError, Exception):
                reply = await engine.ask(asked_of({**question(f"What is {number}?"), **about}))
                done.delivered += 1
                promised = reply.promise.startswith("at most")
                if promised:
                    done.rows.append(reply.id)
                # Nobody reads a promise that the labels have shown to be broken.
                done.overstated |= promised and done.expired
            if number == 1:
                label(folder, done)
                await watch.look()
                done.expired |= engine.standing.known.expired is not None
        return engine.standing.against
    finally:
        if watch.labelled.problem is None and engine.standing.known.expired is not None:
            done.shared = True
        with contextlib.suppress(CalibrantError, Exception):
            await engine.close()


def label(folder, done):
    """Label the first answer as wrong, as the page does."""
    store = None
    with contextlib.suppress(CalibrantError, Exception):
        rows = [json.loads(line) for line in (folder / "served.jsonl").read_text().splitlines()]
        store = LabelStore(folder / "labels.sqlite")
        keys = [ItemKey(row["question_id"], row["answer"]) for row in rows]
        store.add_wave(keys, [1.0] * len(keys), design="random", frame=len(keys))
        for item in store.take("ann"):
            store.label(item.id, "ann", "wrong")
            done.labels += 1
    # A page goes on after an error: the store must take the next label.
    with contextlib.suppress(CalibrantError, Exception):
        if store is not None:
            for item in store.take("ben"):
                store.label(item.id, "ben", "wrong")
                done.labels += 1
            store.close()


def lost(folder, url, done):
    """Return what is gone of that which was acknowledged, looked for by a new process."""
    found = []
    lines = (folder / "served.jsonl").read_bytes() if (folder / "served.jsonl").exists() else b""
    rows = []
    for line in lines.splitlines():
        try:
            rows.append(json.loads(line)["id"])
        except ValueError:
            found.append(f"a torn line: {line[:40]!r}")
    if set(done.rows) - set(rows):
        found.append(f"{len(set(done.rows) - set(rows))} promised answers have no row")
    if len(set(rows)) != len(rows):
        found.append("a row stands twice")
    if done.overstated:
        found.append("a promise was told that was known to be broken")
    with Ledger(folder / "served.sqlite") as ledger:
        if ledger.totals()["draws"] < len(done.rows):
            found.append(f"{ledger.totals()['draws']} draws of {len(done.rows)} promised answers")
    if done.labels:
        store = LabelStore(folder / "labels.sqlite", create=False)
        kept = sum(len(of) for of in store._labels.values()) if store.states() else 0
        store.close()
        if kept < done.labels:
            found.append(f"{kept} labels of {done.labels}")
    if done.shared:
        (folder / "labels.sqlite").unlink(missing_ok=True)
    if done.shared or done.labels:
        after = Acknowledged()
        against = asyncio.run(serve(folder, url, after, ask=1))
        if against is None or after.rows:
            found.append("a restart forgets that the promise is broken")
    return found


def point(faults, url, number, kind, file):
    """Let one write fail; return how many there were and what was lost."""
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    try:
        saved(folder / "policy.json")
        done = Acknowledged()
        faults.arm(folder / file, number, kind)
        with contextlib.suppress(CalibrantError, OSError):
            asyncio.run(serve(folder, url, done, ask=ASKED))
        seen = faults.seen
        faults.arm(None)
        try:
            return seen, lost(folder, url, done), done
        except Exception as error:  # noqa: BLE001 - a file that cannot be opened again is a loss
            return seen, [f"{type(error).__name__}: {error}"], done
    finally:
        faults.arm(None)
        shutil.rmtree(folder, ignore_errors=True)


def main(file: str) -> None:
    warnings.simplefilter("ignore")
    faults, swept, told = Faults(), 0, []
    with Endpoint() as endpoint, contextlib.redirect_stderr(io.StringIO()):
        writes, clean, done = point(faults, endpoint.url, 0, "full", file)
        assert not clean, clean
        assert (done.delivered, done.labels) == (ASKED, 2), vars(done)
        assert done.expired
        assert done.shared
        for kind in KINDS:
            for number in range(1, writes + 1):
                _, found, _ = point(faults, endpoint.url, number, kind, file)
                swept += 1
                told += [f"{kind} at {number}: {what}" for what in found]
                sys.stdout.write(f"{kind} {number}/{writes} {found}\n")
                sys.stdout.flush()
    sys.stdout.write(json.dumps({"writes": writes, "swept": swept, "lost": told}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
