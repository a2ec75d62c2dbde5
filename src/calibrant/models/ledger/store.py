"""The ledger: every call and every draw, the only place that costs money to rebuild.

A draw is named by endpoint, resolved model, canonical request, purpose, draw index and schema
version. So a hit never stands for two draws, two runs share what they have in common, and a
larger number of draws adds only the missing ones.
"""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate, pairwise

from calibrant.models.ledger import schema
from calibrant.models.ledger.lookup import LedgerLookup, beat, end_sessions
from calibrant.models.ledger.repair import back_up, ledger_error

BACKUP_EVERY_S = 600.0


class Ledger(LedgerLookup):
    """An append-only SQLite file, safe with several processes on one study.

    Writing is done between `begin` and `commit`, so that many rows share one commit. The
    object belongs to one thread, except that `commit` may be called from another one while
    the first waits (waiting for the disk then does not hold up an event loop).

    Parameters
    ----------
    path
        The file; created where it does not exist.
    read_only
        Refuse to write and to create.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant.models.ledger import LedgerClaim, DrawRow, LedgerKey
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(pathlib.Path(folder.name) / "ledger.sqlite") as ledger:
    ...     key = LedgerKey("http://127.0.0.1/v1", "m", "answer", b"{}")
    ...     with ledger.writing():
    ...         request = ledger.register([key])[0]
    ...         [attempt] = ledger.claim_all([LedgerClaim(request, first_draw=0, n=1)])
    ...     with ledger.writing():
    ...         _ = ledger.keep_all([(attempt, [DrawRow(request, 0, attempt, b"Paris")])])
    ...     ledger.held([key])
    [{0}]
    >>> folder.cleanup()
    """

    def close(self) -> None:
        """End the session and close the file."""
        if self._session is not None:
            with self.writing():
                end_sessions(self._db, {self._session})
            self._session = None
            self.back_up()
        self._reader.close()
        self._db.close()

    def back_up(self) -> None:
        """Renew the copy beside the file; where that fails say so, the ledger itself is whole."""
        try:
            back_up(self.path)
        except (sqlite3.Error, OSError) as error:
            reason = ledger_error(error, self.path) if isinstance(error, sqlite3.Error) else error
            warnings.warn(f"the ledger has no new backup: {reason}", stacklevel=2)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with warnings.catch_warnings():
            if kind is not None:
                warnings.simplefilter("ignore")  # the error says more than a backup that failed
            self.close()

    # -- writing ---------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Begin, and commit unless an error leaves the block."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def begin(self, *, durable: bool = True) -> None:
        """Take the write lock.

        With `durable` the next commit outlives a power cut; without, it outlives the death of
        the process only, which is enough for the note that a call is being sent.
        """
        if durable is not self._durable:
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        self._db.execute("BEGIN IMMEDIATE")
        self._others = self._spent = None  # nobody else writes while we hold the lock: asked once

    def commit(self) -> None:
        """Make what was written since `begin` permanent."""
        if self._accounts.changed:
            self._accounts.write(self._db, self.session)
        self._db.execute("COMMIT")
        self._accounts.settle()
        self._session_is_new = False

    def checkpoint(self) -> None:
        """Fold the journal into the file as far as nobody is held up; any thread may call it.

        Every ten minutes the copy beside the file is renewed, too.
        """
        with closing(schema.connect(self.path, "rw")) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        if time.monotonic() - self._backed_up_at > BACKUP_EVERY_S:
            self._backed_up_at = time.monotonic()
            self.back_up()

    def rollback(self) -> None:
        """Forget what was written since `begin`."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._accounts.undo()
        if self._session_is_new:
            self._session = None

    def heartbeat(self) -> None:
        """Note that this session is at work; others then leave its claims alone."""
        beat(self._db, self.session)

    def register(self, keys: Sequence[schema.LedgerKey]) -> list[int]:
        """Return the ids of the requests, adding those that are new."""
        digests = [key.digest for key in keys]
        self._db.executemany(
            "INSERT INTO requests (digest, endpoint, model, purpose, body) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
            [(digest, *key) for digest, key in zip(digests, keys, strict=True)],
        )
        ids = self._ids(digests, self._db)  # the reader does not see them before the commit
        return [ids[digest] for digest in digests]

    def end_attempt(self, attempt: int, status: str, reason: str | None = None) -> None:
        """Note how a call ended: ``done``, ``transient``, ``permanent`` or ``abandoned``."""
        self._db.execute(
            "INSERT INTO attempt_ends VALUES (?, ?, ?, ?)", (attempt, time.time(), status, reason)
        )
        self._accounts.give_back(attempt, unsent=status == "unsent")

    def keep_all(self, answered: Sequence[tuple[int, Sequence[schema.DrawRow]]]) -> list[int]:
        """End attempts with their draws, and return how many draws of each were new.

        A draw that another process has committed meanwhile stays as it is; the late answer is
        kept in the file but never used.
        """
        now = time.time()
        self._db.executemany(
            "INSERT INTO attempt_ends VALUES (?, ?, 'done', NULL)",
            [(attempt, now) for attempt, _ in answered],
        )
        for attempt, rows in answered:
            self._accounts.spend(
                attempt,
                tokens=sum(row.prompt_tokens + row.completion_tokens for row in rows),
                money=sum(row.cost or 0.0 for row in rows),
            )
        return self._add([rows for _, rows in answered])

    def ask_again(self, request_id: int, draws: Sequence[int]) -> None:
        """Take these draws, whose answers are not in the file, for missing; see `keep_all`."""
        self._lost.setdefault(request_id, set()).update(draws)

    def _refill(self, rows: Sequence[schema.DrawRow]) -> None:
        """Write the answers of draws that are noted without one."""
        for row in rows:
            missing = self._lost.get(row.request_id, set())
            if row.draw in missing:
                self._db.execute(
                    "INSERT OR IGNORE INTO payloads SELECT id, ? FROM draws "
                    "WHERE request_id = ? AND draw = ?",
                    (row.payload, row.request_id, row.draw),
                )
                missing.discard(row.draw)

    def _add(self, groups: Sequence[Sequence[schema.DrawRow]]) -> list[int]:
        now = time.time()
        rows = [row for group in groups for row in group]
        ids = self._next_ids(len(rows))
        self._db.executemany(
            "INSERT INTO payloads VALUES (?, ?)",
            [(id_, row.payload) for id_, row in zip(ids, rows, strict=True)],
        )
        cursor = self._db.executemany(
            "INSERT INTO draws VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (request_id, draw) DO NOTHING",
            # All of a row but its payload.
            [(id_, *row[:3], *row[4:], now) for id_, row in zip(ids, rows, strict=True)],
        )
        if cursor.rowcount == len(rows):
            return [len(group) for group in groups]
        if self._lost:
            self._refill(rows)
        ends = accumulate(map(len, groups), initial=ids[0])
        query = "SELECT COUNT(*) FROM draws WHERE id >= ? AND id < ?"
        return [self._db.execute(query, places).fetchone()[0] for places in pairwise(ends)]

    def note(self, name: str, value: str) -> None:
        """Keep a small fact about an endpoint under a name, in place of what was there."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def add_failure(self, request_id: int, kind: str, message: str) -> None:
        """Set a request aside for good."""
        self._db.execute(
            "INSERT INTO failures VALUES (?, ?, ?, ?, ?)",
            (self._next_ids(1)[0], request_id, kind, message, time.time()),
        )
