"""What calls cost, and what a study would still send and cost at most."""

import math
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from calibrant.core.document import load_toml
from calibrant.core.errors import BudgetError, InputError
from calibrant.models.asks import Ask, Price
from calibrant.models.codec import decode_completion
from calibrant.models.dispatch.dispatcher import Dispatcher
from calibrant.models.dispatch.limits import BYTES_PER_TOKEN
from calibrant.models.endpoints.batches import DISCOUNT
from calibrant.models.ledger import Ledger
from calibrant.models.study.config import ModelConfig, StudyConfig
from calibrant.models.study.plan import Inquiry, Subject, Tag, Wanted
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import PlannedQuestion
from calibrant.models.study.settings import Settings

FREE = Price(0.0, 0.0)


def load_prices(path: Path | None = None) -> dict[str, Price]:
    """Return the price table: the shipped one, overlaid with the user's where there is one."""
    shipped = resources.files("calibrant.models.study") / "prices.toml"
    prices = _parse(shipped.read_text(encoding="utf-8"), source="shipped prices.toml")
    if path is not None:
        if not path.is_file():
            raise InputError("there is no such price table", source=str(path))
        prices |= _parse(path.read_text(encoding="utf-8"), source=str(path))
    return prices


def price_of(model: ModelConfig, prices: dict[str, Price]) -> Price | None:
    """Return the price of a model, or ``None`` where it is unknown.

    The embedded model and replays cost nothing, batches half. A dated name finds
    the price of its family, the longest name first.
    """
    if model.client in ("embedded", "replay"):
        return FREE
    share = DISCOUNT if "batch" in model.options else 1.0
    for name in sorted(prices, key=len, reverse=True):
        if model.price == name or model.price.startswith(f"{name}-"):
            full = prices[name]
            return structs.replace(
                full, prompt=share * full.prompt, completion=share * full.completion
            )
    return None


def study_prices(config: StudyConfig) -> dict[str, Price | None]:
    """Return the price of every model of the study; a cap on money needs all of them."""
    table = load_prices(config.budget.prices)
    prices = {model.name: price_of(model, table) for model in config.models}
    unknown = [name for name, price in prices.items() if price is None]
    if unknown and config.budget.max_cost is not None:
        raise BudgetError(
            f"budget.max_cost is set, but the price of {', '.join(unknown)} is unknown\n"
            '  -> add it to a price table and name that: [budget] prices = "prices.toml"'
        )
    return prices


def _parse(text: str, *, source: str) -> dict[str, Price]:
    tables = load_toml(text, source=source).items()
    return {name: Settings(item, source=source, path=name).fill(Price) for name, item in tables}


LETTERS_PER_TOKEN = 4
JUDGE = "judge"
JUDGING = ("hybrid", "judge")
SAMENESS = 3
"""Calls that may be needed to place one answer among the others: two, and a third to decide."""
FIXED_TOKENS = 300
"""Instructions, form and code of a call to the judge."""
REPLY_TOKENS = 64
EXPECTED = {"clustering": 0.43, "grading": 0.20}
"""Calls per answer, the mean of two recorded studies: 0.17 and 0.11 for DeepSeek-V3 on MACE, 0.69
and 0.30 for LLaMA-13B on TriviaQA. Rules settle the rest."""
BASIS = (
    "0.43 calls per answer for classes and 0.20 for grades, between recorded answers of a strong "
    "model (0.17, 0.11) and a weak one (0.69, 0.30)"
)
ENOUGH_ANSWERS = 50
"""From so many answers of the study itself its own rate is the better forecast."""
COUNTED = ("draws_wanted", "draws_held", "calls", "prompt_tokens", "completion_tokens")


class ForecastRow(Struct, frozen=True):
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


class Forecast(Struct, frozen=True):
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
        priced = [cost for cost in costs if cost is not None]
        return sum(priced) if len(priced) == len(costs) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        total = {**self.total, "cost": self.cost}
        return {"rows": [structs.asdict(row) for row in self.rows], "total": total}


def forecast(inquiry: Inquiry, ledger: Ledger) -> Forecast:
    """Return what is missing in the ledger. Nothing is sent.

    Second turns are looked up where their answers are in the ledger; where they are not yet, an
    answer of the greatest length stands for them, so that the sums are bounds.
    """
    questions = inquiry.questions
    models = [_ModelForecast(inquiry, model, ledger) for model in inquiry.config.models]
    rows = [row for model in models for row in model.first_and_second_turn(questions)]
    pools = inquiry.pools([model.subjects for model in models])
    for model in models:
        rows.extend(model.rows(model.asker.pool_turn(questions, pools)))
    if (judge := inquiry.config.semantics.judge) is not None:
        price = price_of(judge, load_prices(inquiry.config.budget.prices))
        answers = sum(map(ledger.draws_of_purpose, ("answer", "greedy", "verb")))
        row = judge_row(inquiry, price=price, seen=(answers, ledger.draws_of_purpose(JUDGE)))
        rows.extend([] if row is None else [row])
    return Forecast(tuple(rows))


def answers_of(wanted: Wanted, topk: int) -> int:
    """Return how many answers of one question and model are told apart and graded at most.

    Examples
    --------
    >>> answers_of(Wanted({"greedy": 1, "samples": 8, "verb_topk": 1, "p_true": 8}), topk=3)
    12
    """
    per_draw = {"answer": 1, "greedy": 1, "verb": 1, "verb_topk": topk}
    return sum(
        count * per_draw.get(PROBES[name].purpose, 0) for name, count in wanted.draws.items()
    )


def judge_row(
    inquiry: Inquiry, *, price: Price | None, seen: tuple[int, int] = (0, 0)
) -> ForecastRow | None:
    """Return the row of the judge, or None where there is none or nothing for it to do.

    `seen` is how many answers and verdicts the study has already: its own rate is used then, and
    the verdicts are not asked for again.
    """
    choice = inquiry.config.semantics
    places, grades = (mode in JUDGING for mode in (choice.clustering, choice.grading))
    per_answer = places * SAMENESS + grades
    if choice.judge is None or not per_answer:
        return None
    answers, tokens = _told_apart(inquiry)
    calls = most = per_answer * answers
    note = (
        f"at most {per_answer} calls for each of {answers:,} answers, as if all of "
        "them differed and rules settled none"
    )
    if choice.max_judge_calls is not None and most > choice.max_judge_calls:
        calls = choice.max_judge_calls
        note = f"max_judge_calls = {calls:,}"
    answers_seen, verdicts = seen
    # Grades share calls, classes do not.
    rate = places * EXPECTED["clustering"] + grades * EXPECTED["grading"] / choice.judge_batch
    basis = BASIS
    if answers_seen >= ENOUGH_ANSWERS and verdicts:
        rate = verdicts / answers_seen
        basis = f"{verdicts:,} verdicts for the first {answers_seen:,} answers of this study"
    n_answered = min(calls, verdicts)
    lead = 1.0 - n_answered / calls if calls else 0.0
    tokens, replies = per_answer * tokens * calls // max(most, 1), calls * REPLY_TOKENS
    return ForecastRow(
        model=choice.judge.name,
        probe="judge, at most",
        purpose=JUDGE,
        draws_wanted=calls,
        draws_held=n_answered,
        calls=calls - n_answered,
        prompt_tokens=round(lead * tokens),
        completion_tokens=round(lead * replies),
        cost=None if price is None else lead * price.cost(tokens, replies),
        note=note,
        expected_calls=max(0, min(math.ceil(rate * answers), calls) - n_answered),
        basis=basis,
    )


def _told_apart(inquiry: Inquiry) -> tuple[int, int]:
    """Return how many answers there can be, and the tokens of one call about each of them."""
    answers = tokens = 0
    for model in inquiry.config.models:
        asker = inquiry.asker(model)
        count = answers_of(asker.wanted, asker.config.sampling.topk)
        for question in inquiry.questions:
            size = FIXED_TOKENS + len(question.text.encode()) // BYTES_PER_TOKEN
            answers += count
            tokens += count * (size + count * asker.most_tokens("answer", question.kind))
    return answers, tokens


class _ModelForecast:
    """The plan of one model."""

    def __init__(self, inquiry: Inquiry, model: ModelConfig, ledger: Ledger) -> None:
        self.asker = inquiry.asker(model)
        self.extract = inquiry.extract
        self.ledger = ledger
        price = inquiry.prices[model.name]
        by_model = {} if price is None else {model.model: price}
        self.dispatcher = Dispatcher(inquiry.clients[model.name], ledger, prices=by_model)
        self.subjects: dict[str, Subject] = {}

    def first_and_second_turn(self, questions: Sequence[PlannedQuestion]) -> Iterable[ForecastRow]:
        asks = list(self.asker.first_turn(questions))
        yield from self.rows(asks)
        self._find_subjects(questions, asks)
        yield from self.rows(self.asker.second_turn(questions, self.subjects))

    def rows(self, asks: Iterable[Ask]) -> Iterable[ForecastRow]:
        by_probe: dict[str, list[Ask]] = {}
        for ask in asks:
            by_probe.setdefault(Tag.of(ask).probe.name, []).append(ask)
        for probe, group in by_probe.items():
            plan = self.dispatcher.plan(group)
            counts = {name: getattr(plan, name) for name in COUNTED}
            purpose = Tag.of(group[0]).probe.purpose
            yield ForecastRow(self.asker.model.name, probe, purpose, **counts, cost=plan.cost)

    def _find_subjects(self, questions: Sequence[PlannedQuestion], asks: Sequence[Ask]) -> None:
        answers = [ask for ask in asks if Tag.of(ask).probe.name in ("greedy", "samples")]
        texts, times_of = self._ledgered_texts(answers), self.asker.config.sampling
        for question in questions:
            greedy = texts.get((question.question_id, "greedy"))
            samples = texts.get((question.question_id, "samples"), [])
            if not greedy:
                letters = LETTERS_PER_TOKEN * self.asker.most_tokens("answer", question.kind)
                longest = f"{self.asker.model.name} ".ljust(letters, "x")
                times = (times_of.candidates, times_of.draws)
                stand_in = Subject(longest, longest, *((longest,) * n for n in times))
                self.subjects[question.question_id] = stand_in
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
    cost, total = ledger.totals(), draws.total
    tokens = total["prompt_tokens"] + total["completion_tokens"]
    spent_tokens = cost["prompt_tokens"] + cost["completion_tokens"]
    checks = (
        ("max_calls", budget.max_calls, cost["calls"], total["calls"]),
        ("max_tokens", budget.max_tokens, spent_tokens, tokens),
        ("max_cost", budget.max_cost, cost["cost"], draws.cost),
    )
    for name, cap, before, lead in checks:
        if cap is not None and lead is not None and lead > 0 and before + lead > cap:
            raise BudgetError(
                f"budget.{name} is {cap:g}; {before:g} are spent, and this study can take up to "
                f"{lead:g} more; nothing was sent\n  -> raise the cap, ask for fewer draws or "
                'methods, or set budget.when = "stop" to go as far as the cap allows'
            )
