"""The ledger of calls and draws: its file, what it holds, who is at work on it, and its repair."""

from calibrant.records.ledger.schema import (
    Attempt,
    Caps,
    Claim,
    DrawRow,
    Failure,
    LedgerKey,
    Refusal,
    StoredDraw,
)
from calibrant.records.ledger.store import Ledger

__all__ = [
    "Attempt",
    "Caps",
    "Claim",
    "DrawRow",
    "Failure",
    "Ledger",
    "LedgerKey",
    "Refusal",
    "StoredDraw",
]
