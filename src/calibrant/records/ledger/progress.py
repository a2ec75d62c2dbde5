"""How far a run has come, read from its ledger while it is being written."""

from __future__ import annotations

import socket
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.records.ledger.leases import this_machine
from calibrant.records.ledger.schema import is_running

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
