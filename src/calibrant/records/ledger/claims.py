"""Claiming draws: what a process is about to ask for, so that no other buys it or its budget."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from calibrant.records.ledger.accounts import Account, Accounts, Refusal, other_accounts
from calibrant.records.ledger.leases import end_sessions, start_session
from calibrant.records.ledger.lookup import LedgerLookup
from calibrant.records.ledger.schema import Claim

_NOTHING: frozenset[int] = frozenset()


class LedgerClaims(LedgerLookup):
    """The half of a ledger that notes calls before they are sent; used inside `writing`."""

    _db: sqlite3.Connection
    _accounts: Accounts
    _others: set[int] | None
    _spent: tuple[Account, bool] | None
    _session_is_new: bool
    _counter: int

    @property
    def session(self) -> int:
        """Number of this process's session; the first call, inside `writing`, opens it."""
        if self._session is None:
            self._session = start_session(self._db)
            self._session_is_new = True
        return self._session

    def claim(self, request_id: int, *, first_draw: int, n: int) -> int | None:
        """Start an attempt unless one of its draws is held or being asked for by others."""
        attempt = self.claim_all([Claim(request_id, first_draw, n)])[0]
        assert not isinstance(attempt, Refusal)
        return attempt

    def claim_all(self, claims: Sequence[Claim]) -> list[int | Refusal | None]:
        """Start the attempts, as far as draws are free and caps are kept.

        None stands for a claim of which a draw is held or asked for by others, a Refusal for
        one that could exceed a cap. Done under the write lock, so that two processes never buy
        the same draw, nor spend the same rest of a cap.
        """
        if self._others is None:
            live, silent = self._leases.split(self._db)
            self._others = live - {self._session}
            end_sessions(self._db, silent - {self._session})
        taken = self._taken([claim.request_id for claim in claims])
        found: list[int | Refusal | None] = []
        started: list[tuple[int, Claim]] = []
        for claim in claims:
            draws = range(claim.first_draw, claim.first_draw + claim.n)
            if not taken.get(claim.request_id, _NOTHING).isdisjoint(draws):
                found.append(None)
                continue
            given = self._refusal(claim) or self._next_ids(1)[0]
            if isinstance(given, int):
                self._accounts.set_aside(given, tokens=claim.tokens, money=claim.money)
                started.append((given, claim))
            found.append(given)
        self._start(started)
        return found

    def _taken(self, ids: Sequence[int]) -> dict[int, set[int]]:
        """Return the draws of these requests that are held or asked for by others."""
        taken: dict[int, set[int]] = {}
        marks = ",".join("?" * len(ids))
        for request_id, draw in self._db.execute(
            f"SELECT request_id, draw FROM draws WHERE request_id IN ({marks})", ids
        ):
            if draw not in self._lost.get(request_id, _NOTHING):
                taken.setdefault(request_id, set()).add(draw)
        if self._others:
            for request_id, draws in self.claimed_by_id(ids).items():
                taken.setdefault(request_id, set()).update(draws)
        return taken

    def _refusal(self, claim: Claim) -> Refusal | None:
        if claim.caps is None:
            return None
        if self._spent is None:
            self._spent = other_accounts(self._db, self.session, self._others or ())
        others, may_free = self._spent
        return self._accounts.refusal(
            claim.caps,
            tokens=claim.tokens,
            money=claim.money,
            others=others,
            others_may_free=may_free,
        )

    def start_attempt(self, request_id: int, *, first_draw: int, n: int) -> int:
        """Note that a call is about to be sent, and return its id."""
        (attempt,) = self._next_ids(1)
        self._accounts.set_aside(attempt, tokens=0, money=0.0)
        self._start([(attempt, Claim(request_id, first_draw, n))])
        return attempt

    def _start(self, claims: Sequence[tuple[int, Claim]]) -> None:
        session, now = self.session, time.time()
        self._db.executemany(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)",
            [
                (id_, session, claim.request_id, claim.first_draw, claim.n, now)
                for id_, claim in claims
            ],
        )

    def _next_ids(self, count: int) -> range:
        # Ids are given here, not by SQLite, so that rows can be batched; the session in the
        # high bits keeps two processes apart.
        first = (self.session << 40) + self._counter + 1
        self._counter += count
        return range(first, first + count)
