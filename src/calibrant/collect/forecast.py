"""What a study would still send, and what that can cost at most, before anything is sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.clients.answers.codec import decode_completion
from calibrant.clients.asks import Ask
from calibrant.clients.dispatch.dispatcher import Dispatcher
from calibrant.collect.config import ModelConfig, StudyConfig
from calibrant.collect.plan import Inquiry, Question, Subject, Tag, pools_of
from calibrant.collect.prices import judge_bound, load_prices, price_of
from calibrant.core.errors import BudgetError
from calibrant.records.ledger import Ledger

LETTERS_PER_TOKEN = 4
JUDGE = "judge"
COUNTED = ("draws_wanted", "draws_held", "calls", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """What one probe of one model still takes; tokens and cost are the most it can be.

    `note` says how a number comes about that is a bound and no count. Where `calls` is such a
    bound, `expected_calls` is how many are expected, and `basis` from what.
    """

    model: str
    probe: str
    purpose: str
    draws_wanted: int
    draws_held: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    note: str | None = None
    expected_calls: int | None = None
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """All rows, and their sums. `cost` is None where a price is unknown."""

    rows: tuple[ForecastRow, ...]

    @property
    def total(self) -> dict[str, int]:
        """Sums over the rows."""
        return {name: sum(getattr(row, name) for row in self.rows) for name in COUNTED}

    @property
    def cost(self) -> float | None:
        """The sum of the costs."""
        costs = [row.cost for row in self.rows if row.calls]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        total = {**self.total, "cost": self.cost}
        return {"rows": [asdict(row) for row in self.rows], "total": total}


def forecast(inquiry: Inquiry, ledger: Ledger) -> Forecast:
    """Return what is missing in the ledger. Nothing is sent.

    Second turns are looked up where their answers are in the ledger; where they are not yet, an
    answer of the greatest length stands for them, so that the sums are bounds.
    """
    questions = inquiry.questions
    models = [_ModelForecast(inquiry, model, ledger) for model in inquiry.config.models]
    rows = [row for model in models for row in model.first_and_second_turn(questions)]
    judged = any(one.judge_samples for one in inquiry.wanted.values())
    pools = pools_of(questions, [model.subjects for model in models], samples=judged)
    rows += [row for model in models for row in model.pool_turn(questions, pools)]
    return Forecast((*rows, *_judge_rows(inquiry, ledger)))


def _judge_rows(inquiry: Inquiry, ledger: Ledger) -> list[ForecastRow]:
    """Return the row of the judge, where the study has one; verdicts held are not asked again."""
    config = inquiry.config
    judge = config.semantics.judge
    if judge is None:
        return []
    price = price_of(judge, load_prices(config.budget.prices))
    verdicts = ledger.draws_of_purpose(JUDGE)
    answers = sum(map(ledger.draws_of_purpose, ("answer", "greedy", "verb")))
    seen = (answers, verdicts)
    bound = judge_bound(config, inquiry.questions, inquiry.wanted, price=price, seen=seen)
    if bound is None:
        return []
    held = min(bound.calls, verdicts)
    share = 1.0 - held / bound.calls if bound.calls else 0.0
    return [
        ForecastRow(
            model=judge.name,
            probe="judge, at most",
            purpose=JUDGE,
            draws_wanted=bound.calls,
            draws_held=held,
            calls=bound.calls - held,
            prompt_tokens=round(share * bound.prompt_tokens),
            completion_tokens=round(share * bound.completion_tokens),
            cost=None if bound.cost is None else share * bound.cost,
            note=bound.reason,
            expected_calls=max(0, bound.expected - held),
            basis=bound.basis,
        )
    ]


class _ModelForecast:
    """The plan of one model."""

    def __init__(self, inquiry: Inquiry, model: ModelConfig, ledger: Ledger) -> None:
        self.asker = inquiry.asker(model)
        self.extract = inquiry.extract
        self.ledger = ledger
        price = inquiry.prices[model.name]
        known = {} if price is None else {model.model: price}
        self.dispatcher = Dispatcher(inquiry.clients[model.name], ledger, prices=known)
        self.subjects: dict[str, Subject] = {}

    def first_and_second_turn(self, questions: Sequence[Question]) -> Iterable[ForecastRow]:
        asks = list(self.asker.first_turn(questions))
        yield from self._rows(asks)
        self._find_subjects(questions, asks)
        yield from self._rows(self.asker.second_turn(questions, self.subjects))

    def pool_turn(
        self, questions: Sequence[Question], pools: Mapping[str, Sequence[str]]
    ) -> Iterable[ForecastRow]:
        if self.asker.wanted.probes(3):
            yield from self._rows(self.asker.pool_turn(questions, pools))

    def _rows(self, asks: Iterable[Ask]) -> Iterable[ForecastRow]:
        by_probe: dict[str, list[Ask]] = {}
        for ask in asks:
            by_probe.setdefault(Tag.of(ask).probe.name, []).append(ask)
        for probe, group in by_probe.items():
            plan = self.dispatcher.plan(group)
            counts = {name: getattr(plan, name) for name in COUNTED}
            purpose = Tag.of(group[0]).probe.purpose
            yield ForecastRow(self.asker.model.name, probe, purpose, **counts, cost=plan.cost)

    def _find_subjects(self, questions: Sequence[Question], asks: Sequence[Ask]) -> None:
        texts = self._ledgered_texts(
            [a for a in asks if Tag.of(a).probe.name in ("greedy", "samples")]
        )
        for question in questions:
            greedy = texts.get((question.question_id, "greedy"))
            samples = texts.get((question.question_id, "samples"), [])
            if not greedy:
                self.subjects[question.question_id] = self._stand_in(question)
                continue
            subject = self.asker.subject(question, greedy[0], samples, self.extract)
            if subject is not None:
                self.subjects[question.question_id] = subject

    def _ledgered_texts(self, asks: Sequence[Ask]) -> dict[tuple[str, str], list[str]]:
        ids = self.ledger.find([self.dispatcher.prepare(ask)[1] for ask in asks])
        place = {id_: ask for id_, ask in zip(ids, asks, strict=True) if id_ is not None}
        texts: dict[tuple[str, str], list[str]] = {}
        for draw in self.ledger.draws(list(place)):
            ask = place[draw.request_id]
            if draw.draw < ask.draws:
                key = (Tag.of(ask).question.question_id, Tag.of(ask).probe.name)
                texts.setdefault(key, []).append(decode_completion(draw.payload).text)
        return texts

    def _stand_in(self, question: Question) -> Subject:
        sampling = self.asker.config.sampling
        prompt = self.asker.book.find("answer", question.kind)
        limit = sampling.max_tokens.get("answer", prompt.max_tokens)
        longest = f"{self.asker.model.name} ".ljust(limit * LETTERS_PER_TOKEN, "x")
        return Subject(
            longest, longest, (longest,) * sampling.candidates, (longest,) * sampling.draws
        )


def check_budget(config: StudyConfig, expected: Forecast, ledger: Ledger) -> None:
    """Refuse to start where the most that the draws can cost breaks one of the study's caps.

    A judge is not counted here: its bound is far above what it will take, and a cap that it
    reaches ends its asking, with every verdict kept and rules for the rest. What the ledger has
    spent already counts. With ``budget.when = "stop"`` nothing is refused
    here; the run then stops before the call that could break the cap.
    """
    budget = config.budget
    if budget.when == "stop":
        return
    draws = Forecast(tuple(row for row in expected.rows if row.purpose != JUDGE))
    spent, total = ledger.totals(), draws.total
    tokens = total["prompt_tokens"] + total["completion_tokens"]
    spent_tokens = spent["prompt_tokens"] + spent["completion_tokens"]
    checks = (
        ("max_calls", budget.max_calls, spent["calls"], total["calls"]),
        ("max_tokens", budget.max_tokens, spent_tokens, tokens),
        ("max_cost", budget.max_cost, spent["cost"], draws.cost),
    )
    for name, cap, before, ahead in checks:
        if cap is not None and ahead is not None and ahead > 0 and before + ahead > cap:
            raise BudgetError(
                f"budget.{name} is {cap:g}; {before:g} are spent, and this study can take up to "
                f"{ahead:g} more; nothing was sent\n  -> raise the cap, ask for fewer draws or "
                'methods, or set budget.when = "stop" to go as far as the cap allows'
            )
