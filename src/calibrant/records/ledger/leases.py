"""Who is at work on a ledger, told without a clock that two machines share, and how far."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from calibrant.records.ledger.schema import is_running

LIVE_FOR_S = 60.0
"""A session whose count stands still for so long, as seen by this process, is taken for dead."""


@cache
def this_machine() -> str:
    """Name where a process id means something: the host, and the container within it."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


class Leases:
    """What one process has seen of the heartbeats of the others.

    Examples
    --------
    >>> now = 0.0
    >>> leases = Leases(clock=lambda: now)
    >>> leases.is_live(3, beat=10), leases.is_live(4, beat=1)
    (True, True)
    >>> now = 61.0
    >>> leases.is_live(3, beat=11), leases.is_live(4, beat=1)
    (True, False)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[int, tuple[int, float]] = {}

    def is_live(self, session: int, beat: int) -> bool:
        """Note a heartbeat's count; return whether it has moved within the last minute."""
        now = self._clock()
        last, since = self._seen.get(session, (-1, now))
        if beat != last:
            self._seen[session] = (beat, now)
            return True
        return now - since < LIVE_FOR_S

    def split(self, db: sqlite3.Connection) -> tuple[set[int], set[int]]:
        """Return the sessions at work, and those on other machines that have fallen silent."""
        rows = db.execute(
            "SELECT s.id, s.pid, s.host, COALESCE(l.beat, 0) FROM sessions s "
            "LEFT JOIN leases l ON l.session_id = s.id WHERE s.ended_at IS NULL"
        ).fetchall()
        live, silent = set[int](), set[int]()
        for id_, pid, host, beat in rows:
            moved = self.is_live(id_, beat)
            here = host in (this_machine(), socket.gethostname())
            if here and not is_running(pid):
                continue
            (live if moved else silent).add(id_)
        return live, silent


def beat(db: sqlite3.Connection, session: int) -> None:
    """Count the heartbeat of a session up; one that was taken for dead is at work again."""
    db.execute(
        "INSERT INTO leases VALUES (?, 1) ON CONFLICT (session_id) DO UPDATE SET beat = beat + 1",
        (session,),
    )
    db.execute(
        "UPDATE sessions SET seen_at = ?, ended_at = NULL WHERE id = ?", (time.time(), session)
    )


def start_session(db: sqlite3.Connection) -> int:
    """Open a session for this process and return its number."""
    now = time.time()
    cursor = db.execute(
        "INSERT INTO sessions (pid, host, started_at, seen_at) VALUES (?, ?, ?, ?)",
        (os.getpid(), this_machine(), now, now),
    )
    assert cursor.lastrowid is not None
    beat(db, cursor.lastrowid)
    return cursor.lastrowid


def end_sessions(db: sqlite3.Connection, sessions: set[int]) -> None:
    """Note that these sessions are over, so that nobody waits for them again."""
    now = time.time()
    db.executemany(
        "UPDATE sessions SET ended_at = ? WHERE id = ?", [(now, id_) for id_ in sessions]
    )


_OPEN = "SELECT pid, host, seen_at FROM sessions WHERE ended_at IS NULL"
# A session writes its heartbeat more often than this while it runs.
_ALIVE_SECONDS = 90.0
_COUNTED = """
SELECT r.model, r.purpose, COUNT(*) AS draws, SUM(d.prompt_tokens) AS prompt_tokens,
       SUM(d.completion_tokens) AS completion_tokens, SUM(d.cost) AS cost,
       SUM(d.cost IS NULL) AS unpriced
FROM draws d JOIN requests r ON r.id = d.request_id GROUP BY r.model, r.purpose ORDER BY MIN(d.id)
"""


@dataclass(frozen=True, slots=True)
class LedgerProgress:
    """Answers so far by model and purpose, their cost where it is known, and whether it goes on."""

    asked: tuple[dict[str, Any], ...] = ()
    failures: int = 0
    running: bool = False

    @property
    def draws(self) -> int:
        """Return how many answers there are."""
        return sum(int(row["draws"]) for row in self.asked)

    @property
    def cost(self) -> float | None:
        """Return the cost so far, or None where a price is unknown."""
        if any(row["cost"] is None for row in self.asked):
            return None
        return sum(float(row["cost"]) for row in self.asked)


def ledger_progress(path: str | Path) -> LedgerProgress:
    """Read the progress; a ledger that is not there yet has none.

    Examples
    --------
    >>> ledger_progress("no/such/ledger.sqlite").draws
    0
    """
    if not Path(path).is_file():
        return LedgerProgress()
    try:
        db = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True, timeout=2)
    except sqlite3.OperationalError:
        return LedgerProgress()
    try:
        db.row_factory = sqlite3.Row
        rows = [dict(row) for row in db.execute(_COUNTED)]
        (failures,) = db.execute("SELECT COUNT(*) FROM failures").fetchone()
        sessions = db.execute(_OPEN).fetchall()
    except sqlite3.OperationalError:
        # The first session is still making its tables.
        return LedgerProgress()
    finally:
        db.close()
    for row in rows:
        # A price that is unknown for one draw is unknown for the sum.
        row["cost"] = None if row.pop("unpriced") else row["cost"]
    running = any(_is_at_work(*session) for session in sessions)
    return LedgerProgress(tuple(rows), int(failures), running)


def _is_at_work(pid: int, host: str, seen: float) -> bool:
    """Tell it from the process where that can be seen, else from the time of its last note."""
    if host in (this_machine(), socket.gethostname()):
        return is_running(pid)
    return time.time() - seen < _ALIVE_SECONDS
