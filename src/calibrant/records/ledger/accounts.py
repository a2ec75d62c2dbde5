"""What is spent and set aside, kept in the ledger: caps hold over all processes of a study.

Every session has one row with what it has spent and what its calls under way can still cost. A
call is set aside for in the transaction that claims its draws, so that two processes never take
the same rest of a cap. What a killed process had under way stays set aside: it may be billed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

# What a ledger from before there were accounts has spent is the row of session 0.
_OPENING = """
INSERT OR REPLACE INTO accounts
SELECT 0,
       (SELECT COUNT(*) FROM attempts)
       - (SELECT COUNT(*) FROM attempt_ends WHERE status = 'unsent'),
       TOTAL(prompt_tokens) + TOTAL(completion_tokens), TOTAL(cost), 0, 0.0
FROM draws
"""
_SUMS = "TOTAL(calls), TOTAL(tokens), TOTAL(money), TOTAL(reserved_tokens), TOTAL(reserved_money)"


@dataclass(frozen=True, slots=True)
class Caps:
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


@dataclass(slots=True)
class Account:
    """Calls made, tokens and money spent, and the most that calls under way can still take."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    reserved_tokens: int = 0
    reserved_money: float = 0.0

    def __add__(self, other: Account) -> Account:
        mine, theirs = astuple(self), astuple(other)
        return Account(*(a + b for a, b in zip(mine, theirs, strict=True)))


class Accounts:
    """The account of one session, and those of the others as the ledger shows them.

    Examples
    --------
    >>> own = Accounts()
    >>> own.set_aside(7, tokens=100, money=0.5)
    >>> caps = Caps(tokens=150)
    >>> own.refusal(caps, tokens=60, money=0.1, others=Account(), others_may_free=False)
    ... # doctest: +ELLIPSIS
    Refusal(reason='the cap of 150 tokens could be exceeded: 100 used...', may_wait=True)
    >>> own.spend(7, tokens=20, money=0.1)
    >>> own.refusal(caps, tokens=60, money=0.1, others=Account(), others_may_free=False)
    """

    def __init__(self) -> None:
        self._account = Account()
        self._under_way: dict[int, tuple[int, float]] = {}
        self._before: tuple[Account, dict[int, tuple[int, float]]] | None = None

    # -- one transaction -------------------------------------------------------------------

    def _change(self) -> None:
        """Remember how it was, so that a transaction that fails leaves no trace."""
        if self._before is None:
            self._before = (replace(self._account), dict(self._under_way))

    @property
    def changed(self) -> bool:
        """Whether there is something to write before the commit."""
        return self._before is not None

    def write(self, db: sqlite3.Connection, session: int) -> None:
        """Put the account into the transaction that is about to be committed."""
        marks = ",".join("?" * 6)
        row = (session, *astuple(self._account))
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
        self, caps: Caps, *, tokens: int, money: float, others: Account, others_may_free: bool
    ) -> Refusal | None:
        """Return why a call that can take so much may not be sent, None where it may."""
        total = self._account + others
        if caps.calls is not None and total.calls >= caps.calls:
            return Refusal(f"the cap of {caps.calls:,} calls is reached", may_wait=False)
        may_wait = bool(self._under_way) or others_may_free
        taken, spent = total.tokens + total.reserved_tokens, total.money + total.reserved_money
        if caps.tokens is not None and taken + tokens > caps.tokens:
            told = (f"{caps.tokens:,} tokens", f"{taken:,} used", "take", f"{tokens:,}")
        elif caps.money is not None and spent + money > caps.money:
            told = (f"{caps.money:g}", f"{spent:.4g} spent", "cost", f"{money:.4g}")
        else:
            return None
        text = "the cap of {} could be exceeded: {} or reserved, the next call can {} {}"
        return Refusal(text.format(*told), may_wait)


def open_accounts(db: sqlite3.Connection) -> None:
    """Write down what a ledger without accounts has spent; inside a transaction."""
    db.execute(_OPENING)


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
