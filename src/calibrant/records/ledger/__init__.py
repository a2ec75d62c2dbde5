"""The ledger of calls and draws: its file, what it holds, who is at work on it, and its repair."""

from calibrant.records.ledger.schema import Caps as Caps
from calibrant.records.ledger.schema import Claim as Claim
from calibrant.records.ledger.schema import DrawRow as DrawRow
from calibrant.records.ledger.schema import LedgerKey as LedgerKey
from calibrant.records.ledger.schema import Refusal as Refusal
from calibrant.records.ledger.schema import StoredDraw as StoredDraw
from calibrant.records.ledger.store import Ledger as Ledger
