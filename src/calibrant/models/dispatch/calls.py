"""One call: sent, tried again where that may help, and its draws on their way to the ledger."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from calibrant.core import errors
from calibrant.core.event_loop import happens
from calibrant.models import protocol
from calibrant.models.asks import Ask, LedgeredDraw, Problem, for_draws, split_draws
from calibrant.models.codec import encode_completion
from calibrant.models.dispatch.limits import LONGEST_BACKOFF_S, LOOK_AGAIN_S, Budget
from calibrant.models.ledger import DrawRow, LedgerClaim
from calibrant.models.ledger.store import GroupCommit

if TYPE_CHECKING:
    from calibrant.models.dispatch.dispatcher import Dispatcher

DEAD_AFTER_S = 120.0
# One for all: a server has a caller per request, and seeding takes longer than the rest of it.
_RNG = random.Random()
RUN_ENDS = (protocol.EndpointRefusedError, errors.CapabilityError, errors.BudgetError)
"""Errors after which no other call can succeed."""
ENDINGS = {
    errors.TransientClientError: "transient",
    errors.BudgetError: "unsent",
    errors.CapabilityError: "unsent",
    errors.PermanentClientError: "permanent",
}
"""What the ledger calls the end of a call that failed so."""


class ExhaustedError(Exception):
    """All tries of a call are used up; `last` is how the last one failed."""

    def __init__(self, message: str, last: errors.TransientClientError) -> None:
        super().__init__(message)
        self.last = last


class StoppedError(Exception):
    """The run is being stopped."""


class Job(Struct):
    """An ask with draws still to be got."""

    ask: Ask
    request: protocol.Request
    request_id: int
    calls_left: int = 0
    new: dict[int, LedgeredDraw] = {}
    problem: Problem | None = None
    refilled: bool = False


class EndpointCall(Struct):
    """Draws of a job that are asked for together; they come without gaps.

    The ledger knows it as `attempt`, which asks for the first `n` of the draws. `tries` counts
    failures, `refusals` those for the rate alone.
    """

    job: Job
    draws: list[int]
    attempt: int = 0
    n: int = 0
    tries: int = 0
    refusals: int = 0
    patience_until: float = float("inf")

    def claim(self, budget: Budget) -> LedgerClaim:
        """Return what the ledger is told before the call is sent."""
        tokens, money = budget.most(self.job.request, self.n)
        return LedgerClaim(self.job.request_id, self.draws[0], self.n, tokens, money, budget.caps)


class Caller(Struct):
    """Makes the calls of one run.

    A call gives its place at the endpoint back as soon as the answer is there: to keep it until
    the draws are in the ledger would let others wait for nothing.

    Parameters
    ----------
    of
        Client, limits and counts.
    commit
        The way into the ledger.
    fail
        Told of an error that ends the run.
    ended
        Told of every call that has ended, with its draws or without.
    """

    of: Dispatcher
    commit: GroupCommit
    fail: Callable[[Exception], None]
    ended: Callable[[EndpointCall], None]
    _stop: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """Try nothing again; what is out may still come back."""
        self._stop.set()

    def drop(self, call: EndpointCall) -> None:
        """Give up a call that is noted in the ledger and was not sent."""
        why = "the run was ended before"
        self.commit.submit(partial(self.of.ledger.end_attempt, call.attempt, "unsent", why))
        self.ended(call)

    async def make(self, call: EndpointCall, *, noted: bool) -> None:
        """Get the draws of a call; tell what ended the run, the job, or this call.

        It is noted in the ledger and has a place, or it could not be noted and takes what others
        leave over of draws and caps.
        """
        on_the_way = False
        try:
            if not noted:
                call.draws = await self._left_by_others(call)
            if noted or await self._note_again(call):
                on_the_way = await self._get(call)
        except ExhaustedError as error:
            last = error.last
            failed = Problem("exhausted", str(error), last.status, last.retry_after)
            call.job.problem = call.job.problem or failed
        except RUN_ENDS as error:
            self.fail(error)
        except errors.PermanentClientError as error:
            call.job.problem = Problem("permanent", str(error), error.status)
        except StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 - raised to the caller, nothing is swallowed
            self.fail(error)
        finally:
            if not on_the_way:
                self.ended(call)

    # -- getting draws ---------------------------------------------------------------------

    async def _get(self, call: EndpointCall) -> bool:
        """Get the draws, in as many tries as it takes; return whether the last are on their way.

        They are on their way to the ledger, then, and the call ends when they are there.
        """
        while True:
            try:
                completions = await self._send(call)
            except errors.TransientClientError as error:
                await self._wait_after(error, call)
            else:
                if len(completions) == len(call.draws):
                    self._keep(call, completions, self.ended)
                    return True
                if len(completions) < call.n:
                    self.of.watch.counts["fewer-choices"] += 1
                await self._kept(call, completions)
                call.draws = call.draws[len(completions) :]
                call.tries = call.refusals = 0
            if not await self._note_again(call):
                return False

    async def _note_again(self, call: EndpointCall) -> bool:
        """Note the next try and wait for a place; return whether there is anything left to ask."""
        while call.draws:
            call.n = len(split_draws(call.draws, self.of.chunk)[0])
            attempt = await self.commit.claimed(call.claim(self.of.budget))
            if isinstance(attempt, int):
                call.attempt = attempt
                await self.of.limit.acquire()
                return True
            if attempt is None:
                call.draws = await self._left_by_others(call)
            elif self._stop.is_set():
                raise StoppedError
            else:
                await self.of.budget.wait_for_rest(attempt)
        return False

    async def _left_by_others(self, call: EndpointCall) -> list[int]:
        """Wait for draws that another process is asking for; return those still missing."""
        id_, draws = call.job.request_id, call.draws
        while True:
            if self._stop.is_set():
                raise StoppedError
            held_draws = self.of.ledger.held_by_id([id_]).get(id_, set())
            draws = [draw for draw in draws if draw not in held_draws]
            if not set(draws) & self.of.ledger.claimed_by_id([id_]).get(id_, set()):
                return draws
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _send(self, call: EndpointCall) -> list[protocol.Completion]:
        """Send the request and give the place back, whatever comes of it."""
        of, request, first = self.of, call.job.request, call.draws[0]
        try:
            of.budget.calls += 1
            of.trouble.begin()
            if of.replaying is not None:
                completions = await of.replaying.replay(
                    request, purpose=call.job.ask.purpose, first_draw=first, n=call.n
                )
            else:
                completions = await of.client.ask(for_draws(request, first, call.n))
            if not completions:
                raise errors.TransientClientError("the endpoint gave no choice at all")
            of.limit.succeeded()
        except BaseException as error:
            self._note_end(call, error)
            if isinstance(error, RUN_ENDS):
                self.fail(error)  # before the place goes to the next one
            raise
        finally:
            of.limit.release()
            # Which settings an endpoint refuses is written down: no later run meets them again.
            for client in of.learning:
                while client.news:
                    model = client.news.pop()
                    name = f"refused {client.endpoint} {model}"
                    value = msgspec.json.encode(client.refused[model]).decode()
                    self.commit.submit(partial(of.ledger.note, name, value), durable=False)
        of.notify(of.trouble.answered())
        return completions[: call.n]

    # -- failures --------------------------------------------------------------------------

    async def _wait_after(self, error: errors.TransientClientError, call: EndpointCall) -> None:
        """Wait before the next try, or give up."""
        limited = getattr(error, "rate_limited", False)
        of, now = self.of, asyncio.get_running_loop().time()
        if isinstance(error, protocol.ElsewhereError) and not limited:
            # Another endpoint is asked at once; the user hears of one that is left out.
            of.counts["retries"] += 1
            if error.left_out is not None:
                of.watch.note("endpoint-left-out", error.left_out)
                of.notify(error.notice)
            if self._stop.is_set():
                raise StoppedError
            return
        call.tries, call.refusals = call.tries + (not limited), call.refusals + limited
        call.patience_until = min(call.patience_until, now + of.patience_s)
        if (error.retry_after or 0.0) > of.patience_s:
            refused = protocol.EndpointRefusedError(
                f"the endpoint asks to wait {_duration(error.retry_after or 0.0)}; stopping, since "
                f"the patience of this run is {_duration(of.patience_s)}: {error}"
            )
            refused.status, refused.retry_after = error.status, error.retry_after
            raise refused
        # Doubled each time, and spread: calls that failed together do not come back together.
        doubled = of.first_backoff_s * 2.0 ** (call.tries + call.refusals - 1)
        wait = min(LONGEST_BACKOFF_S, doubled) * _RNG.uniform(0.5, 1.0)
        wait = max(wait, error.retry_after or 0.0)
        most = min(of.patience_s, DEAD_AFTER_S)
        unreachable = isinstance(error, protocol.UnreachableError)
        if unreachable and of.trouble.is_dead(wait_s=wait, most_s=most):
            raise protocol.EndpointRefusedError(
                f"nothing answers at {of.client.endpoint}: check base_url ({error})"
            )
        if isinstance(error, protocol.OverloadError):
            of.limit.overloaded(now=now, retry_after=error.retry_after)
        if call.tries >= of.max_attempts:
            raise ExhaustedError(f"given up after {call.tries} tries: {error}", error)
        if now + wait > call.patience_until:
            given_up = f"given up after {of.patience_s:g} s of rate limits: {error}"
            raise ExhaustedError(given_up, error)
        of.counts["retries"] += 1
        of.notify(of.trouble.failed(str(error), wait_s=wait))
        if await happens(self._stop, within_s=wait):
            raise StoppedError

    def _note_end(self, call: EndpointCall, error: BaseException) -> None:
        """Write down how an attempt failed, and set the request aside where it is its fault."""
        permanent = isinstance(error, errors.PermanentClientError)
        endings = (name for kind, name in ENDINGS.items() if isinstance(error, kind))
        status = next(endings, "abandoned")
        attempt, request_id = call.attempt, call.job.request_id
        reason = str(error) or type(error).__name__

        def write() -> None:
            self.of.ledger.end_attempt(attempt, status, reason)
            if permanent and not isinstance(error, protocol.EndpointRefusedError):
                self.of.ledger.add_failure(request_id, "permanent", reason)

        self.commit.submit(write, durable=permanent)

    # -- keeping ---------------------------------------------------------------------------

    def _keep(
        self,
        call: EndpointCall,
        completions: Sequence[protocol.Completion],
        then: Callable[[EndpointCall], None],
    ) -> None:
        """Commit the draws, count them as got, and go on."""
        job, attempt = call.job, call.attempt
        draws, rows = list[LedgeredDraw](), list[DrawRow]()
        for place, completion in enumerate(completions, start=call.draws[0]):
            used, cost = completion.usage, self.of.budget.cost(job.request.model, completion.usage)
            draws.append(LedgeredDraw(place, completion, False, cost))
            paid = (used.prompt_tokens, used.completion_tokens, cost)
            payload = encode_completion(completion)
            rows.append(DrawRow(job.request_id, place, attempt, payload, completion.model, *paid))

        def kept(added: int, error: Exception | None) -> None:
            if error is None:
                self._count(job, draws, added)
            elif self.of.unkept is None:
                self.fail(error)
            else:
                # Somebody waits for what is paid for already.
                self.of.unkept(len(draws))
                self._count(job, draws, len(draws))
            then(call)

        self.commit.keep(attempt, rows, kept)

    async def _kept(self, call: EndpointCall, completions: Sequence[protocol.Completion]) -> None:
        """Keep the draws, and wait until they are kept."""
        finished = asyncio.Event()
        self._keep(call, completions, lambda _: finished.set())
        await finished.wait()

    def _count(self, job: Job, draws: Sequence[LedgeredDraw], added: int) -> None:
        for draw in draws:
            self.of.budget.spend(draw.completion.usage, draw.cost)
        if added == len(draws):
            job.new |= {draw.index: draw for draw in draws}
            self.of.counts["draws_new"] += added
        self.of.tell()


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:g} s"
