"""The runner: three turns over the dispatcher, gathered into the draws table."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from heapq import nlargest
from operator import itemgetter
from typing import Any, Protocol, cast

import msgspec
import orjson
import polars as pl
from msgspec import Struct

from calibrant.core.errors import BudgetError
from calibrant.data.study import DRAWS, TOP_TOKENS
from calibrant.models.asks import Ask, EndpointNote, LedgeredDraw, Outcome, RunProgress
from calibrant.models.dispatch.dispatcher import Dispatcher
from calibrant.models.ledger import Ledger
from calibrant.models.protocol import Completion
from calibrant.models.replies import TokenLogprobs
from calibrant.models.study.config import ModelConfig
from calibrant.models.study.plan import Inquiry, Subject, Tag
from calibrant.models.study.probes import PROBES

CHUNK = 20_000
EXTRA: dict[str, pl.DataType] = {
    "about": pl.String(),
    "answered_by": pl.String(),
    "native_n": pl.Boolean(),
    "sampler": pl.String(),
    "logprobs_refused": pl.String(),
    "served_by": pl.String(),
    "end_logprob": pl.Float64(),
    "thinking": pl.String(),
    "thinking_tokens": pl.Int64(),
    "not_sent": pl.String(),
    "token_texts": pl.List(pl.String()),
    "token_alternatives": pl.List(TOP_TOKENS),
}
_KEPT_ALTERNATIVES = 5
SCHEMA: dict[str, Any] = {**DRAWS.columns, **EXTRA}


class DrawRows:
    """Rows of the draws table; finished chunks are kept in columns, so memory stays small."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._chunks: list[pl.DataFrame] = []

    def add(self, model: str, outcome: Outcome) -> None:
        """Add every draw of an outcome."""
        tag = Tag.of(outcome.ask)
        self._rows.extend(_row(model, tag, outcome, draw) for draw in outcome.draws)
        if len(self._rows) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._chunks.append(pl.DataFrame(self._rows, schema=SCHEMA))
            self._rows = []

    def frame(self, models: Sequence[str], questions: Sequence[str]) -> pl.DataFrame:
        """Return the table in the order of the study: model, question, purpose, draw."""
        self._flush()
        if not self._chunks:
            return pl.DataFrame(schema=SCHEMA)
        purposes = list(dict.fromkeys(probe.purpose for probe in PROBES.values()))
        order = [
            pl.col("model").cast(pl.Enum(list(models))),
            pl.col("question_id").cast(pl.Enum(list(questions))),
            pl.col("purpose").cast(pl.Enum(purposes)),
            pl.col("draw"),
        ]
        return pl.concat(self._chunks).sort(order)


def _row(model: str, tag: Tag, outcome: Outcome, draw: LedgeredDraw) -> dict[str, Any]:
    completion = draw.completion
    tokens = completion.logprobs
    columns = None if tokens is None else TokenLogprobs.of(tokens)
    temperature = outcome.ask.request.temperature
    return {
        "question_id": tag.question.question_id,
        "model": model,
        "purpose": tag.probe.purpose,
        "draw": tag.probe.first_draw + tag.position + draw.index,
        "text": completion.text,
        "answer": None,
        "finish_reason": completion.finish_reason,
        "token_logprobs": None if columns is None else list(columns.values),
        "first_token_top_logprobs": (tokens and _alternatives(tokens[0].top)) or None,
        "temperature": None if "temperature" in completion.not_sent else temperature,
        "seed": completion.seed,
        "prompt_tokens": completion.usage.prompt_tokens,
        "completion_tokens": completion.usage.completion_tokens,
        "cost": draw.cost,
        "latency_s": completion.latency_s,
        "request_id": completion.request_id,
        "about": tag.about,
        "answered_by": completion.model,
        "native_n": completion.native_n,
        "sampler": orjson.dumps(dict(completion.sampler), option=orjson.OPT_SORT_KEYS).decode(),
        "logprobs_refused": completion.logprobs_refused,
        "served_by": completion.served_by,
        "end_logprob": completion.end_logprob,
        "thinking": completion.thinking,
        "thinking_tokens": completion.thinking_tokens,
        "not_sent": ", ".join(completion.not_sent) or None,
        "token_texts": None if columns is None else list(columns.tokens),
        "token_alternatives": _likeliest(tag, completion),
    }


def _alternatives(pairs: Iterable[tuple[str, float]]) -> list[dict[str, object]]:
    return [{"token": token, "logprob": logprob} for token, logprob in pairs]


def _likeliest(tag: Tag, completion: Completion) -> list[list[dict[str, object]]] | None:
    """Return the five most probable tokens at every place of a greedy answer.

    Samples are many and long: of them the alternatives of the first token are kept.
    """
    if completion.logprobs is None or tag.probe.name != "greedy":
        return None
    columns = TokenLogprobs.of(completion.logprobs)
    if columns.tops is None:
        return None
    places = map(columns.tops.of, range(len(columns)))
    return [_alternatives(nlargest(_KEPT_ALTERNATIVES, top, itemgetter(1))) for top in places]


class ProgressWatch(Protocol):
    """Something that is told how far a run is."""

    def start(self, model: str, draws: int, *, priced: bool) -> None:
        """Note that a model's turn begins; so many draws are wanted of it."""

    def update(self, progress: RunProgress) -> None:
        """Note the counts of the current model so far."""


class MissingDraws(msgspec.Struct):
    """Draws of a question that a model did not give, and why."""

    question_id: str
    model: str
    purpose: str
    missing: int
    kind: str
    reason: str
    status: int | None


# Of what `RunProgress` counts.
_COUNTED = ("draws_new", "draws_cached", "calls", "retries", "prompt_tokens", "completion_tokens",
            "cost")  # fmt: skip


class Collected(Struct, frozen=True):
    """What a run brought home.

    `failures` has an entry per ask that could not be answered, `findings` names the model of each,
    `skipped` counts second turns that had no answer to ask about, `counts` says by model what was
    sent and what came of it, summed over the turns. `stopped` says which cap ended the sending,
    where one did; all that was paid for is in the table.
    """

    draws: pl.DataFrame
    failures: list[MissingDraws]
    findings: list[tuple[str, EndpointNote]]
    skipped: dict[str, int]
    counts: list[dict[str, Any]]
    stopped: str | None = None


async def collect(
    inquiry: Inquiry,
    ledger: Ledger,
    *,
    watch: ProgressWatch | None = None,
    retry_failures: bool = False,
    **patience: Any,
) -> Collected:
    """Ask every model everything that is wanted and not yet in the ledger.

    Parameters
    ----------
    inquiry
        What is asked of whom.
    ledger
        Where every draw is kept before it is used.
    watch
        Is told about progress.
    retry_failures
        Ask again for what earlier runs set aside for good.
    **patience
        How long to try; see `Dispatcher`.
    """
    run = _Run(inquiry, ledger, watch, {"retry_failures": retry_failures, **patience})
    models = [_ModelRun(run, model) for model in inquiry.config.models]
    for model in models:
        await model.first_and_second_turn()
    pools = inquiry.pools([model.subjects for model in models])
    for model in models:
        await model.pool_turn(pools)
    names = [model.config.name for model in models]
    return Collected(
        draws=run.rows.frame(names, [question.question_id for question in inquiry.questions]),
        failures=run.failures,
        findings=[
            (model.config.name, finding)
            for model in models
            for dispatcher in model.dispatchers
            for finding in dispatcher.findings
        ],
        skipped=dict(run.skipped),
        counts=[model.counts() for model in models],
        stopped=run.stopped,
    )


class _Run(Struct):
    """What the models of one run share."""

    inquiry: Inquiry
    ledger: Ledger
    watch: ProgressWatch | None
    how: Mapping[str, Any]
    rows: DrawRows = msgspec.field(default_factory=DrawRows)
    failures: list[MissingDraws] = []
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    stopped: str | None = None


class _ModelRun:
    """One model's way through the turns."""

    def __init__(self, run: _Run, config: ModelConfig) -> None:
        self.run = run
        self.config = config
        self.asker = run.inquiry.asker(config)
        self.wanted = self.asker.wanted
        self.wants_candidates = self.wanted.judge_samples or any(
            probe.candidates or probe.per_sample for probe in self.wanted.probes(2)
        )
        self.price = run.inquiry.prices[config.name]
        self.dispatchers: list[Dispatcher] = []
        self.elapsed_s = 0.0
        self.greedy: dict[str, str] = {}
        self.samples: dict[str, list[str]] = {}
        self.subjects: dict[str, Subject] = {}

    async def first_and_second_turn(self) -> None:
        """Ask for answers, then ask about the greedy ones."""
        questions = self.run.inquiry.questions
        dispatcher = self._begin(len(questions) * self._draws(1, 2))
        async for outcome in self._ask(dispatcher, self.asker.first_turn(questions)):
            tag, texts = Tag.of(outcome.ask), [draw.completion.text for draw in outcome.draws]
            if tag.probe.name == "greedy" and texts:
                self.greedy[tag.question.question_id] = texts[0]
            elif tag.probe.name == "samples" and self.wants_candidates:
                self.samples[tag.question.question_id] = texts
        self._find_subjects()
        async for _ in self._ask(dispatcher, self.asker.second_turn(questions, self.subjects)):
            pass

    async def pool_turn(self, pools: Mapping[str, Sequence[str]]) -> None:
        """Ask for a verdict on every candidate of the pool."""
        if not self.wanted.probes(3):
            return
        dispatcher = self._begin(sum(map(len, pools.values())) * self._draws(3))
        asks = self.asker.pool_turn(self.run.inquiry.questions, pools)
        async for _ in self._ask(dispatcher, asks):
            pass

    def counts(self) -> dict[str, Any]:
        """Return what was sent and got, summed over the turns."""
        observed = [dispatcher.progress for dispatcher in self.dispatchers]
        sums = {name: sum(getattr(item, name) for item in observed) for name in _COUNTED}
        return {"model": self.config.name, **sums, "elapsed_s": self.elapsed_s}

    def _draws(self, *turns: int) -> int:
        """Return how many draws these turns want of one question (or candidate)."""
        probes = (probe.name for turn in turns for probe in self.wanted.probes(turn))
        return sum(self.wanted.draws[name] for name in probes)

    def _begin(self, draws: int) -> Dispatcher:
        """Return a dispatcher under the caps of the whole study."""
        run = self.run
        if run.watch is not None:
            run.watch.start(self.config.name, draws, priced=self.price is not None)
        dispatcher = Dispatcher(
            run.inquiry.clients[self.config.name],
            run.ledger,
            caps=run.inquiry.config.budget.caps,
            prices={} if self.price is None else {self.config.model: self.price},
            max_concurrency=run.inquiry.config.concurrency,
            progress=None if run.watch is None else run.watch.update,
            **run.how,
        )
        if run.inquiry.config.methods is not None and self.wanted.logprobs:
            # A study that names its methods would buy answers that they cannot use.
            dispatcher.insist_on("logprobs")
        self.dispatchers.append(dispatcher)
        return dispatcher

    async def _ask(self, dispatcher: Dispatcher, asks: Iterator[Ask]) -> AsyncIterator[Outcome]:
        """Yield what was answered; a cap that is reached ends the sending, not the reading."""
        started = time.monotonic()
        # Only a run with caps can be cut short, and must know then what was left.
        targets = list(asks) if self.run.inquiry.config.budget.capped else None
        finished: set[int] = set()
        try:
            if self.run.stopped is None:
                async for outcome in self._outcomes(dispatcher, targets or asks):
                    finished.add(id(outcome.ask))
                    yield outcome
        except BudgetError as error:
            self.run.stopped = str(error)
        if self.run.stopped is not None:
            remaining = [ask for ask in targets or asks if id(ask) not in finished]
            async for outcome in self._outcomes(dispatcher, ledgered_asks(dispatcher, remaining)):
                yield outcome
        self.elapsed_s += time.monotonic() - started

    async def _outcomes(
        self, dispatcher: Dispatcher, asks: Iterable[Ask]
    ) -> AsyncIterator[Outcome]:
        request = cast("AsyncGenerator[Outcome]", dispatcher.ask_all(asks))
        async with aclosing(request) as outcomes:
            async for outcome in outcomes:
                self.run.rows.add(self.config.name, outcome)
                if (problem := outcome.problem) is not None:
                    tag = Tag.of(outcome.ask)
                    row = (tag.question.question_id, self.config.name, tag.probe.purpose)
                    missing = outcome.ask.draws - len(outcome.draws)
                    why = (problem.kind, problem.message, problem.status)
                    self.run.failures.append(MissingDraws(*row, missing, *why))
                yield outcome

    def _find_subjects(self) -> None:
        """Find what second turns ask about; without an answer there is nothing to ask."""
        for question in self.run.inquiry.questions:
            name = question.question_id
            answers = (self.greedy.get(name), self.samples.get(name, ()))
            subject = self.asker.subject(question, *answers, self.run.inquiry.extract)
            if subject is None:
                self.run.skipped[self.config.name] += bool(self.wanted.probes(2))
            else:
                self.subjects[name] = subject


def ledgered_asks(dispatcher: Dispatcher, asks: Sequence[Ask]) -> Iterator[Ask]:
    """Yield the asks with as many draws as the ledger holds of each, without those it lacks.

    They need no budget: after a cap is reached everything paid for still comes home.
    """
    stored = dispatcher.ledger.held([dispatcher.prepare(ask)[1] for ask in asks])
    for ask, have in zip(asks, stored, strict=True):
        whole = next((draw for draw in range(ask.draws) if draw not in have), ask.draws)
        if whole:
            yield msgspec.structs.replace(ask, draws=whole)
