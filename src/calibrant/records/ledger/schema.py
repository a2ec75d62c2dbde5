"""Tables of the ledger and the small rows that go in and out of them."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from calibrant.records.ledger.accounts import Caps

SCHEMA_VERSION = 1

# Payloads (answers with their log-probs, some kB each) have a table of their own: planning a
# rerun and adding up costs then read narrow rows only. Sessions, their heartbeats (leases) and what
# each has spent and set aside (accounts) change; everything else is append-only.
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL,
    started_at REAL NOT NULL, seen_at REAL NOT NULL, ended_at REAL);
CREATE TABLE requests (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, endpoint TEXT NOT NULL,
    model TEXT NOT NULL, purpose TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, request_id INTEGER NOT NULL,
    first_draw INTEGER NOT NULL, n INTEGER NOT NULL, started_at REAL NOT NULL);
CREATE INDEX attempts_by_request ON attempts (request_id);
CREATE TABLE attempt_ends (
    attempt_id INTEGER PRIMARY KEY, ended_at REAL NOT NULL, status TEXT NOT NULL,
    reason TEXT);
CREATE TABLE draws (
    id INTEGER PRIMARY KEY, request_id INTEGER NOT NULL, draw INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL, answered_by TEXT, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cost REAL, created_at REAL NOT NULL);
CREATE UNIQUE INDEX draws_by_request ON draws (request_id, draw);
CREATE TABLE payloads (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, request_id INTEGER NOT NULL, kind TEXT NOT NULL,
    message TEXT NOT NULL, created_at REAL NOT NULL);
CREATE INDEX failures_by_request ON failures (request_id);
CREATE TABLE leases (session_id INTEGER PRIMARY KEY, beat INTEGER NOT NULL);
CREATE TABLE accounts (
    session_id INTEGER PRIMARY KEY, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
    money REAL NOT NULL, reserved_tokens INTEGER NOT NULL, reserved_money REAL NOT NULL);
""" + "".join(
    f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;\n"
    for table in ("requests", "attempts", "attempt_ends", "draws", "payloads", "failures")
    for verb in ("UPDATE", "DELETE")
)


class LedgerKey(NamedTuple):
    """One request under one purpose; with a draw index it names one draw for ever.

    Parameters
    ----------
    endpoint
        Stable name of the endpoint, without secrets.
    model
        The model, resolved as far as that is possible before a call (a file: with its hash).
    purpose
        What the answer is for: the same words asked for two purposes are two sets of draws.
    body
        The canonical request: all that decides the distribution, without the number of draws.

    Examples
    --------
    >>> a = LedgerKey("http://127.0.0.1/v1", "m", "answer", b"{}")
    >>> a.digest == LedgerKey("http://127.0.0.1/v1", "m", "greedy", b"{}").digest
    False
    """

    endpoint: str
    model: str
    purpose: str
    body: bytes

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that stand for the key and the schema version."""
        head = _head(self.endpoint, self.model, self.purpose)
        return hashlib.blake2b(head + self.body, digest_size=16).digest()


@lru_cache(maxsize=256)
def _head(endpoint: str, model: str, purpose: str) -> bytes:
    return "\x1f".join((str(SCHEMA_VERSION), endpoint, model, purpose, "")).encode()


class DrawRow(NamedTuple):
    """A draw that is to be written."""

    request_id: int
    draw: int
    attempt_id: int
    payload: bytes
    answered_by: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


class Claim(NamedTuple):
    """Draws of a request that a call is about to be sent for, and the most that it can cost.

    With `caps` the call is refused where the ledger as a whole could exceed one of them.
    """

    request_id: int
    first_draw: int
    n: int
    tokens: int = 0
    money: float = 0.0
    caps: Caps | None = None


@dataclass(frozen=True, slots=True)
class StoredDraw:
    """A draw as the ledger holds it. `cost` is None where no price was known."""

    request_id: int
    draw: int
    payload: bytes
    answered_by: str | None
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that was set aside for good, and why."""

    request_id: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that was sent, or about to be, and has no recorded end.

    `live` tells whether the process that sent it is still at work; otherwise the process was
    killed, and the call may have been paid for without an answer.
    """

    id: int
    request_id: int
    purpose: str
    model: str
    first_draw: int
    n: int
    started_at: float
    live: bool


def is_running(pid: int) -> bool:
    """Return whether a process of this machine is alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def statements(script: str) -> Iterator[str]:
    """Split a script at the semicolons that end a statement (a trigger has inner ones)."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
