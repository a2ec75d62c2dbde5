"""The ledger of calls and draws: its file, what it holds, who is at work on it, and its repair."""

from calibrant.models.ledger.schema import Caps as Caps
from calibrant.models.ledger.schema import DrawRow as DrawRow
from calibrant.models.ledger.schema import LedgerClaim as LedgerClaim
from calibrant.models.ledger.schema import LedgerKey as LedgerKey
from calibrant.models.ledger.schema import Refusal as Refusal
from calibrant.models.ledger.schema import StoredDraw as StoredDraw
from calibrant.models.ledger.store import Ledger as Ledger
