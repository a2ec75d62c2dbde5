"""What happens to one question: models are asked while the policy says so, then it is decided."""

import asyncio
import datetime as dt
import hashlib
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import orjson
from msgspec import Struct

from calibrant.apps.serving.measure import NOTHING, Asked, Measure, Measured, UpstreamError
from calibrant.data.mend.recalibration_map import RecalibrationMap
from calibrant.models.dispatch.commit import GroupCommit
from calibrant.models.ledger import Ledger
from calibrant.trust.policy_file import Cell, Row, Said, Step

RECENT = 200
"""Questions of late that are held against the labelled ones."""
FAILURES = 5
"""Failures in a row after which a model is left alone for a while."""
LEFT_ALONE_S = 20.0
LONGEST_S = 300.0
# Names under which tables hold the number of tokens of an answer.
_TOKENS = ("token_length", "completion_tokens", "tokens", "n_tokens", "length", "len")


@dataclass
class Breaker:
    """Leaves an endpoint alone that fails again and again; one call then finds out if it is back.

    Examples
    --------
    >>> breaker = Breaker()
    >>> for _ in range(5):
    ...     breaker.failed(now=0.0)
    >>> breaker.closed_for(now=1.0), breaker.closed_for(now=21.0)
    (19.0, 0.0)
    """

    failures: int = 0
    until: float = 0.0
    pause_s: float = LEFT_ALONE_S

    def closed_for(self, now: float) -> float:
        """Return the seconds for which nothing is sent."""
        return max(0.0, self.until - now)

    def failed(self, now: float) -> None:
        """Note a failure."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.until = now + self.pause_s
            self.pause_s = min(LONGEST_S, 2 * self.pause_s)

    def answered(self) -> None:
        """Note that it is back."""
        self.failures, self.until, self.pause_s = 0, 0.0, LEFT_ALONE_S


class Served(Struct, frozen=True):
    """A policy as it is served: its name, its method, what it promises and how long.

    `labelled_as` is the name of the method among its labels. After `expires` nothing is promised
    any more.
    """

    id: str
    method: str
    promise: str
    labelled_as: str = "confidence"
    ends_when: str | None = None
    expires: dt.date | None = None

    @property
    def days_left(self) -> int | None:
        """Days for which the promise holds; None where it names no end."""
        if self.expires is None:
            return None
        return max(0, (self.expires - dt.datetime.now(dt.UTC).date()).days)


class Reply(Struct, frozen=True, kw_only=True):
    """What became of a question: what its caller is told, then what that rests on.

    `decision` is ``answer``, ``defer`` or ``degraded``: a stronger model was wanted and failed, and
    the answer at hand is given without the promise.
    """

    decision: str
    answered_by: str | None
    asked: tuple[str, ...]
    probability: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    why: str
    risk: float | None
    cost: float
    policy: str
    method: str
    promise: str
    days_left: int | None
    ends_when: str | None
    shift: str | None
    degraded: str | None
    answer: str | None
    model: str | None
    response: Mapping[str, object] | None

    @property
    def said(self) -> dict[str, object]:
        """What a caller is told about an answer, beside the answer."""
        return {name: getattr(self, name) for name in self.__struct_fields__[:-3]}


@dataclass
class Engine:
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
        Whether questions are left to somebody else while a shift or a broken promise is known.
    """

    decide: Callable[[Row, Mapping[str, Said]], Step]
    measures: Mapping[str, Measure]
    ledger: Ledger
    rows: Path
    policy: Served
    price: Mapping[str, float] = field(default_factory=dict)
    per_token: bool = False
    describe: Callable[[Row], Row] | None = None
    mends: Mapping[str, RecalibrationMap] = field(default_factory=dict)
    defer_shifted: bool = False
    shift: str | None = None
    """What about the questions of late is not as it was certified."""
    expired: str | None = None
    """Why the promise does not hold any more."""
    counts: Counter[str] = field(default_factory=Counter)
    answered_by: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    seconds: float = 0.0
    first_words: float = 0.0
    """Seconds until the first words of streams, all together."""
    recent: deque[dict[str, object]] = field(default_factory=lambda: deque(maxlen=RECENT))
    breakers: dict[str, Breaker] = field(default_factory=dict)
    _flights: dict[tuple[str, bytes], asyncio.Task[Measured]] = field(default_factory=dict)
    _commit: GroupCommit | None = None

    def __post_init__(self) -> None:
        self.breakers = {name: Breaker() for name in self.measures}

    async def open(self) -> None:
        """Begin: one way into the ledger serves all requests."""
        if self._commit is None:
            self._commit = GroupCommit.enter(self.ledger)

    async def close(self) -> None:
        """End: connections and ledger are closed."""
        for flight in list(self._flights.values()):
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        for measure in self.measures.values():
            await measure.close()
        if self._commit is not None:
            await self._commit.leave()
        self.ledger.close()

    async def ask(self, asked: Asked) -> Reply:
        """Ask models until the policy is content, and keep what became of the question."""
        started = time.perf_counter()
        question: Row = {"text": asked.text, **asked.known}
        if self.describe is not None:
            question = self.describe(question)
        measured: dict[str, Measured] = {}
        cost, failure = 0.0, None
        step = self.decide(question, {})
        while step.action == "ask" and step.model in self.measures and step.model not in measured:
            try:
                measured[step.model], paid = await self._measured(step.model, asked)
            except UpstreamError as error:
                self.counts["failures"] += 1
                if not measured:
                    raise
                failure = f"{step.model} could not be asked: {error}"
                break
            cost += paid
            step = self.decide(question, {name: _row(one) for name, one in measured.items()})
        reply = self._reply(step, measured, cost, failure)
        self._keep(asked, reply, time.perf_counter() - started)
        _note_in_span(reply)
        return reply

    async def score(self, asked: Asked, answer: str) -> Reply:
        """Say how probable it is that an answer at hand is right; it is neither kept nor given."""
        model, measure = next(iter(self.measures.items()))
        measured = await measure.score(asked, answer)
        step = self.decide({"text": asked.text, **asked.known}, {model: _row(measured)})
        paid = self._price(model, measured)
        self.cost += paid
        return self._reply(step, {model: measured}, paid, None)

    async def _measured(self, model: str, asked: Asked) -> tuple[Measured, float]:
        """Ask one model; who asks the same at the same time shares the answer and its cost."""
        breaker = self.breakers[model]
        rest = breaker.closed_for(time.monotonic())
        if rest > 0:
            raise UpstreamError(f"{model} has failed and is tried again in {rest:.0f} s", 503, rest)
        measure = self.measures[model]
        key = (model, measure.key(asked))
        flight = self._flights.get(key)
        first = flight is None
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(measure.measure(asked))
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        try:
            measured = await asyncio.shield(flight)
        except UpstreamError as error:
            # What the caller asked wrongly is no failure of the endpoint.
            if first and (error.status is None or error.status >= 429):
                breaker.failed(time.monotonic())
            raise
        breaker.answered()
        if not first:
            return measured, 0.0
        self.counts["calls"] += measured.new_calls
        return measured, self._price(model, measured)

    def _price(self, model: str, measured: Measured) -> float:
        used = measured.new_tokens if self.per_token else measured.new_calls
        return self.price.get(model, 0.0) * used

    def _reply(
        self, step: Step, measured: dict[str, Measured], cost: float, failure: str | None
    ) -> Reply:
        model = step.model if step.action == "answer" else next(reversed(measured), None)
        at_hand = NOTHING if model is None else measured[model]
        troubled = self.defer_shifted and (self.shift or self.expired)
        decision = "answer" if step.action == "answer" and not troubled else "defer"
        if failure is not None:
            decision = "degraded"
        probability, interval = at_hand.confidence, None
        mend = self.mends.get(model or "")
        if mend is not None and probability is not None:
            interval, probability = mend.interval(probability), mend.probability(probability)
        return Reply(
            decision=decision,
            answered_by=model if decision != "defer" else None,
            asked=tuple(measured),
            probability=probability,
            interval=interval,
            confidence=at_hand.confidence,
            why=at_hand.why,
            risk=step.risk,
            cost=cost,
            policy=self.policy.id,
            method=self.policy.method,
            promise=self._promise_for(decision),
            days_left=self.policy.days_left,
            ends_when=self.policy.ends_when,
            shift=self.shift,
            degraded=failure,
            answer=at_hand.answer,
            model=model,
            response=at_hand.response,
        )

    def _promise_for(self, decision: str) -> str:
        """Return what is promised of this very answer."""
        if decision != "answer":
            return "none for this answer"
        if self.expired is not None:
            return f"none: {self.expired}"
        if self.policy.days_left == 0:
            return f"none: it ended on {self.policy.expires}"
        return self.policy.promise

    def _keep(self, asked: Asked, reply: Reply, seconds: float) -> None:
        self.counts["questions"] += 1
        self.counts[reply.decision] += 1
        self.answered_by[reply.answered_by or "nobody"] += 1
        self.cost += reply.cost
        self.seconds += seconds
        row: dict[str, object] = {
            "question_id": asked.question_id,
            "question": asked.text,
            **{k: v for k, v in asked.known.items() if isinstance(v, str | int | float)},
            "model": reply.model,
            "method": self.policy.labelled_as,
            "answer": reply.answer,
            "confidence": reply.confidence,
            "probability": reply.probability,
            "decision": reply.decision,
            "policy": reply.policy,
            "cost": reply.cost,
            "seconds": seconds,
            "promised": not reply.promise.startswith("none"),
            "shift": reply.shift,
            # A replay of recorded traffic says itself when a question was asked.
            "time": asked.known.get("time") or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self.recent.append(row)
        with self.rows.open("ab") as file:
            file.write(orjson.dumps(row, default=str) + b"\n")

    def totals(self) -> dict[str, object]:
        """Return questions, decisions and cost since the start."""
        return {
            "questions": self.counts["questions"],
            "cost": self.cost,
            "answered_by": dict(sorted(self.answered_by.items())),
            "deferred": self.counts["defer"],
            "degraded": self.counts["degraded"],
            "failures": self.counts["failures"],
            "shift": self.shift,
            "expired": self.expired,
        }


def _note_in_span(reply: Reply) -> None:
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


def _row(measured: Measured) -> dict[str, Cell]:
    """Return what a policy may know of an answer: its confidence, its length, what was said."""
    lengths = dict.fromkeys(_TOKENS, measured.tokens)
    return {**lengths, **measured.extra, "confidence": measured.confidence}


def policy_id(path: str | Path) -> str:
    """Return a short name of the very file."""
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=6).hexdigest()
