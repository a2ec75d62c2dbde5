"""One run of a dispatcher: calls, tries, and the way of every draw into the ledger."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from calibrant.clients.asks import Ask, LedgeredDraw, Outcome, Problem
from calibrant.clients.codec import decode_completion, encode_completion
from calibrant.clients.commit import GroupCommit
from calibrant.clients.limit import backoff_s
from calibrant.clients.protocol import (
    Completion,
    ElsewhereError,
    EndpointRefusedError,
    OverloadError,
    Request,
)
from calibrant.core.errors import (
    BudgetError,
    CapabilityError,
    PermanentClientError,
    TransientClientError,
)
from calibrant.records.ledger import Claim, DrawRow, LedgerKey

if TYPE_CHECKING:
    from calibrant.clients.budget import Reservation
    from calibrant.clients.dispatch import Dispatcher

__all__ = ["Run", "split_draws"]

READY = 256
"""Outcomes that may wait for the caller before dispatching pauses."""
LOOK_AGAIN_S = 0.25


class ExhaustedError(Exception):
    """All tries of a call are used up."""


class StoppedError(Exception):
    """The run is being stopped."""


@dataclass(slots=True)
class Job:
    """An ask with draws still to be got."""

    ask: Ask
    request: Request
    request_id: int
    calls_left: int = 0
    new: dict[int, LedgeredDraw] = field(default_factory=dict)
    problem: Problem | None = None


class Run:
    """Feeds calls to the endpoint and outcomes to the caller."""

    def __init__(self, dispatcher: Dispatcher, windows: Iterator[list[Ask]]) -> None:
        self._of = dispatcher
        self._ledger = dispatcher.ledger
        self._windows = windows
        self._ready: asyncio.Queue[Outcome | None] = asyncio.Queue(READY)
        self._calls: set[asyncio.Task[None]] = set()
        self._active: dict[int, list[tuple[Ask, Request]]] = {}
        self._later = 0
        self._error: Exception | None = None
        self._stop = asyncio.Event()
        self._rng = random.Random()
        self._commit = GroupCommit.enter(dispatcher.ledger)
        self._feeder: asyncio.Task[None] | None = None

    # -- the caller's side -----------------------------------------------------------------

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Yield outcomes; at the end raise what stopped the run, if anything did."""
        self._feeder = asyncio.create_task(self._feed())
        while (outcome := await self._ready.get()) is not None:
            yield outcome
        if self._error is not None:
            raise self._error

    async def finish(self) -> None:
        """Stop: calls under way get a moment, the rest is noted as abandoned."""
        self._stop.set()
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)
        if self._calls:
            await asyncio.wait(self._calls, timeout=self._of.drain_s)
        while self._calls:
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)
        await self._commit.leave()

    # -- feeding ---------------------------------------------------------------------------

    async def _feed(self) -> None:
        try:
            for window in self._windows:
                await self._open(window)
                if self._error is not None:
                    break
        except Exception as error:  # noqa: BLE001 - raised to the caller after the calls under way
            self._fail(error)
        while self._calls:
            await asyncio.wait(self._calls)
        await self._ready.put(None)

    async def _open(self, window: Sequence[Ask]) -> None:
        prepared = [self._of.prepare(ask) for ask in window]
        ids = await self._register([key for _, key in prepared])
        held = self._ledger.held_by_id(ids)
        failures = {} if self._of.retry_failures else self._ledger.failures_by_id(ids)
        for ask, (request, _), id_ in zip(window, prepared, ids, strict=True):
            if self._error is not None:
                return
            if id_ in self._active:
                # The same request is being asked already: look again when that is done.
                self._active[id_].append((ask, request))
                self._later += 1
                while self._later > READY:
                    await asyncio.sleep(LOOK_AGAIN_S / 10)
                continue
            have = held.get(id_, set())
            missing = [draw for draw in range(ask.draws) if draw not in have]
            job = Job(ask, request, id_)
            if missing and id_ in failures:
                job.problem = Problem("permanent", failures[id_].message)
                missing = []
            if missing:
                await self._start(job, missing)
            else:
                await self._hand_over(job)
                await asyncio.sleep(0)

    async def _register(self, keys: Sequence[LedgerKey]) -> list[int]:
        ids = self._ledger.find(keys)
        new = [key for key, id_ in zip(keys, ids, strict=True) if id_ is None]
        if not new:
            return [id_ for id_ in ids if id_ is not None]
        added = iter(await self._commit.submit(partial(self._ledger.register, new), durable=False))
        return [next(added) if id_ is None else id_ for id_ in ids]

    async def _start(self, job: Job, missing: Sequence[int]) -> None:
        self._active.setdefault(job.request_id, [])
        chunks = split_draws(missing, self._of.chunk)
        job.calls_left = len(chunks)
        for chunk in chunks:
            try:
                reservation = await self._of.budget.reserve(job.request, len(chunk))
            except BudgetError as error:
                self._fail(error)
                return
            await self._of.limit.acquire()
            if self._error is not None or job.problem is not None:
                self._release(reservation)
                job.calls_left -= 1
                if job.calls_left == 0:
                    await self._done(job)
                continue
            call = asyncio.create_task(self._call(job, chunk, reservation))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    def _release(self, reservation: Reservation) -> None:
        self._of.limit.release()
        self._of.budget.release(reservation)

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error

    # -- one call --------------------------------------------------------------------------

    async def _call(self, job: Job, chunk: list[int], reservation: Reservation) -> None:
        try:
            await self._get(job, chunk)
        except ExhaustedError as error:
            job.problem = job.problem or Problem("exhausted", str(error))
        except (EndpointRefusedError, CapabilityError, BudgetError) as error:
            self._fail(error)
        except PermanentClientError as error:
            job.problem = Problem("permanent", str(error))
        except StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - raised to the caller, nothing is swallowed
            self._fail(error)
        finally:
            self._release(reservation)
        job.calls_left -= 1
        if job.calls_left == 0:
            await self._done(job)

    async def _get(self, job: Job, draws: list[int]) -> None:
        """Get these draws, in as many calls and tries as it takes."""
        tries, refusals = 0, 0
        until = asyncio.get_running_loop().time() + self._of.patience_s
        while draws:
            first, n = draws[0], len(split_draws(draws, self._of.chunk)[0])
            attempt = await self._commit.claim(Claim(job.request_id, first, n))
            if attempt is None:
                draws = await self._left_by_others(job, draws)
                continue
            try:
                completions = await self._send(job, attempt, first, n)
            except TransientClientError as error:
                limited = getattr(error, "rate_limited", False)
                if isinstance(error, ElsewhereError) and not limited:
                    self._note_elsewhere(error)
                    continue
                tries, refusals = tries + (not limited), refusals + limited
                await self._put_off(error, tries, tries + refusals, until)
                continue
            await self._keep(job, attempt, first, completions)
            if len(completions) < n:
                self._of.watch.fewer_choices += 1
            draws = draws[len(completions) :]
            tries = refusals = 0

    async def _send(self, job: Job, attempt: int, first: int, n: int) -> list[Completion]:
        request, seed = job.request, job.request.seed
        if n != request.n or (seed is not None and first):
            request = replace(request, n=n, seed=None if seed is None else seed + first)
        replaying = self._of.replaying
        try:
            self._of.budget.start_call()
            if replaying is not None:
                completions = await replaying.replay(
                    job.request, purpose=job.ask.purpose, first_draw=first, n=n
                )
            else:
                completions = await self._of.client.ask(request)
            if not completions:
                raise TransientClientError("the endpoint gave no choice at all")
        except BaseException as error:
            self._note_end(job, attempt, error)
            raise
        self._of.limit.succeeded()
        self._of.notify(self._of.trouble.answered())
        return completions[:n]

    def _note_elsewhere(self, error: ElsewhereError) -> None:
        """Another endpoint is asked at once; the user hears of one that is left out."""
        self._of.counts["retries"] += 1
        if error.left_out is not None:
            self._of.watch.left_out[error.left_out] += 1
            self._of.notify(error.notice)
        if self._stop.is_set():
            raise StoppedError

    def _note_end(self, job: Job, attempt: int, error: BaseException) -> None:
        """Write down how an attempt failed, and set the request aside where it is its fault."""
        permanent = isinstance(error, PermanentClientError)
        if isinstance(error, TransientClientError):
            status = "transient"
        elif isinstance(error, BudgetError | CapabilityError):
            status = "unsent"
        elif permanent:
            status = "permanent"
        else:
            status = "abandoned"
        reason = str(error) or type(error).__name__

        def write() -> None:
            self._ledger.end_attempt(attempt, status, reason)
            if permanent and not isinstance(error, EndpointRefusedError):
                self._ledger.add_failure(job.request_id, "permanent", reason)

        self._commit.submit(write, durable=permanent)

    async def _keep(
        self, job: Job, attempt: int, first: int, completions: Sequence[Completion]
    ) -> None:
        """Commit the draws, then count them as got."""
        budget = self._of.budget
        model = job.request.model
        costs = [budget.cost(model, completion.usage) for completion in completions]
        rows = [
            DrawRow(
                job.request_id,
                first + offset,
                attempt,
                encode_completion(completion),
                completion.model,
                completion.usage.prompt_tokens,
                completion.usage.completion_tokens,
                cost,
            )
            for offset, (completion, cost) in enumerate(zip(completions, costs, strict=True))
        ]
        added = await self._commit.keep(attempt, rows)
        for completion, cost in zip(completions, costs, strict=True):
            budget.spend(completion.usage, cost)
        if added == len(rows):
            for row, completion, cost in zip(rows, completions, costs, strict=True):
                job.new[row.draw] = LedgeredDraw(row.draw, completion, False, cost)
            self._of.counts["new"] += added
        self._of.tell()

    async def _put_off(
        self, error: TransientClientError, tries: int, failures: int, until: float
    ) -> None:
        """Wait before the next try, or give up."""
        of, now = self._of, asyncio.get_running_loop().time()
        if isinstance(error, OverloadError):
            of.limit.overloaded(now=now, retry_after=error.retry_after)
        wait = backoff_s(failures, rng=self._rng, first=of.first_backoff_s)
        wait = max(wait, error.retry_after or 0.0)
        if tries >= of.max_attempts:
            raise ExhaustedError(f"given up after {tries} tries: {error}")
        if now + wait > until:
            raise ExhaustedError(f"given up after {of.patience_s:g} s of rate limits: {error}")
        of.counts["retries"] += 1
        of.notify(of.trouble.failed(str(error), wait_s=wait))
        try:
            async with asyncio.timeout(wait):
                await self._stop.wait()
        except TimeoutError:
            await of.limit.pause()
            if self._error is None:
                return
        raise StoppedError

    async def _left_by_others(self, job: Job, draws: list[int]) -> list[int]:
        """Wait for draws that another process is asking for; return those still missing."""
        while True:
            if self._stop.is_set():
                raise StoppedError
            id_ = job.request_id
            held = self._ledger.held_by_id([id_]).get(id_, set())
            draws = [draw for draw in draws if draw not in held]
            if not set(draws) & self._ledger.claimed_by_id([id_]).get(id_, set()):
                return draws
            await asyncio.sleep(LOOK_AGAIN_S)

    # -- handing over ----------------------------------------------------------------------

    async def _done(self, job: Job) -> None:
        await self._hand_over(job)
        later = self._active.pop(job.request_id, [])
        for position, (ask, request) in enumerate(later):
            self._later -= 1
            held = self._ledger.held_by_id([job.request_id]).get(job.request_id, set())
            missing = [draw for draw in range(ask.draws) if draw not in held]
            again = Job(ask, request, job.request_id)
            if missing and job.problem is None:
                self._active[job.request_id] = later[position + 1 :]
                await self._restart(again, missing)
                return
            again.problem = job.problem if missing else None
            await self._hand_over(again)

    async def _restart(self, job: Job, missing: Sequence[int]) -> None:
        task = asyncio.create_task(self._start(job, missing))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _hand_over(self, job: Job) -> None:
        """Put the outcome before the caller; what is not from this run is read from the ledger."""
        draws = dict(job.new)
        if len(draws) < job.ask.draws:
            for stored in self._ledger.draws([job.request_id], below=job.ask.draws):
                if stored.draw not in draws:
                    completion = decode_completion(stored.payload)
                    draws[stored.draw] = LedgeredDraw(stored.draw, completion, True, stored.cost)
                    self._of.counts["cached"] += 1
        ordered = tuple(draws[index] for index in sorted(draws))
        problem = job.problem if len(ordered) < job.ask.draws else None
        if not self._stop.is_set() and (problem or len(ordered) == job.ask.draws):
            await self._ready.put(Outcome(job.ask, ordered, problem))


def split_draws(draws: Sequence[int], most: int) -> list[list[int]]:
    """Split sorted draw indices into runs without gaps, of at most `most`.

    Without gaps, because choice i of a call uses the seed of the call plus i: a draw then has
    the same seed however the draws were shared among calls.

    Examples
    --------
    >>> split_draws([0, 1, 2, 5, 6, 7, 8], 3)
    [[0, 1, 2], [5, 6, 7], [8]]
    """
    runs: list[list[int]] = []
    for draw in draws:
        if runs and len(runs[-1]) < most and draw == runs[-1][-1] + 1:
            runs[-1].append(draw)
        else:
            runs.append([draw])
    return runs
