"""One run of a dispatcher: what the ledger lacks is asked for, what is kept is handed over."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from calibrant.core.errors import BudgetError
from calibrant.models.asks import Ask, LedgeredDraw, Outcome, Problem, split_draws
from calibrant.models.codec import decode_completion
from calibrant.models.dispatch.calls import Caller, EndpointCall, Job
from calibrant.models.ledger import Refusal
from calibrant.models.ledger.store import GroupCommit
from calibrant.models.protocol import Request

if TYPE_CHECKING:
    from calibrant.models.dispatch.dispatcher import Dispatcher

READY = 256
"""Outcomes that may wait for the caller before dispatching pauses."""


class Run:
    """Feeds calls to the endpoint and outcomes to the caller.

    A call is noted in the ledger, waits for one of the endpoint's places, is sent, gives the
    place back when the answer is there, and has its draws committed. Half as many calls again
    as there are places are begun, so that no place is empty while the ledger is written.
    """

    def __init__(self, dispatcher: Dispatcher, windows: Iterator[list[Ask]]) -> None:
        self._of = dispatcher
        self._ledger = dispatcher.ledger
        self._limit = dispatcher.limit
        self._windows = windows
        self._commit = GroupCommit.enter(dispatcher.ledger)
        self._caller = Caller(dispatcher, self._commit, self._break, self._end)
        self._next: deque[EndpointCall] = deque()
        self._noting = 0
        self._noted: deque[EndpointCall] = deque()
        self._begun = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._active: dict[int, list[tuple[Ask, Request]]] = {}
        self._later = 0
        self._ready: deque[Outcome] = deque()
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self._broken = False
        self._stopped = False
        self._feeder: asyncio.Task[None] | None = None
        self._limit.listen(self._launch)

    # -- the caller's side -----------------------------------------------------------------

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Yield outcomes; at the end raise what stopped the run, if anything did."""
        self._feeder = asyncio.create_task(self._feed())
        while True:
            while self._ready:
                outcome = self._ready.popleft()
                self._moved.set()
                yield outcome
            if self._feeder.done():
                break
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            raise self._error

    async def finish(self) -> None:
        """Stop: calls under way get a moment, the rest is noted as abandoned."""
        self._stopped = True
        self._caller.stop()
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)
        self._launch()  # nothing is sent any more: what waits is dropped
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._of.drain_s)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._limit.leave(self._launch)
        if self._alarm is not None:
            self._alarm.cancel()
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
        await self._until(lambda: not self._begun and not self._tasks)
        asyncio.get_running_loop().call_soon(self._news.set)

    async def _open(self, window: Sequence[Ask]) -> None:
        prepared = [self._of.prepare(ask) for ask in window]
        keys = [key for _, key in prepared]
        ledger_ids = self._ledger.find(keys)
        ids = known_ids = [id_ for id_ in ledger_ids if id_ is not None]
        if new := [key for key, id_ in zip(keys, ledger_ids, strict=True) if id_ is None]:
            write = partial(self._ledger.register, new)
            added = iter(await self._commit.submit(write, durable=False))
            ids = [next(added) if id_ is None else id_ for id_ in ledger_ids]
        held_draws = self._ledger.held_by_id(known_ids)
        failures = {} if self._of.retry_failures else self._ledger.failures_by_id(known_ids)
        for ask, (request, _), id_ in zip(window, prepared, ids, strict=True):
            if self._error is not None:
                return
            if id_ in self._active:
                # The same request is being asked already: look again when that is done.
                self._active[id_].append((ask, request))
                self._later += 1
                await self._until(lambda: self._later <= READY)
                continue
            have = held_draws.get(id_, set())
            missing = [draw for draw in range(ask.draws) if draw not in have]
            job = Job(ask, request, id_)
            if missing and id_ in failures:
                job.problem = Problem("permanent", failures[id_])
                missing = []
            if missing:
                await self._start(job, missing)
            else:
                await self._until(lambda: len(self._ready) < READY)
                self._hand_over(job)

    async def _start(self, job: Job, missing: Sequence[int]) -> None:
        self._active.setdefault(job.request_id, [])
        try:
            self._of.budget.price(job.request.model)
        except BudgetError as error:
            self._fail(error)
            return

        def has_room() -> bool:
            places = self._limit.allowed
            return self._begun < places + (places + 1) // 2 and len(self._ready) < READY

        chunks = split_draws(missing, self._of.chunk)
        job.calls_left = len(chunks)
        for chunk in chunks:
            await self._until(has_room)
            call = EndpointCall(job, chunk, n=len(chunk))
            self._begun += 1
            if self._error is not None or job.problem is not None:
                self._end(call)
            else:
                self._next.append(call)
                self._launch()

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a call to end, or for an outcome to be taken, until the condition holds."""
        while not condition():
            self._moved.clear()
            await self._moved.wait()

    def _fail(self, error: Exception) -> None:
        """Begin nothing more; what is begun goes on."""
        if self._error is None:
            self._error = error

    def _break(self, error: Exception) -> None:
        """Send nothing more: a call has shown that it would be for nothing.

        A cap that is reached is no such thing: what is noted has its share of it already.
        """
        self._fail(error)
        self._broken = self._broken or not isinstance(error, BudgetError)
        self._launch()

    # -- calls -----------------------------------------------------------------------------

    def _launch(self) -> None:
        """Send what is noted, and note what comes next, as far as there are places.

        Some calls are noted before there is a place for them, so that a place that comes free is
        taken at once. If it waited for a commit, calls that were answered together would be sent
        together again, and their answers would queue up.
        """
        lead = self._limit.allowed // 4
        while self._noted:
            if self._is_over(self._noted[0]):
                self._caller.drop(self._noted.popleft())
            elif self._limit.try_acquire():
                self._spawn(self._caller.make(self._noted.popleft(), noted=True))
            else:
                break
        while self._next:
            if self._is_over(self._next[0]):
                self._end(self._next.popleft())
            elif self._noting + len(self._noted) < max(self._limit.free, lead):
                call = self._next.popleft()
                self._noting += 1
                self._commit.claim(call.claim(self._of.budget), partial(self._note, call))
            else:
                break
        waiting = self._noted or self._next
        if waiting and self._alarm is None and (remainder := self._limit.paused_for()) > 0:
            self._alarm = asyncio.get_running_loop().call_later(remainder, self._wake)

    def _is_over(self, call: EndpointCall) -> bool:
        """Whether it would be for nothing to send this call."""
        return self._stopped or self._broken or call.job.problem is not None

    def _note(
        self, call: EndpointCall, attempt: int | Refusal | None, error: Exception | None
    ) -> None:
        """Go on with a call that the ledger knows of."""
        self._noting -= 1
        if error is not None:
            self._fail(error)
            self._end(call)
        elif isinstance(attempt, int):
            call.attempt = attempt
            self._noted.append(call)
        else:
            self._spawn(self._caller.make(call, noted=False))
        self._launch()

    def _wake(self) -> None:
        self._alarm = None
        self._launch()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._moved.set()

    def _end(self, call: EndpointCall) -> None:
        """Count a call as ended, and its job as done where it was the last one."""
        self._begun -= 1
        self._of.budget.changed.set()
        job = call.job
        job.calls_left -= 1
        if job.calls_left == 0 and not self._stopped:
            try:
                self._done(job)
            except Exception as error:  # noqa: BLE001 - raised to the caller
                self._fail(error)
        self._moved.set()

    # -- handing over ----------------------------------------------------------------------

    def _done(self, job: Job) -> None:
        self._hand_over(job)
        later = self._active.pop(job.request_id, [])
        for position, (ask, request) in enumerate(later):
            self._later -= 1
            held_draws = self._ledger.held_by_id([job.request_id]).get(job.request_id, set())
            missing = [draw for draw in range(ask.draws) if draw not in held_draws]
            again = Job(ask, request, job.request_id)
            if missing and job.problem is None:
                self._active[job.request_id] = later[position + 1 :]
                self._spawn(self._start(again, missing))
                return
            again.problem = job.problem if missing else None
            self._hand_over(again)

    def _hand_over(self, job: Job) -> None:
        """Put the outcome before the caller; what is not from this run is read from the ledger."""
        draws = dict(job.new)
        if len(draws) < job.ask.draws:
            for stored in self._ledger.draws([job.request_id], below=job.ask.draws):
                if stored.draw not in draws:
                    try:
                        completion = decode_completion(stored.payload)
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                        job.problem = job.problem or _unreadable(stored.draw)
                        continue
                    draws[stored.draw] = LedgeredDraw(stored.draw, completion, True, stored.cost)
                    self._of.counts["draws_cached"] += 1
        if len(draws) < job.ask.draws and job.problem is None and self._refill(job):
            return
        ordered = tuple(draws[index] for index in sorted(draws))
        problem = job.problem if len(ordered) < job.ask.draws else None
        if problem or len(ordered) == job.ask.draws:
            self._ready.append(Outcome(job.ask, ordered, problem))
            self._news.set()

    def _refill(self, job: Job) -> bool:
        """Ask again for draws that the ledger notes without an answer; return whether it does."""
        if job.refilled or self._stopped or self._error is not None or self._ledger.read_only:
            return False
        missing = self._ledger.without_answer(job.request_id, below=job.ask.draws)
        if not missing:
            return False
        job.refilled = True
        self._of.watch.counts["ledger-rows-refilled"] += len(missing)
        self._ledger.ask_again(job.request_id, missing)
        self._spawn(self._start(job, missing))
        return True


def _unreadable(draw: int) -> Problem:
    return Problem("permanent", f"the ledger's answer of draw {draw} cannot be read: repair it")
