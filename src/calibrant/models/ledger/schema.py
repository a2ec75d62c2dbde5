"""Tables of the ledger, the small rows that go in and out, and what is spent and set aside."""

from __future__ import annotations

import hashlib
import os
import socket
import sqlite3
from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, structs

from calibrant.core.places import statements

# What a ledger from before there were accounts has spent is the row of session 0.
OPENING = """
INSERT OR REPLACE INTO accounts
SELECT 0,
       (SELECT COUNT(*) FROM attempts)
       - (SELECT COUNT(*) FROM attempt_ends WHERE status = 'unsent'),
       TOTAL(prompt_tokens) + TOTAL(completion_tokens), TOTAL(cost), 0, 0.0
FROM draws
"""
_SUMS = "TOTAL(calls), TOTAL(tokens), TOTAL(money), TOTAL(reserved_tokens), TOTAL(reserved_money)"


class Caps(Struct, frozen=True):
    """Limits of a ledger, all its runs and processes together; None is no limit.

    They are held before a call is sent: it is charged with the most that it can cost until its
    real usage is known.
    """

    money: float | None = None
    tokens: int | None = None
    calls: int | None = None


class Refusal(NamedTuple):
    """Why a call may not be sent; `may_wait` where calls under way can still free the rest."""

    reason: str
    may_wait: bool


class Account(Struct):
    """Calls made, tokens and money spent, and the most that calls under way can still take."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    reserved_tokens: int = 0
    reserved_money: float = 0.0

    def __add__(self, other: Account) -> Account:
        mine, theirs = structs.astuple(self), structs.astuple(other)
        return Account(*(a + b for a, b in zip(mine, theirs, strict=True)))


class Accounts:
    """The account of one session, and those of the others as the ledger shows them.

    Examples
    --------
    >>> own = Accounts()
    >>> own.set_aside(7, tokens=100, money=0.5)
    >>> claim = LedgerClaim(1, first_draw=0, n=1, tokens=60, money=0.1, caps=Caps(tokens=150))
    >>> own.refusal(claim, Account(), others_may_free=False)
    ... # doctest: +ELLIPSIS
    Refusal(reason='the cap of 150 tokens could be exceeded: 100 used...', may_wait=True)
    >>> own.spend(7, tokens=20, money=0.1)
    >>> own.refusal(claim, Account(), others_may_free=False)
    """

    def __init__(self) -> None:
        self._account = Account()
        self._under_way: dict[int, tuple[int, float]] = {}
        self._before: tuple[Account, dict[int, tuple[int, float]]] | None = None

    # -- one transaction -------------------------------------------------------------------

    def _change(self) -> None:
        """Remember how it was, so that a transaction that fails leaves no trace."""
        if self._before is None:
            self._before = (structs.replace(self._account), dict(self._under_way))

    @property
    def changed(self) -> bool:
        """Whether there is something to write before the commit."""
        return self._before is not None

    def write(self, db: sqlite3.Connection, session: int) -> None:
        """Put the account into the transaction that is about to be committed."""
        marks = ",".join("?" * 6)
        row = (session, *structs.astuple(self._account))
        db.execute(f"INSERT OR REPLACE INTO accounts VALUES ({marks})", row)

    def settle(self) -> None:
        """Take what was written for true: it is committed."""
        self._before = None

    def undo(self) -> None:
        """Go back to what was true before the transaction."""
        if self._before is not None:
            self._account, self._under_way = self._before
            self._before = None

    # -- calls -----------------------------------------------------------------------------

    def set_aside(self, attempt: int, *, tokens: int, money: float) -> None:
        """Charge a call that is about to be sent with the most that it can cost."""
        self._change()
        self._account.calls += 1
        self._account.reserved_tokens += tokens
        self._account.reserved_money += money
        self._under_way[attempt] = (tokens, money)

    def spend(self, attempt: int, *, tokens: int, money: float) -> None:
        """Replace what was set aside for a call by what it has cost."""
        self._change()
        self._free(attempt)
        self._account.tokens += tokens
        self._account.money += money

    def give_back(self, attempt: int, *, unsent: bool) -> None:
        """Free what was set aside for a call without an answer; unsent it is no call at all."""
        if attempt not in self._under_way:
            return
        self._change()
        self._free(attempt)
        self._account.calls -= unsent

    def _free(self, attempt: int) -> None:
        tokens, money = self._under_way.pop(attempt, (0, 0.0))
        self._account.reserved_tokens -= tokens
        self._account.reserved_money -= money
        if not self._under_way:
            self._account.reserved_money = 0.0  # sums of fractions leave a rest

    # -- caps ------------------------------------------------------------------------------

    def refusal(
        self, claim: LedgerClaim, others: Account, *, others_may_free: bool
    ) -> Refusal | None:
        """Return why a call that can take so much may not be sent, None where it may."""
        caps, tokens, money = claim.caps or Caps(), claim.tokens, claim.money
        total = self._account + others
        if caps.calls is not None and total.calls >= caps.calls:
            return Refusal(f"the cap of {caps.calls:,} calls is reached", may_wait=False)
        may_wait = bool(self._under_way) or others_may_free
        selection, cost = total.tokens + total.reserved_tokens, total.money + total.reserved_money
        if caps.tokens is not None and selection + tokens > caps.tokens:
            parts = (f"{caps.tokens:,} tokens", f"{selection:,} used", "take", f"{tokens:,}")
        elif caps.money is not None and cost + money > caps.money:
            parts = (f"{caps.money:g}", f"{cost:.4g} spent", "cost", f"{money:.4g}")
        else:
            return None
        text = "the cap of {} could be exceeded: {} or reserved, the next call can {} {}"
        return Refusal(text.format(*parts), may_wait)


def other_accounts(
    db: sqlite3.Connection, session: int, live: Collection[int]
) -> tuple[Account, bool]:
    """Return the sum of all other accounts, and whether a live one has calls under way."""
    row = db.execute(f"SELECT {_SUMS} FROM accounts WHERE session_id <> ?", (session,)).fetchone()
    calls, tokens, money, reserved_tokens, reserved_money = row
    account = Account(int(calls), int(tokens), money, int(reserved_tokens), reserved_money)
    if not live or not reserved_tokens:
        return account, False
    marks = ",".join("?" * len(live))
    (waiting,) = db.execute(
        f"SELECT TOTAL(reserved_tokens) FROM accounts WHERE session_id IN ({marks})", tuple(live)
    ).fetchone()
    return account, waiting > 0


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


class LedgerClaim(NamedTuple):
    """Draws of a request that a call is about to be sent for, and the most that it can cost.

    With `caps` the call is refused where the ledger as a whole could exceed one of them.
    """

    request_id: int
    first_draw: int
    n: int
    tokens: int = 0
    money: float = 0.0
    caps: Caps | None = None


class StoredDraw(Struct, frozen=True):
    """A draw as the ledger holds it. `cost` is None where no price was known."""

    request_id: int
    draw: int
    payload: bytes
    cost: float | None


def connect(path: Path, mode: str = "ro", *, timeout: float = 60.0) -> sqlite3.Connection:
    """Open the file; transactions are begun and ended by hand."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        address, uri=True, isolation_level=None, timeout=timeout, check_same_thread=False
    )


def create_tables(db: sqlite3.Connection) -> None:
    """Write the tables of a ledger that are not there yet, inside a transaction.

    Ledgers of version 0.2 have no leases and accounts: what they have spent is counted up.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    names = {name for (name,) in db.execute(query)}
    later = {"leases", "accounts"} - names
    for statement in statements(TABLES):
        if not names or (statement.startswith("CREATE TABLE") and statement.split()[2] in later):
            db.execute(statement)
    if not names:
        db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
    elif "accounts" in later:
        db.execute(OPENING)


def is_running(pid: int) -> bool:
    """Return whether a process of this machine is alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@cache
def this_machine() -> str:
    """Name where a process id means something: the host, and the container within it."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()
