"""Is what is served still what was certified? Looked at as labels come in, and counted."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from calibrant.apps.serving import promise
from calibrant.apps.serving.engine import RECENT, ServingEngine
from calibrant.core.errors import InputError
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.trust.traffic_shift import GuardCheck

ROUNDS = 3
"""Rounds without success after which nobody relies on the last one."""
_STEP_S = 1.0


@dataclass
class Routine:
    """Does its work every so many seconds; what goes wrong is told once, and tried again.

    Parameters
    ----------
    name
        What is done, for the message.
    work
        One round.
    every_s
        Seconds between two rounds.
    """

    name: str
    work: Callable[[], Awaitable[None]]
    every_s: float
    problem: str | None = None
    """Why the last round failed."""
    succeeded: float = 0.0
    """When a round succeeded last, in seconds since 1970; 0 for never."""
    _at: float | None = None
    _task: asyncio.Task[None] | None = None
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def start(self) -> None:
        """Begin to do it."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Do it no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(min(_STEP_S, self.every_s))
            if time.monotonic() - began >= self.every_s:
                began = time.monotonic()
                await self.once()

    async def once(self) -> None:
        """Do one round; only what ends the program gets out of it."""
        async with self._looking:
            try:
                await self.work()
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - libraries panic with errors of their own
                self._failed(f"{error}" or type(error).__name__)
            else:
                if self.problem is not None:
                    sys.stderr.write(f"calibrant serve: {self.name}: it works again\n")
                self.problem, self.succeeded, self._at = None, time.time(), time.monotonic()

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            line = " ".join(problem.split())
            sys.stderr.write(f"calibrant serve: {self.name}: {line}; it is tried again\n")
        self.problem = problem

    @property
    def late(self) -> bool:
        """Whether no round has succeeded for too long, also where one hangs."""
        if self._at is None:
            return True
        return time.monotonic() - self._at > ROUNDS * self.every_s + _STEP_S


EVERY_S = 60.0
GUARD_EVERY_S = 10.0


class Watch:
    """Looks at what was served, and tells what is not as it was; nothing ends it but a stop.

    Labels and traffic are looked at by routines of their own. Where one has not succeeded for
    three rounds, nothing is promised any more.

    Parameters
    ----------
    engine
        Whose promise it is.
    check
        The policy's own test of unlabelled rows; None where it has none.
    labels
        A table with ``question_id``, ``answer`` and ``correct``, or the file of `label serve`; both
        grow. None where nobody labels.
    promised
        Returns a fresh watch over the error that was promised; None where none was.
    """

    def __init__(
        self,
        engine: ServingEngine,
        check: Callable[[pl.DataFrame], GuardCheck] | None = None,
        labels: Path | None = None,
        promised: Callable[[], PromiseWatch] | None = None,
    ) -> None:
        self._engine, self._check, self._labels, self._promised = engine, check, labels, promised
        self._given = promise.ServedAnswers(engine.rows, engine.policy.id)
        self._seen, self._noted = 0, ""
        self.guard = Routine("traffic is not watched", self._look_at_traffic, GUARD_EVERY_S)
        self.labelled = Routine("labels are not watched", self._look_at_labels, EVERY_S)
        self.routines = [self.guard]
        if labels is not None and promised is not None:
            self.routines.append(self.labelled)
        engine.standing.not_verified = self._not_verified

    @property
    def every_s(self) -> float:
        """Seconds between two looks at the labels."""
        return self.labelled.every_s

    @every_s.setter
    def every_s(self, seconds: float) -> None:
        self.labelled.every_s = seconds

    async def start(self) -> None:
        """Look once, before the first question, then again and again."""
        if self._labels is not None and not self._labels.exists():
            sys.stderr.write(f"calibrant serve: there are no labels yet: {self._labels}\n")
        for routine in self.routines:
            await routine.once()
            routine.start()

    async def stop(self) -> None:
        """Look no more."""
        for routine in self.routines:
            await routine.stop()

    async def look(self) -> None:
        """Look once, in a thread: answers are not held up by it."""
        for routine in self.routines:
            await routine.once()

    @property
    def up(self) -> bool:
        """Whether what is promised has been looked at of late."""
        return not any(routine.late for routine in self.routines)

    @property
    def succeeded(self) -> float:
        """When every routine had succeeded last, in seconds since 1970."""
        return min(routine.succeeded for routine in self.routines)

    def _not_verified(self) -> str | None:
        for routine in self.routines:
            if routine.late:
                if not routine.succeeded:
                    return "not verified since the start"
                since = dt.datetime.fromtimestamp(routine.succeeded, dt.UTC)
                return f"not verified since {since:%Y-%m-%d %H:%M:%S} UTC"
        return None

    async def _look_at_traffic(self) -> None:
        engine = self._engine
        count = engine.counts["questions"]
        if self._check is not None and count - self._seen >= RECENT:
            rows = pl.DataFrame(list(engine.recent), infer_schema_length=None, strict=False)
            # What is unlike the labelled questions, in a sentence.
            guard = await asyncio.to_thread(self._check, rows)
            engine.standing.known.shift = None if guard.holds else guard.text
            self._seen = count
        await asyncio.to_thread(engine.standing.share)

    async def _look_at_labels(self) -> None:
        knowledge = self._engine.standing.known
        if knowledge.expired is None and self._labels is not None and self._promised is not None:
            result = await asyncio.to_thread(self._broken, self._labels, self._promised())
            knowledge.expired = knowledge.expired or result
        await asyncio.to_thread(self._engine.standing.share)

    def _broken(self, path: Path, watch: PromiseWatch) -> str | None:
        """Return why the promise is broken, as the labels show it."""
        labels, knowledge = promise.read_labels(path), self._engine.standing.known
        self._given.read_on()
        outcomes = promise.graded_answers(self._given.answers, labels)
        graded = len(outcomes.graded)
        if 2 * graded < knowledge.labels:
            # One or two may be taken back; so many are lost.
            raise InputError(
                f"{graded:,} answers are still labelled, of {knowledge.labels:,}",
                source=str(path),
                hint="put the labels back: nobody knows whether those that went broke the promise",
            )
        knowledge.labels = graded
        self._note(outcomes, len(labels))
        return promise.broken_promise(watch, outcomes.graded)

    def _note(self, outcomes: promise.Outcomes, labels: int) -> None:
        """Say once what could not be used."""
        self._engine.counts["unreadable_rows"] = self._given.unreadable
        self._engine.counts["unused_labels"] = outcomes.strange
        parts = []
        if self._given.unreadable:
            parts.append(f"{self._given.unreadable:,} rows of {self._given.path} cannot be read")
        if outcomes.ambiguous:
            parts.append(
                f"{outcomes.ambiguous:,} of {labels:,} labels name a question with several "
                "answers: give the column answer too"
            )
        if labels and outcomes.strange == labels:
            parts.append(f"none of the {labels:,} labels fits an answer of this policy")
        sentences = "; ".join(parts)
        if sentences and sentences != self._noted:
            sys.stderr.write(f"calibrant serve: {sentences}\n")
        self._noted = sentences


ENDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


@dataclass
class Meters:
    """Requests by class of status, and how long they took.

    Examples
    --------
    >>> meters = Meters()
    >>> meters.see(200, 0.02)
    >>> meters.requests["2xx"], list(meters.lines())[5]
    (1, 'calibrant_request_seconds_bucket{le="0.025"} 1')
    """

    requests: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    seconds: float = 0.0
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(ENDS_S) + 1))

    def see(self, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self.requests[f"{status // 100}xx"] += 1
        self.seconds += seconds
        self._buckets[bisect_left(ENDS_S, seconds)] += 1

    def lines(self) -> Iterator[str]:
        """Yield the lines of requests and their seconds."""
        yield from typed("requests_total", "counter", self.requests, "status")
        yield "# TYPE calibrant_request_seconds histogram"
        observed = 0
        for end, count in zip((*map(str, ENDS_S), "+Inf"), self._buckets, strict=True):
            observed += count
            yield f'calibrant_request_seconds_bucket{{le="{end}"}} {observed}'
        yield f"calibrant_request_seconds_sum {self.seconds}"
        yield f"calibrant_request_seconds_count {observed}"


def typed(name: str, kind: str, values: Any, label: str | None = None) -> Iterator[str]:
    """Yield the lines of one number, or of one number by the values of a label."""
    yield f"# TYPE calibrant_{name} {kind}"
    if label is None:
        yield f"calibrant_{name} {values}"
        return
    for key, value in values.items():
        yield f"calibrant_{name}{{{label}={orjson.dumps(key).decode()}}} {value}"


def engine_lines(engine: Any, now: float) -> Iterator[str]:
    """Yield the lines of what an engine has answered and paid, and of its promise."""
    counts, standing = engine.counts, engine.standing
    decisions = {name: counts[name] for name in ("answer", "defer", "degraded")}
    yield from typed("questions_total", "counter", decisions, "decision")
    unrecorded = counts["unrecorded"] + engine.unkept
    for name, value in (
        ("upstream_failures_total", counts["failures"]),
        ("upstream_calls_total", counts["calls"]),
        ("cost_total", engine.cost),
        ("streams_total", counts["streams"]),
        ("first_words_seconds_total", engine.first_words),
        ("unpromised_total", counts["unpromised"]),
        ("unrecorded_total", unrecorded),
    ):
        yield from typed(name, "counter", value)
    knowledge = standing.known
    for name, on in (
        ("shifted", knowledge.shift),
        ("endpoint_changed", knowledge.changed),
        ("promise_expired", knowledge.expired or engine.ended),
        ("promise_suspended", standing.against or engine.ended),
    ):
        yield from typed(name, "gauge", int(on is not None))
    for name in ("unreadable_rows", "unused_labels"):
        yield from typed(name, "gauge", counts[name])
    up = {name: int(item.closed_for(now) == 0) for name, item in engine.breakers.items()}
    yield from typed("endpoint_up", "gauge", up, "model")
