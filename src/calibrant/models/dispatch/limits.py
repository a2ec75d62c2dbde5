"""Limits of calls: how many at a time an endpoint takes, and what they may cost."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping

from msgspec import Struct

from calibrant.core.errors import BudgetError
from calibrant.core.event_loop import happens
from calibrant.models.asks import Price
from calibrant.models.ledger import Caps, Refusal
from calibrant.models.protocol import Request, Usage

CUT = 0.5
QUIET_S = 1.0
"""Refusals within this time belong to the same overload and cut once."""


class AdaptiveLimit:
    """A limit that grows while all is well and halves when the endpoint is overloaded.

    It starts low, gains one place with every answer until the first overload, and one place
    per round of answers after it.

    Parameters
    ----------
    most
        The highest limit.
    start
        The first limit.

    Examples
    --------
    >>> limit = AdaptiveLimit(64, start=8)
    >>> for _ in range(4):
    ...     limit.succeeded()
    >>> limit.allowed
    12
    >>> limit.overloaded(now=10.0)
    >>> limit.overloaded(now=10.1)
    >>> limit.allowed
    6
    """

    def __init__(self, most: int, *, start: int = 8) -> None:
        self._most = most
        self._limit = float(min(most, start))
        self._growing = True
        self._last_cut = float("-inf")
        self._in_use = 0
        self._paused_until = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._listeners: list[Callable[[], None]] = []

    @property
    def allowed(self) -> int:
        """Calls allowed at the moment."""
        return int(self._limit)

    def succeeded(self) -> None:
        """Note an answer."""
        step = 1.0 if self._growing else 1.0 / self._limit
        self._limit = min(float(self._most), self._limit + step)

    def overloaded(self, *, now: float, retry_after: float | None = None) -> None:
        """Note a refusal; nobody starts a call before the time that the endpoint asks for."""
        self._growing = False
        if now - self._last_cut > QUIET_S:
            self._limit = max(1.0, self._limit * CUT)
            self._last_cut = now
        if retry_after is not None:
            self._paused_until = max(self._paused_until, now + retry_after)

    def paused_for(self) -> float:
        """Return the seconds until the time that the endpoint asked for; at most 0 without."""
        return self._paused_until - asyncio.get_running_loop().time()

    @property
    def free(self) -> int:
        """Places that a call could take now."""
        if self._waiting or self.paused_for() > 0:
            return 0
        return max(0, int(self._limit) - self._in_use)

    def try_acquire(self) -> bool:
        """Take a place if one is free and nobody has to wait."""
        if not self.free:
            return False
        self._in_use += 1
        return True

    async def acquire(self) -> None:
        """Wait for a place."""
        if self._waiting or self._in_use >= int(self._limit):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.release()  # it was handed over at this very moment
                elif place in self._waiting:
                    self._waiting.remove(place)
                raise
        else:
            self._in_use += 1
        try:
            while (remainder := self.paused_for()) > 0:
                await asyncio.sleep(remainder)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the place back: to one who waits, or to those who listen."""
        self._in_use -= 1
        while self._waiting and self._in_use < int(self._limit):
            place = self._waiting.popleft()
            if not place.done():
                self._in_use += 1
                place.set_result(None)
        if not self._waiting:
            for listener in self._listeners:
                listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a place may be free; it takes it by `try_acquire`."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.remove(listener)


FAILURES = 3
"""Failures in a row after which an endpoint is left out."""
LEFT_OUT_S = 20.0
"""Seconds after which a call finds out whether it is back; doubled while it is not."""
LONGEST_S = 300.0


class Breaker(Struct):
    """Leaves an endpoint alone that fails again and again.

    Examples
    --------
    >>> breaker = Breaker()
    >>> [breaker.failed(now=0.0) for _ in range(4)]
    [False, False, True, False]
    >>> breaker.closed_for(now=1.0), breaker.closed_for(now=21.0)
    (19.0, 0.0)
    """

    failures: int = 0
    since: float = 0.0
    until: float = 0.0
    pause_s: float = LEFT_OUT_S

    def closed_for(self, now: float) -> float:
        """Return the seconds for which nothing is sent."""
        return max(0.0, self.until - now)

    def failed(self, now: float, *, for_good: bool = False) -> bool:
        """Note a failure; return whether the endpoint is left out from now on."""
        self.failures = max(self.failures + 1, FAILURES * for_good)
        # Calls that were under way when it was left out fail one by one.
        if self.failures < FAILURES or now < self.until:
            return False
        self.since, self.until = now, now + self.pause_s
        self.pause_s = min(LONGEST_S, 2 * self.pause_s)
        return True

    def answered(self, began: float) -> None:
        """Note an answer to a call; one from before it was left out does not show it is back."""
        if began >= self.since:
            self.failures, self.until, self.pause_s = 0, 0.0, LEFT_OUT_S


AFTER_S = 3.0
"""Seconds without any answer before a user is told."""
EVERY_S = 10.0
NOBODY_S = 4.5
"""Seconds after which an address where nobody ever answered is given up."""
SHORT = 160


class Trouble(Struct):
    """Failures since the last answer.

    Examples
    --------
    >>> trouble = Trouble("http://127.0.0.1:80/v1")
    >>> trouble.failed("Cannot connect", wait_s=0.5, now=100.0)
    >>> trouble.failed("Cannot connect", wait_s=4.0, now=104.0)
    'http://127.0.0.1:80/v1: no answer for 4 s (Cannot connect); 2 retries so far, next try in 4 s'
    >>> trouble.answered(now=109.0)
    'http://127.0.0.1:80/v1 answers again after 9 s'
    """

    endpoint: str
    retries: int = 0
    since: float = 0.0
    next_try: float = 0.0
    told: float = float("-inf")
    began: float | None = None
    ever_answered: bool = False

    def begin(self) -> None:
        """Note that the first call is about to be sent."""
        if self.began is None:
            self.began = time.monotonic()

    def is_dead(self, *, wait_s: float, most_s: float) -> bool:
        """Whether nothing was there from the start, or is any more, so that waiting is for nothing.

        Where nobody ever answered the address is wrong; where somebody did, the server may be back.
        """
        if not self.ever_answered and self.began is not None:
            return time.monotonic() + wait_s > self.began + NOBODY_S
        return self.retries > 0 and time.monotonic() - self.since >= most_s

    def failed(self, error: str, *, wait_s: float, now: float | None = None) -> str | None:
        """Note a failure; return a sentence where it is time for one."""
        now = time.monotonic() if now is None else now
        if not self.retries:
            self.since, self.next_try, self.told = now, float("inf"), float("-inf")
        self.retries += 1
        self.next_try = now + wait_s if self.next_try <= now else min(self.next_try, now + wait_s)
        if now - self.since < AFTER_S or now - self.told < EVERY_S:
            return None
        self.told = now
        reason = error if len(error) <= SHORT else error[:SHORT] + "..."
        return (
            f"{self.endpoint}: no answer for {now - self.since:.0f} s ({reason}); "
            f"{self.retries:,} {'retry' if self.retries == 1 else 'retries'} so far, "
            f"next try in {max(0.0, self.next_try - now):.0f} s"
        )

    def answered(self, *, now: float | None = None) -> str | None:
        """Note an answer; return a sentence where the user had been told of trouble."""
        self.ever_answered = True
        was_told, self.retries = self.retries and self.told > float("-inf"), 0
        if not was_told:
            return None
        now = time.monotonic() if now is None else now
        return f"{self.endpoint} answers again after {now - self.since:.0f} s"


BYTES_PER_TOKEN = 3
TOKENS_PER_MESSAGE = 8
TOKENS_PER_IMAGE = 1_700
LOOK_AGAIN_S = 0.25
LONGEST_BACKOFF_S = 30.0


def prompt_tokens_estimate(request: Request) -> int:
    """Return about how many tokens the messages have, rather too many than too few.

    Examples
    --------
    >>> from calibrant.models.protocol import Message
    >>> prompt_tokens_estimate(Request("m", (Message("user", "What is the capital of Peru?"),)))
    18
    """
    tokens = 0
    for message in request.messages:
        tokens += TOKENS_PER_MESSAGE - (-len(message.text.encode()) // BYTES_PER_TOKEN)
        tokens += TOKENS_PER_IMAGE * sum("text" not in part for part in message.parts)
    return tokens


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
