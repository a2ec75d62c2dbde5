"""A process that is killed loses nothing and buys nothing twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from calibrant.data import Study
from calibrant.models.ledger import Ledger
from calibrant.verbs.run import run
from collect.endpoint import Oracle
from collect.studies import write_study
from ledgers import in_flight
from support import MEASURED

KILLS = 20
CONCURRENCY = 3


def tables(folder):
    study = Study(folder)
    return {
        name: study.read(name).drop(*MEASURED, strict=False)
        for name in ("questions", "draws", "semantics", "scores")
    }


@pytest.fixture
def killable():
    """A process that runs studies in children."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("killable.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.stdin.close()
    process.wait(20)
    process.stdout.close()


def tell(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_killed_twenty_times(tmp_path, killable):
    settings = f"concurrency = {CONCURRENCY}"
    with Oracle(latency_s=0.01) as oracle:
        calm = write_study(tmp_path / "calm", oracle.url, extra=settings)
        run(calm)
        undisturbed = len(oracle.calls)
        oracle.calls.clear()
        rough = write_study(tmp_path / "rough", oracle.url, extra=settings)
        for kill in range(1, KILLS + 1):
            child = tell(killable, rough)
            goal = undisturbed * kill // (KILLS + 2)
            while len(oracle.calls) < goal + 1:
                time.sleep(0.002)
            os.kill(child, signal.SIGKILL)
            assert tell(killable, "wait") == signal.SIGKILL
        before = Study(rough)
        assert not before.has("draws"), "the study must not have been finished before"
        run(rough)
        sent = len(oracle.calls)

    for name, frame in tables(calm).items():
        assert_frame_equal(tables(rough)[name], frame)
    keys = before.read("draws").select(pl.struct("question_id", "purpose", "draw").is_duplicated())
    assert not keys.to_series().any()
    with Ledger(before.ledger_path, read_only=True) as ledger:
        cut_off = in_flight(ledger)
    # Only what was under way at the moment of a kill is sent again, and the ledger shows it.
    assert 0 <= sent - undisturbed <= len(cut_off) <= KILLS * CONCURRENCY
    assert not any(attempt.live for attempt in cut_off)
