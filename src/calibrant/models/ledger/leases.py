"""Who is at work on a ledger, told without a clock that two machines share."""

import os
import socket
import sqlite3
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from calibrant.models.ledger.schema import is_running

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
