"""Caps on money, tokens and calls, held before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.clients.asks import Caps, Price
from calibrant.clients.protocol import Request, Usage
from calibrant.core.errors import BudgetError

__all__ = [
    "Budget",
    "Reservation",
    "completion_tokens_estimate",
    "prompt_tokens_estimate",
]

BYTES_PER_TOKEN = 3
TOKENS_PER_MESSAGE = 8


def prompt_tokens_estimate(request: Request) -> int:
    """Return about how many tokens the messages have, rather too many than too few.

    Examples
    --------
    >>> from calibrant.clients.protocol import Message
    >>> prompt_tokens_estimate(Request("m", (Message("user", "What is the capital of Peru?"),)))
    18
    """
    return sum(
        TOKENS_PER_MESSAGE + -(-len(message.content.encode()) // BYTES_PER_TOKEN)
        for message in request.messages
    )


def completion_tokens_estimate(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few.

    Examples
    --------
    >>> completion_tokens_estimate("Paris"), completion_tokens_estimate("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@dataclass(slots=True)
class Reservation:
    """The most that a call can still cost."""

    tokens: int
    money: float


class Budget:
    """Keeps what is spent and reserved under the caps of a run."""

    def __init__(self, caps: Caps, prices: Mapping[str, Price]) -> None:
        self.caps = caps
        self.prices = prices
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.money = 0.0
        self._reserved_tokens = 0
        self._reserved_money = 0.0
        self._changed = asyncio.Event()

    def price(self, model: str) -> Price | None:
        """Return the price; it must be known where money is capped."""
        price = self.prices.get(model)
        if price is None and self.caps.money is not None:
            raise BudgetError(
                f"money is capped but there is no price for the model {model!r}; nothing was sent"
                "\n  -> add it to the price table"
            )
        return price

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return what a draw cost, None where no price is known."""
        price = self.prices.get(model)
        return None if price is None else price.cost(usage.prompt_tokens, usage.completion_tokens)

    async def reserve(self, request: Request, n: int) -> Reservation:
        """Set aside the most that a call with n draws can cost, or raise BudgetError.

        Waits while calls under way, which seldom use all that is reserved for them, may still
        free what is missing.
        """
        prompt, completion = prompt_tokens_estimate(request), n * request.max_tokens
        price = self.price(request.model)
        wanted = Reservation(
            prompt + completion, 0.0 if price is None else price.cost(prompt, completion)
        )
        while (reason := self._excess(wanted)) is not None:
            if not self._reserved_tokens:
                raise BudgetError(f"{reason}; the call was not sent")
            self._changed.clear()
            await self._changed.wait()
        self._reserved_tokens += wanted.tokens
        self._reserved_money += wanted.money
        return wanted

    def _excess(self, wanted: Reservation) -> str | None:
        tokens = self.prompt_tokens + self.completion_tokens + self._reserved_tokens
        if self.caps.tokens is not None and tokens + wanted.tokens > self.caps.tokens:
            return (
                f"the cap of {self.caps.tokens:,} tokens could be exceeded: {tokens:,} used or "
                f"reserved, the next call can take {wanted.tokens:,}"
            )
        money = self.money + self._reserved_money
        if self.caps.money is not None and money + wanted.money > self.caps.money:
            return (
                f"the cap of {self.caps.money:g} could be exceeded: {money:.4g} spent or "
                f"reserved, the next call can cost {wanted.money:.4g}"
            )
        return self._too_many_calls()

    def _too_many_calls(self) -> str | None:
        if self.caps.calls is not None and self.calls >= self.caps.calls:
            return f"the cap of {self.caps.calls:,} calls is reached"
        return None

    def start_call(self) -> None:
        """Count a call that is about to be sent, or raise BudgetError."""
        reason = self._too_many_calls()
        if reason is not None:
            raise BudgetError(f"{reason}; the call was not sent")
        self.calls += 1

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Note what a draw has really cost."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.money += cost or 0.0

    def release(self, reservation: Reservation) -> None:
        """Give back what was reserved for a call that has ended."""
        self._reserved_tokens -= reservation.tokens
        self._reserved_money -= reservation.money
        self._changed.set()
