"""Reading a ledger, claiming draws that are about to be asked for, and who is at work on it."""

import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError, SchemaError
from calibrant.models.ledger import schema
from calibrant.models.ledger.repair import backup_path, damaged_ledger, ledger_error
from calibrant.models.ledger.schema import is_running, this_machine

LIVE_FOR_S = 60.0
"""A session whose count stands still for so long, as seen by this process, is taken for dead."""


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


def end_sessions(db: sqlite3.Connection, sessions: set[int]) -> None:
    """Note that these sessions are over, so that nobody waits for them again."""
    now = time.time()
    db.executemany(
        "UPDATE sessions SET ended_at = ? WHERE id = ?", [(now, id_) for id_ in sessions]
    )


CHECKPOINT_PAGES = 16_000
"""Pages of the journal at which a commit folds it into the file; `checkpoint` comes before."""
BATCH = 500
"""Keys per SQL statement; bounds both memory and the number of statement variables."""


_NOTHING: frozenset[int] = frozenset()


class LedgerLookup:
    """A ledger as it is read: it sees what is committed and never waits for a writer; claims."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.is_file():
            raise SchemaError("there is no ledger", source=str(self.path))
        self._db = self._connect()
        # Readers see what is committed, and never wait for a commit that another thread makes.
        self._reader = self._db if read_only else schema.connect(self.path)
        # Keys are digests, so looking them up jumps about in the index: of a million requests
        # it fits into this many kB. The cache grows only as far as it is used.
        self._reader.execute("PRAGMA cache_size=-65536")
        self._session: int | None = None
        self._session_is_new = False
        self._counter = 0
        self._leases = Leases()
        self._accounts = schema.Accounts()
        self._others: set[int] | None = None
        self._spent: tuple[schema.Account, bool] | None = None
        self._durable: bool | None = None
        self._lost: dict[int, set[int]] = {}
        self._backed_up_at = time.monotonic()

    def _connect(self) -> sqlite3.Connection:
        if (
            self.path.is_file()
            and not self.path.stat().st_size
            and backup_path(self.path).is_file()
        ):
            # Filled anew without a word, everything would be paid for again.
            raise damaged_ledger("the ledger is empty, and its backup is not", self.path)
        db = schema.connect(self.path, "ro" if self.read_only else "rwc")
        try:
            self._prepare(db)
        except sqlite3.DatabaseError as error:
            db.close()
            refusal = ledger_error(error, self.path)
            if isinstance(refusal, InputError):
                raise refusal from None
            raise SchemaError(f"not a ledger: {error}", source=str(self.path)) from None
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        if not self.read_only:
            tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if tables and ("meta",) not in tables:
                # Nothing is written into another program's database.
                raise SchemaError("not a ledger: it has other tables", source=str(self.path))
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
            db.execute("BEGIN IMMEDIATE")
            schema.create_tables(db)
            db.execute("COMMIT")
        row = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        version = row[0] if row else None
        if version != str(schema.SCHEMA_VERSION):
            raise SchemaError(
                f"this version reads ledgers of schema {schema.SCHEMA_VERSION}, got {version!r}",
                source=str(self.path),
                hint="open it with the version of calibrant that wrote it, or move it away to "
                "begin a new one",
            )

    # -- reading ---------------------------------------------------------------------------

    def find(self, keys: Sequence[schema.LedgerKey]) -> list[int | None]:
        """Return the ids of requests that the ledger knows, None for the others."""
        digests = [key.digest for key in keys]
        ids = self._ids(digests)
        return [ids.get(digest) for digest in digests]

    def notes(self, beginning: str) -> dict[str, str]:
        """Return the facts whose names begin so, by the rest of their names."""
        rows = self._reader.execute(
            "SELECT substr(name, ?), value FROM meta WHERE substr(name, 1, ?) = ?",
            (len(beginning) + 1, len(beginning), beginning),
        )
        return dict(rows.fetchall())

    def held(self, keys: Sequence[schema.LedgerKey]) -> list[set[int]]:
        """Return, for each key, the indices of the draws that are committed."""
        ids = self.find(keys)
        draws = self.held_by_id([id_ for id_ in ids if id_ is not None])
        return [draws.get(id_, set()) if id_ is not None else set() for id_ in ids]

    def held_by_id(
        self, request_ids: Sequence[int], db: sqlite3.Connection | None = None
    ) -> dict[int, set[int]]:
        """Return the committed draw indices of each request that has any."""
        draws: dict[int, set[int]] = {}
        query = "SELECT request_id, draw FROM draws WHERE request_id IN ({})"
        for request_id, draw in self._in_batches(query, request_ids, db):
            draws.setdefault(request_id, set()).add(draw)
        for request_id in self._lost.keys() & draws.keys():
            draws[request_id] -= self._lost[request_id]
        return draws

    def without_answer(self, request_id: int, *, below: int) -> list[int]:
        """Return the draws of a request that are noted but whose answer is not in the file."""
        rows = self._reader.execute(
            "SELECT d.draw FROM draws d LEFT JOIN payloads p ON p.id = d.id "
            "WHERE d.request_id = ? AND d.draw < ? AND p.id IS NULL ORDER BY d.draw",
            (request_id, below),
        )
        return [draw for (draw,) in rows]

    def claimed_by_id(self, request_ids: Sequence[int]) -> dict[int, set[int]]:
        """Return the draw indices that other live sessions are asking for right now."""
        live = self._other_sessions()
        if not live:
            return {}
        claimed: dict[int, set[int]] = {}
        query = (
            "SELECT a.request_id, a.first_draw, a.n, a.session_id FROM attempts a "
            "LEFT JOIN attempt_ends e ON e.attempt_id = a.id "
            "WHERE a.request_id IN ({}) AND e.attempt_id IS NULL"
        )
        for request_id, first, n, session in self._in_batches(query, request_ids):
            if session in live:
                claimed.setdefault(request_id, set()).update(range(first, first + n))
        return claimed

    def failures_by_id(self, request_ids: Sequence[int]) -> dict[int, str]:
        """Return, of each request that was set aside for good, why it was so last."""
        query = "SELECT request_id, message FROM failures WHERE request_id IN ({}) ORDER BY id"
        return dict(self._in_batches(query, request_ids))

    def draws(
        self, request_ids: Sequence[int], *, below: int | None = None
    ) -> Iterator[schema.StoredDraw]:
        """Yield the draws of these requests with their payload, by request and draw index.

        Only indices under `below` are read where it is given.
        """
        limit = "" if below is None else f" AND d.draw < {int(below)}"
        query = (
            "SELECT d.request_id, d.draw, p.body, d.cost FROM draws d "
            "JOIN payloads p ON p.id = d.id "
            f"WHERE d.request_id IN ({{}}){limit} ORDER BY d.request_id, d.draw"
        )
        for row in self._in_batches(query, request_ids):
            yield schema.StoredDraw(*row)

    def requests(self) -> Iterator[tuple[int, schema.LedgerKey]]:
        """Yield every request that was ever registered, with its id."""
        query = "SELECT id, endpoint, model, purpose, body FROM requests ORDER BY id"
        for row in self._reader.execute(query):
            yield row[0], schema.LedgerKey(*row[1:])

    def draws_of_purpose(self, purpose: str) -> int:
        """Return how many draws were made for a purpose."""
        row = self._reader.execute(
            "SELECT COUNT(*) FROM draws WHERE request_id IN "
            "(SELECT id FROM requests WHERE purpose = ?)",
            (purpose,),
        ).fetchone()
        return int(row[0])

    def totals(self) -> dict[str, float]:
        """Return calls, draws, tokens and known cost of all that is in the ledger."""
        draws, prompt, completion, cost, unpriced = self._reader.execute(
            "SELECT COUNT(*), TOTAL(prompt_tokens), TOTAL(completion_tokens), TOTAL(cost), "
            "COUNT(*) - COUNT(cost) FROM draws"
        ).fetchone()
        (calls,) = self._reader.execute(
            "SELECT (SELECT COUNT(*) FROM attempts) "
            "- (SELECT COUNT(*) FROM attempt_ends WHERE status = 'unsent')"
        ).fetchone()
        return {
            "calls": calls,
            "draws": draws,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cost": cost,
            "draws_without_price": unpriced,
        }

    def complete(self, digests: Sequence[bytes], draws: int) -> set[bytes]:
        """Return which of the keys, given by their digests, have draws 0 to ``draws - 1``.

        One row per request instead of one per draw: this is what planning a rerun over a
        million draws is made of.
        """
        query = (
            "SELECT r.digest FROM requests r JOIN draws d ON d.request_id = r.id "
            f"AND d.draw < {int(draws)} WHERE r.digest IN ({{}}) "
            f"GROUP BY r.id HAVING COUNT(*) = {int(draws)}"
        )
        return {digest for (digest,) in self._in_batches(query, digests)}

    def _ids(
        self, digests: Sequence[bytes], db: sqlite3.Connection | None = None
    ) -> dict[bytes, int]:
        query = "SELECT digest, id FROM requests WHERE digest IN ({})"
        return dict(self._in_batches(query, digests, db))

    def _in_batches(
        self, query: str, values: Sequence[Any], db: sqlite3.Connection | None = None
    ) -> Iterator[Any]:
        for start in range(0, len(values), BATCH):
            batch = values[start : start + BATCH]
            marks = ",".join("?" * len(batch))
            try:
                yield from (db or self._reader).execute(query.format(marks), batch)
            except sqlite3.Error as error:
                raise ledger_error(error, self.path) from error

    def _other_sessions(self) -> set[int]:
        return self._leases.split(self._reader)[0] - {self._session}

    # -- calls that are about to be sent, inside `writing` ---------------------------------

    @property
    def session(self) -> int:
        """Number of this process's session; the first call, inside `writing`, opens it."""
        if self._session is None:
            now = time.time()
            cursor = self._db.execute(
                "INSERT INTO sessions (pid, host, started_at, seen_at) VALUES (?, ?, ?, ?)",
                (os.getpid(), this_machine(), now, now),
            )
            assert cursor.lastrowid is not None
            self._session, self._session_is_new = cursor.lastrowid, True
            beat(self._db, self._session)
        return self._session

    def claim_all(self, claims: Sequence[schema.LedgerClaim]) -> list[int | schema.Refusal | None]:
        """Start the attempts, as far as draws are free and caps are kept.

        None stands for a claim of which a draw is held or asked for by others, a Refusal for
        one that could exceed a cap. Done under the write lock, so that two processes never buy
        the same draw, nor spend the same rest of a cap.
        """
        if self._others is None:
            live, silent = self._leases.split(self._db)
            self._others = live - {self._session}
            end_sessions(self._db, silent - {self._session})
        ids = [claim.request_id for claim in claims]
        selection = self.held_by_id(ids, self._db)
        for request_id, request in (self.claimed_by_id(ids) if self._others else {}).items():
            selection.setdefault(request_id, set()).update(request)
        answers: list[int | schema.Refusal | None] = []
        started: list[tuple[float, ...]] = []
        for claim in claims:
            draws = range(claim.first_draw, claim.first_draw + claim.n)
            if not selection.get(claim.request_id, _NOTHING).isdisjoint(draws):
                answers.append(None)
                continue
            answer = self._refusal(claim) or self._next_ids(1)[0]
            if isinstance(answer, int):
                self._accounts.set_aside(answer, tokens=claim.tokens, money=claim.money)
                started.append((answer, self.session, *claim[:3], time.time()))
            answers.append(answer)
        self._db.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)", started)
        return answers

    def _refusal(self, claim: schema.LedgerClaim) -> schema.Refusal | None:
        if claim.caps is None:
            return None
        if self._spent is None:
            self._spent = schema.other_accounts(self._db, self.session, self._others or ())
        peers, may_free = self._spent
        return self._accounts.refusal(claim, peers, others_may_free=may_free)

    def _next_ids(self, count: int) -> range:
        # Ids are given here, not by SQLite, so that rows can be batched; the session in the
        # high bits keeps two processes apart.
        first = (self.session << 40) + self._counter + 1
        self._counter += count
        return range(first, first + count)
