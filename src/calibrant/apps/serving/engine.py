"""What happens to one question: models are asked while the policy says so, then it is decided."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from msgspec.structs import replace

from calibrant.apps.serving import replies
from calibrant.apps.serving.measure import NOTHING, Asked, Measure, Measured, UpstreamError
from calibrant.apps.serving.promise import PromiseState
from calibrant.core.errors import InputError, StorageError
from calibrant.data.recalibration_map import RecalibrationMap
from calibrant.models.dispatch.limits import Breaker
from calibrant.models.ledger import Ledger
from calibrant.models.ledger.store import GroupCommit
from calibrant.trust.policy import UNIT, Cell, Row, Said, Step
from calibrant.trust.traffic_shift import CALLER

MOST_FIELDS, LONGEST_NAME = 64, 64
RECENT = 200
"""Questions of late that are held against the labelled ones."""
NO_ROOM_S = 5.0
"""Seconds for which nothing is bought after an answer that could not be kept."""
# Names under which tables hold the number of tokens of an answer.
_TOKENS = ("token_length", "completion_tokens", "tokens", "n_tokens", "length", "len")


@dataclass
class Flight:
    """A question on its way to a model, and how many wait for what comes back."""

    task: asyncio.Task[Measured]
    waiting: int = 0


@dataclass
class ServingEngine:
    """A policy, its models, and what was served.

    Parameters
    ----------
    decide
        The policy's next step.
    measures
        By model of the policy.
    ledger
        Every call.
    rows
        File that keeps a row per question, as `audit`, `label serve` and `monitor` read it.
    policy
        What is promised, and of what.
    price, per_token
        What a call, or a token of an answer, costs.
    describe
        Adds features that are computed from the text.
    mends
        What a confidence means, by model; the probability and interval told are then the map's.
    defer_shifted
        Whether questions are left to somebody else while something is known against the promise.
    clock
        The time that is written into rows.
    """

    decide: Callable[[Row, Mapping[str, Said]], Step]
    measures: Mapping[str, Measure]
    ledger: Ledger
    rows: Path
    policy: replies.Served
    price: Mapping[str, float] = field(default_factory=dict)
    per_token: bool = False
    describe: Callable[[Row], Row] | None = None
    mends: Mapping[str, RecalibrationMap] = field(default_factory=dict)
    defer_shifted: bool = False
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    counts: Counter[str] = field(default_factory=Counter)
    answered_by: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    first_words: float = 0.0
    """Seconds until the first words of streams, all together."""
    recent: deque[dict[str, object]] = field(default_factory=lambda: deque(maxlen=RECENT))
    breakers: dict[str, Breaker] = field(default_factory=dict)
    standing: PromiseState = field(init=False)
    kept: replies.RowFile = field(init=False)
    _flights: dict[tuple[str, bytes], Flight] = field(default_factory=dict)
    _commit: GroupCommit | None = None
    _lost: int = 0
    _no_room_until: float = 0.0

    def __post_init__(self) -> None:
        self.breakers = {name: Breaker() for name in self.measures}
        self.standing = PromiseState(self.rows.with_suffix(".state.json"), self.policy.id)
        self.kept = replies.RowFile(self.rows)

    async def open(self) -> None:
        """Begin: one way into the ledger serves all requests."""
        if self._commit is None:
            self._commit = GroupCommit.enter(self.ledger)

    async def close(self) -> None:
        """End: connections and ledger are closed."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for measure in self.measures.values():
            await measure.close()
        if self._commit is not None:
            await self._commit.leave()
        self.ledger.close()
        if not self.kept.catch_up():
            sys.stderr.write(f"calibrant serve: {self.kept.waiting} rows could not be written\n")

    async def ask(self, asked: Asked) -> replies.ServedReply:
        """Ask models until the policy is content, and keep what became of the question."""
        started, unkept = time.perf_counter(), self.unkept
        if (why := self.no_room) is not None:
            # Nothing is bought that could not be written down.
            raise StorageError(f"answers cannot be written down: {why}")
        question = self._question(asked)
        measurements: dict[str, Measured] = {}
        cost, failure = 0.0, None
        step = self.decide(question, {})
        while (
            step.action == "ask" and step.model in self.measures and step.model not in measurements
        ):
            try:
                measurements[step.model], paid = await self._measured(step.model, asked)
            except UpstreamError as error:
                self.counts["failures"] += 1
                if not measurements:
                    raise
                failure = f"{step.model} could not be asked: {error}"
                break
            cost += paid
            step = self.decide(question, {name: _row(item) for name, item in measurements.items()})
        reply = self._reply(step, measurements, cost, failure)
        # Of those that are asked at the same time, too, where one of them cannot be kept.
        selection = self.unkept == unkept
        reply = self._keep(asked, reply, time.perf_counter() - started, kept=selection)
        _note_in_span(reply)
        return reply

    @property
    def unkept(self) -> int:
        """Draws that were paid for and are not in the ledger."""
        return sum(measure.unrecorded for measure in self.measures.values())

    @property
    def no_room(self) -> str | None:
        """Why nothing can be written down at the moment."""
        if self.unkept > self._lost:
            self._lost, self._no_room_until = self.unkept, time.monotonic() + NO_ROOM_S
        if time.monotonic() < self._no_room_until:
            return "an answer could not be written into the ledger"
        return None if self.kept.catch_up() else self.kept.problem

    def _question(self, asked: Asked) -> Row:
        """Return what a policy may know of a question: callers name its features, nothing else."""
        if len(asked.known) > MOST_FIELDS or max(map(len, asked.known), default=0) > LONGEST_NAME:
            # It would make a table of thousands of columns.
            raise InputError(
                f"calibrant takes up to {MOST_FIELDS} fields with names of up to {LONGEST_NAME} "
                "letters",
            )
        names = {f"{CALLER}{name}": value for name, value in asked.known.items()}
        question: Row = {**asked.known, **names, "text": asked.text}
        return question if self.describe is None else self.describe(question)

    async def score(self, asked: Asked, answer: str) -> replies.ServedReply:
        """Say how probable it is that an answer at hand is right; it is neither kept nor given."""
        model, measure = next(iter(self.measures.items()))
        measurements = await measure.score(asked, answer)
        step = self.decide(self._question(asked), {model: _row(measurements)})
        paid = self._price(model, measurements)
        self.cost += paid
        # The answer is the caller's own: all of the reason may be told.
        return replace(self._reply(step, {model: measurements}, paid, None), why=measurements.why)

    async def _measured(self, model: str, asked: Asked) -> tuple[Measured, float]:
        """Ask one model; who asks the same at the same time shares the answer and its cost."""
        breaker, began = self.breakers[model], time.monotonic()
        remainder = breaker.closed_for(began)
        if remainder > 0:
            raise UpstreamError(
                f"{model} has failed and is tried again in {remainder:.0f} s", 503, remainder
            )
        measure = self.measures[model]
        key = (model, measure.key(asked))
        flight, first = self._flights.get(key), False
        if flight is None:
            first, task = True, asyncio.create_task(measure.measure(asked))
            flight = self._flights[key] = Flight(task)
            task.add_done_callback(lambda _: self._flights.pop(key, None))
        flight.waiting += 1
        try:
            measurements = await asyncio.shield(flight.task)
        except UpstreamError as error:
            # What the caller asked wrongly is no failure of the endpoint.
            if first and (error.status is None or error.status >= 429):
                breaker.failed(time.monotonic())
            raise
        except asyncio.CancelledError:
            if flight.waiting == 1:
                # The last who waited has gone away.
                self._flights.pop(key, None)
                flight.task.cancel()
            raise
        finally:
            flight.waiting -= 1
        breaker.answered(began)
        self.standing.see(model, measurements.answered_by, measurements.fingerprint)
        if not first:
            return measurements, 0.0
        self.counts["calls"] += measurements.new_calls
        return measurements, self._price(model, measurements)

    def _price(self, model: str, measurements: Measured) -> float:
        used = measurements.new_tokens if self.per_token else measurements.new_calls
        return self.price.get(model, 0.0) * used

    def _reply(
        self, step: Step, measurements: dict[str, Measured], cost: float, failure: str | None
    ) -> replies.ServedReply:
        model = step.model if step.action == "answer" else next(reversed(measurements), None)
        at_hand = NOTHING if model is None else measurements[model]
        against = self.standing.against or at_hand.cut or self.ended
        decision = "answer" if step.action == "answer" else "defer"
        if against is not None and self.defer_shifted:
            decision = "defer"
        if failure is not None:
            decision = "degraded"
        promise = self.policy.promise if against is None else f"none: {against}"
        if decision != "answer":
            promise = replies.UNPROMISED
        probability, interval = at_hand.confidence, None
        mend = self.mends.get(model or "")
        if mend is not None and probability is not None:
            interval, probability = mend.interval(probability), mend.probability(probability)
        return replies.ServedReply(
            id=secrets.token_hex(8),
            decision=decision,
            answered_by=model if decision != "defer" else None,
            asked=tuple(measurements),
            probability=probability,
            interval=interval,
            confidence=at_hand.confidence,
            why=at_hand.how_sure if decision == "defer" else at_hand.why,
            risk=step.risk,
            cost=cost,
            policy=self.policy.id,
            method=self.policy.method,
            promise=promise,
            days_left=self.policy.days_left,
            ends_when=self.policy.ends_when,
            shift=" ".join(filter(None, (self.standing.shift, at_hand.cut))) or None,
            degraded=failure,
            answer=at_hand.answer,
            model=model,
            response=at_hand.response,
        )

    @property
    def ended(self) -> str | None:
        """Why the promise is over by the calendar."""
        return f"it ended on {self.policy.expires}" if self.policy.days_left == 0 else None

    def _keep(
        self, asked: Asked, reply: replies.ServedReply, seconds: float, *, kept: bool
    ) -> replies.ServedReply:
        """Count a question and write its row; what is not kept is given without a promise."""
        if not kept and reply.decision == "answer":
            reply = replace(reply, promise=replies.UNRECORDED)
        self.counts["questions"] += 1
        self.counts[reply.decision] += 1
        self.counts["unpromised"] += reply.promise != self.policy.promise
        self.answered_by[reply.answered_by or "nobody"] += 1
        self.cost += reply.cost
        row = replies.row_of(
            reply, asked, time=self.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=seconds, method=self.policy.labelled_as,
        )  # fmt: skip
        # Confidences of the other rows tell what a whole unit is like.
        features = {
            k: v for k, v in asked.known.items() if isinstance(v, str | int | float) or k == UNIT
        }
        self.recent.append({**features, **row})
        if self.kept.write(row):
            return reply
        self.counts["unrecorded"] += 1
        return replace(reply, promise=replies.UNRECORDED) if reply.decision == "answer" else reply

    def totals(self) -> dict[str, object]:
        """Return questions, decisions and cost since the start."""
        return {
            "questions": self.counts["questions"],
            "cost": self.cost,
            "answered_by": dict(sorted(self.answered_by.items())),
            "deferred": self.counts["defer"],
            "degraded": self.counts["degraded"],
            "failures": self.counts["failures"],
            "shift": self.standing.shift,
            "expired": self.standing.known.expired,
            "unrecorded": self.counts["unrecorded"],
        }


def _note_in_span(reply: replies.ServedReply) -> None:
    """Tell the span that asks, where the program traces with OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:
        return
    fields = {
        "gen_ai.evaluation.name": f"calibrant.{reply.method}",
        "gen_ai.evaluation.score.value": reply.probability,
        "gen_ai.evaluation.score.label": reply.decision,
        "gen_ai.evaluation.explanation": reply.why,
        "gen_ai.request.model": reply.model,
    }
    attributes = {name: value for name, value in fields.items() if value is not None}
    span = import_module("opentelemetry.trace").get_current_span()
    span.add_event("gen_ai.evaluation.result", attributes)


def _row(measurements: Measured) -> dict[str, Cell]:
    """Return what a policy may know of an answer: its confidence, its length, what was said."""
    lengths = dict.fromkeys(_TOKENS, measurements.tokens)
    return {**lengths, **measurements.extra, "confidence": measurements.confidence}
