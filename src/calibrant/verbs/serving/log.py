"""What was asked, what was said and what it cost: one row per question and one per call."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from pathlib import Path
from typing import Any

import orjson

from calibrant.records.foreign_files import refuse_foreign_database

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, time REAL NOT NULL, status INTEGER NOT NULL,
    confidence REAL, tokens INTEGER, cost REAL NOT NULL, seconds REAL NOT NULL, response BLOB
);
CREATE TABLE IF NOT EXISTS questions (
    id INTEGER PRIMARY KEY, question TEXT NOT NULL, time REAL NOT NULL, decision TEXT NOT NULL,
    answered_by TEXT, asked TEXT NOT NULL, risk REAL, cost REAL NOT NULL, seconds REAL NOT NULL
);
"""


def call_key(model: str, body: dict[str, Any]) -> str:
    """Return what makes two calls the same: the model and everything that was sent."""
    sent = orjson.dumps([model, body], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(sent, digest_size=16).hexdigest()


class ServedLog:
    """The ledger of a front; a call that was answered is never paid for twice."""

    def __init__(self, path: str | Path) -> None:
        refuse_foreign_database(Path(path), "calls", "ledger of a front")
        self._db = sqlite3.connect(str(path), isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_TABLES)

    def answered(self, key: str) -> dict[str, Any] | None:
        """Return the response of a call that was made before."""
        row = self._db.execute(
            "SELECT response FROM calls WHERE key = ? AND status = 200", (key,)
        ).fetchone()
        return None if row is None else orjson.loads(row[0])

    def add_call(
        self,
        key: str,
        model: str,
        status: int,
        confidence: float | None,
        tokens: int | None,
        cost: float,
        seconds: float,
        response: dict[str, Any] | None,
    ) -> None:
        """Keep a call."""
        self._db.execute(
            "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key, model, time.time(), status, confidence, tokens, cost, seconds,
             None if response is None else orjson.dumps(response)),
        )  # fmt: skip

    def add_question(
        self,
        question: str,
        decision: str,
        answered_by: str | None,
        asked: list[str],
        risk: float | None,
        cost: float,
        seconds: float,
    ) -> None:
        """Keep what was done with a question."""
        self._db.execute(
            "INSERT INTO questions (question, time, decision, answered_by, asked, risk, cost, "
            "seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (question, time.time(), decision, answered_by, ",".join(asked), risk, cost, seconds),
        )

    def totals(self) -> dict[str, Any]:
        """Return questions and cost so far, with questions by the model that answered."""
        count, cost = self._db.execute(
            "SELECT COUNT(*), COALESCE(SUM(cost), 0) FROM questions"
        ).fetchone()
        by_model = dict(
            self._db.execute(
                "SELECT COALESCE(answered_by, 'nobody'), COUNT(*) FROM questions "
                "GROUP BY 1 ORDER BY 1"
            ).fetchall()
        )
        return {"questions": count, "cost": cost, "answered_by": by_model}

    def close(self) -> None:
        """Close the file."""
        self._db.close()
