"""What a call costs, from a table that the user can edit; and how often a judge will be asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from calibrant.clients.asks import Price
from calibrant.clients.dispatch.budget import BYTES_PER_TOKEN
from calibrant.clients.endpoints.batches import DISCOUNT
from calibrant.collect.config import ModelConfig, StudyConfig
from calibrant.collect.plan import Question, Wanted
from calibrant.collect.probes import PROBES
from calibrant.collect.prompts import PromptBook
from calibrant.collect.settings import Settings
from calibrant.core.document import load_toml
from calibrant.core.errors import BudgetError, InputError

FREE = Price(0.0, 0.0)


def load_prices(path: Path | None = None) -> dict[str, Price]:
    """Return the price table: the shipped one, overlaid with the user's where there is one."""
    shipped = resources.files("calibrant.collect") / "prices.toml"
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
            found = prices[name]
            return replace(found, prompt=share * found.prompt, completion=share * found.completion)
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
    return {name: Settings(one, source=source, path=name).fill(Price) for name, one in tables}


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


@dataclass(frozen=True, slots=True)
class JudgeBound:
    """How often a judge will be asked and how often at most, with tokens, cost and the reasons.

    `calls`, `prompt_tokens`, `completion_tokens` and `cost` are the most there can be, `reason` how
    that comes about; `basis` says from what `expected` calls are expected.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    reason: str
    expected: int
    basis: str


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


def judge_bound(
    config: StudyConfig,
    questions: Sequence[Question],
    wanted: Mapping[str, Wanted],
    *,
    price: Price | None,
    seen: tuple[int, int] = (0, 0),
) -> JudgeBound | None:
    """Return the bound, or None where there is no judge or nothing for it to do.

    `seen` is how many answers and verdicts the study has already; its own rate is used then.
    """
    chosen = config.semantics
    per_answer = (chosen.clustering in JUDGING) * SAMENESS + (chosen.grading in JUDGING)
    if chosen.judge is None or not per_answer:
        return None
    calls = tokens = 0
    for model in config.models:
        own = config.for_model(model)
        answers = answers_of(wanted[model.name], own.sampling.topk)
        book = PromptBook(own.prompts, folder=own.folder)
        for question in questions:
            longest = own.sampling.max_tokens.get(
                "answer", book.find("answer", question.kind).max_tokens
            )
            size = FIXED_TOKENS + len(question.text.encode()) // BYTES_PER_TOKEN
            calls += per_answer * answers
            tokens += per_answer * answers * (size + answers * longest)
    reason = (
        f"at most {per_answer} calls for each of {calls // per_answer:,} answers, as if all of "
        "them differed and rules settled none"
    )
    answers_total = calls // per_answer
    if chosen.max_judge_calls is not None and calls > chosen.max_judge_calls:
        tokens = tokens * chosen.max_judge_calls // calls
        calls = chosen.max_judge_calls
        reason = f"max_judge_calls = {calls:,}"
    answers_seen, verdicts = seen
    # Grades share calls, classes do not.
    shared = {"grading": chosen.judge_batch}
    rate = sum(
        rate / shared.get(step, 1)
        for step, rate in EXPECTED.items()
        if getattr(chosen, step) in JUDGING
    )
    basis = BASIS
    if answers_seen >= ENOUGH_ANSWERS and verdicts:
        rate = verdicts / answers_seen
        basis = f"{verdicts:,} verdicts for the first {answers_seen:,} answers of this study"
    replies = calls * REPLY_TOKENS
    cost = None if price is None else price.cost(tokens, replies)
    expected = min(math.ceil(rate * answers_total), calls)
    return JudgeBound(calls, tokens, replies, cost, reason, expected, basis)
