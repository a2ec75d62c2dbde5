"""What calls can cost and have cost; the ledger keeps it under the caps."""

import asyncio
from collections.abc import Mapping

from calibrant.core.errors import BudgetError
from calibrant.models.asks import Price
from calibrant.models.dispatch.limit import happens
from calibrant.models.ledger import Caps, Refusal
from calibrant.models.protocol import Message, Request, Usage

BYTES_PER_TOKEN = 3
TOKENS_PER_MESSAGE = 8
TOKENS_PER_IMAGE = 1_700
LOOK_AGAIN_S = 0.25


def prompt_tokens_estimate(request: Request) -> int:
    """Return about how many tokens the messages have, rather too many than too few.

    Examples
    --------
    >>> from calibrant.models.protocol import Message
    >>> prompt_tokens_estimate(Request("m", (Message("user", "What is the capital of Peru?"),)))
    18
    """
    return sum(map(_message_tokens, request.messages))


def _message_tokens(message: Message) -> int:
    content, pictures = message.content, 0
    if not isinstance(content, str):
        pictures = sum("text" not in part for part in content)
        content = message.text
    words = -(-len(content.encode()) // BYTES_PER_TOKEN)
    return TOKENS_PER_MESSAGE + TOKENS_PER_IMAGE * pictures + words


def completion_tokens_estimate(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few.

    Examples
    --------
    >>> completion_tokens_estimate("Paris"), completion_tokens_estimate("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


class Budget:
    """Prices the calls of a run and counts what they have cost; the ledger holds the caps."""

    def __init__(self, caps: Caps, prices: Mapping[str, Price]) -> None:
        self.caps = None if caps == Caps() else caps
        self.prices = prices
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.money = 0.0
        self.changed = asyncio.Event()
        """Set whenever a call has ended: it may have freed what another one waits for."""

    def most(self, request: Request, n: int) -> tuple[int, float]:
        """Return the tokens and the money that a call with n draws can take at most."""
        prompt, completion = prompt_tokens_estimate(request), n * request.most_tokens
        price = self.price(request.model)
        return prompt + completion, 0.0 if price is None else price.cost(prompt, completion)

    def price(self, model: str) -> Price | None:
        """Return the price; it must be known where money is capped."""
        price = self.prices.get(model)
        if price is None and self.caps is not None and self.caps.money is not None:
            raise BudgetError(
                f"money is capped but there is no price for the model {model!r}; nothing was sent"
                "\n  -> add it to the price table"
            )
        return price

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return what a draw cost, None where no price is known."""
        price = self.prices.get(model)
        return None if price is None else price.cost(usage.prompt_tokens, usage.completion_tokens)

    async def wait_for_rest(self, refusal: Refusal) -> None:
        """Wait until a call has ended somewhere, or raise BudgetError where that cannot help."""
        if not refusal.may_wait:
            raise BudgetError(f"{refusal.reason}; the call was not sent")
        self.changed.clear()
        await happens(self.changed, within_s=LOOK_AGAIN_S)  # other processes cannot set the event

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Note what a draw has really cost."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.money += cost or 0.0
