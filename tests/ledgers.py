"""Calls of a ledger as tests look at them and start them: the program has its own ways."""

import time
from typing import NamedTuple

from calibrant.models.ledger.schema import LedgerClaim


class Attempt(NamedTuple):
    """A call that was sent, or about to be, and has no recorded end."""

    request_id: int
    purpose: str
    first_draw: int
    n: int
    live: bool


def in_flight(ledger):
    """Return the calls without a recorded end; `live` where their session is."""
    live, _ = ledger._leases.split(ledger._reader)
    rows = ledger._reader.execute(
        "SELECT r.id, r.purpose, a.first_draw, a.n, a.session_id "
        "FROM attempts a JOIN requests r ON r.id = a.request_id "
        "WHERE a.id NOT IN (SELECT attempt_id FROM attempt_ends) ORDER BY a.id"
    )
    return [Attempt(*row, session in live) for *row, session in rows]


def claim(ledger, request, *, first_draw, n):
    """Start a call unless one of its draws is held or being asked for by others."""
    return ledger.claim_all([LedgerClaim(request, first_draw, n)])[0]


def start_attempt(ledger, request, *, first_draw, n):
    """Note that a call is about to be sent, whoever else asks for its draws."""
    (attempt,) = ledger._next_ids(1)
    ledger._accounts.set_aside(attempt, tokens=0, money=0.0)
    row = (attempt, ledger.session, request, first_draw, n, time.time())
    ledger._db.execute("INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)", row)
    return attempt


def failures(ledger):
    """Return the requests that were set aside, with the last reason."""
    keys = dict(ledger.requests())
    return [(keys[id_], why) for id_, why in ledger.failures_by_id(list(keys)).items()]


def add_draws(ledger, rows):
    """Write draws without the end of their call, and return how many were new."""
    return ledger._add([rows])[0]
