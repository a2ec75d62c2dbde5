"""What a run needs beside the draws: who reads them, what is said of it, who has to agree."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import polars as pl
from msgspec.structs import asdict

from calibrant.answers.graded_samples import reading_judge
from calibrant.answers.semantics.extract import extract_answer
from calibrant.answers.semantics.llm_judge import ClientAsker, LLMJudge, open_judge
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.version import __version__
from calibrant.data import Study
from calibrant.models.endpoints.embedded import open_embedder
from calibrant.models.study.config import ModelConfig, SemanticsConfig, StudyConfig
from calibrant.models.study.costs import Forecast, load_prices, price_of
from calibrant.models.study.endpoints import agree_to_keys, open_client
from calibrant.models.study.plan import Inquiry
from calibrant.models.study.prompts import PlannedQuestion


class Prepared(Inquiry, frozen=True):
    """A study that is checked and ready to be asked.

    Parameters
    ----------
    table
        Its questions.
    unavailable
        By model: the methods that it cannot serve, and why.
    """

    table: pl.DataFrame
    unavailable: Mapping[str, Mapping[str, str]]


def run_document(prepared: Prepared, expected: Forecast | None, *, dry_run: bool) -> dict[str, Any]:
    """Return the part of the document that is known before anything is sent."""
    config, clients, prices = prepared.config, prepared.clients, prepared.prices
    # An embedded or replayed model has no price that anybody could check.
    checked = [model.name for model in config.models if model.client not in _UNPAID]
    visible = {name: asdict(price) for name in checked if (price := prices[name]) is not None}
    return {
        "schema": "calibrant.run/1",
        "version": __version__,
        "study": str(config.folder),
        "name": config.name,
        "seed": config.seed,
        "dry_run": dry_run,
        "questions": len(prepared.questions),
        "models": [
            {
                "model": model.name,
                "client": model.client,
                "name_at_endpoint": model.model,
                "endpoint": clients[model.name].endpoint,
                "endpoints": getattr(clients[model.name], "endpoints", None),
                "priced": prices[model.name] is not None,
                "price": visible.get(model.name),
                "unavailable": dict(prepared.unavailable[model.name]),
            }
            for model in config.models
        ],
        "sampling": {"draws": config.sampling.draws, "temperature": config.sampling.temperature},
        "plan": None if expected is None else expected.to_dict(),
        "results": [],
    }


CAP_REACHED = 3
"""Exit status of a run that a cap ended."""
_UNPAID = ("embedded", "replay")
# Servers that people run themselves; on this machine nobody sends a bill for them.
_OWN_SERVERS = ("vllm", "llamacpp", "ollama")
_THIS_MACHINE = ("http://127.0.0.1", "http://localhost", "http://[::1]")


def paid_models(config: StudyConfig) -> frozenset[str]:
    """Return the models that may cost money: not embedded, replayed, or served on this machine.

    Parameters
    ----------
    config
        The study.

    Examples
    --------
    >>> from pathlib import Path
    >>> from calibrant.models.study.config import parse_config
    >>> models = [{"name": "here", "client": "embedded"}, {"name": "gpt", "client": "openai"}]
    >>> config = parse_config({"questions": "q.jsonl", "models": models},
    ...                       folder=Path("study"), source="study.toml")
    >>> sorted(paid_models(config))
    ['gpt']
    """
    paid = set()
    for model in _models(config):
        value = model.options.get("base_url", _THIS_MACHINE[0])
        addresses = [value] if isinstance(value, str) else list(value)
        is_here = all(str(address).startswith(_THIS_MACHINE) for address in addresses)
        if model.client not in (_OWN_SERVERS if is_here else ()) + _UNPAID:
            paid.add(model.name)
    return frozenset(paid)


def _models(config: StudyConfig) -> list[ModelConfig]:
    judge = config.semantics.judge
    return [*config.models, *([] if judge is None else [judge])]


def spending_question(
    expected: Forecast, *, paid: Collection[str], limit: float | None = None, lost: int = 0
) -> str | None:
    """Return the question to ask before money is spent, or None where none is needed.

    Parameters
    ----------
    expected
        What is still to be sent.
    paid
        Models that may cost money.
    limit
        Dollars up to which nobody is asked; None: a known cost is never asked about.
    lost
        Answers that a damaged ledger has lost: they would be bought a second time.

    Examples
    --------
    >>> from calibrant.models.study.costs import ForecastRow
    >>> row = ForecastRow("gpt", "verb", "verb", 200, 0, 200, 9000, 4000, 2.5)
    >>> print(spending_question(Forecast((row,)), paid=["gpt"], limit=1.0))
    This study sends up to 200 calls (13,000 tokens) to gpt. They cost at most $2.50, and the
    study asks above $1.00. Send them?
    >>> spending_question(Forecast((row,)), paid=["gpt"], limit=5.0) is None
    True
    """
    rows = [row for row in expected.rows if row.calls and row.model in paid]
    if not rows:
        return None
    names = ", ".join(dict.fromkeys(row.model for row in rows))
    calls = sum(row.calls for row in rows)
    tokens = sum(row.prompt_tokens + row.completion_tokens for row in rows)
    again = f"The ledger has lost {lost:,} answers, which would be bought again. " if lost else ""
    sends = f"{again}This study sends up to {calls:,} calls ({tokens:,} tokens) to {names}"
    unpriced = list(dict.fromkeys(row.model for row in rows if row.cost is None))
    if unpriced:
        return f"{sends}. The price of {', '.join(unpriced)} is unknown. Send them?"
    cost = sum(row.cost for row in rows if row.cost is not None)
    if limit is None or cost <= limit:
        return None
    above = "" if lost else f", and the study asks above ${limit:,.2f}"
    return f"{sends}. They cost at most ${cost:,.2f}{above}. Send them?"


def agree_to_hosts(config: StudyConfig, confirm: Callable[[str], bool]) -> None:
    """Ask once whether keys may go to the hosts that the study names, or refuse to go on."""
    entries = {model.name: {"client": model.client, **model.options} for model in _models(config)}
    if (refused := agree_to_keys(entries, confirm)) is not None:
        raise InputError(
            f"nothing was sent: {refused}",
            source=str(config.folder / "study.toml"),
            hint=Hint("if that is meant, use {yes}"),
        )


def agree(
    config: StudyConfig, ahead: Forecast, confirm: Callable[[str], bool], *, lost: int
) -> None:
    """Ask for consent where one is needed, or refuse to go on."""
    limit = 0.0 if lost else config.budget.ask_above
    question = spending_question(ahead, paid=paid_models(config), limit=limit, lost=lost)
    if question is not None and not confirm(question):
        raise InputError(
            f"nothing was sent. {question.removesuffix(' Send them?')}",
            source=str(config.folder / "study.toml"),
            hint=Hint("use {yes} to send them, or {dry_run} to see the plan first"),
        )


def cap_reached(document: Mapping[str, Any]) -> str | None:
    """Say which cap ended a run, and what is missing because of it."""
    stopped = document.get("stopped")
    if not stopped:
        return None
    targets = (document.get("plan") or {}).get("total", {}).get("draws_wanted")
    got = sum(entry["draws_new"] + entry["draws_cached"] for entry in document["counts"])
    missing = (
        "" if targets is None else f"; {max(0, targets - got):,} of {targets:,} draws are missing"
    )
    return f"stopped at a cap: {stopped}{missing}\n  -> raise it in [budget] and run again"


def answer_in(question: PlannedQuestion, text: str) -> str | None:
    """Return the final answer of a response; None where there is none."""
    return extract_answer(text, kind=question.kind, choices=question.choices or None).answer


def rules_of(chosen: SemanticsConfig) -> SemanticsOptions:
    """Return the options of `annotate` without a judge."""
    embedder = open_embedder() if chosen.embeddings else None
    return SemanticsOptions(
        clustering=chosen.clustering, grading=chosen.grading, embedder=embedder, math=chosen.math
    )


@contextmanager
def semantics_options(study: Study, config: StudyConfig) -> Iterator[SemanticsOptions]:
    """Yield the options of `annotate`; a judge asks through the study's ledger and its caps."""
    choice, common = config.semantics, rules_of(config.semantics)
    judge = choice.judge
    if judge is None:
        yield replace(common, embedded=reading_judge(study.ledger_path))
        return
    client = open_client(judge, source=str(study.config_path))
    price = price_of(judge, load_prices(config.budget.prices))
    with open_judge(
        client,
        judge.model,
        study.ledger_path,
        choice.judge_batch,
        caps=config.budget.caps,
        prices={} if price is None else {judge.model: price},
        max_concurrency=config.concurrency,
    ) as speaker:
        yield replace(common, judge=speaker, max_judge_calls=choice.max_judge_calls)


def check_semantics(config: StudyConfig, source: str) -> None:
    """Check everything that clustering and grading will need, before a question is paid for.

    Nothing is sent: the judge's client is opened, one request of each kind is written and held
    against what its endpoint takes, and optional packages are looked for.
    """
    choice = config.semantics
    embedder = open_embedder() if choice.embeddings else None
    SemanticsOptions(clustering="rules", grading="rules", embedder=embedder, math=choice.math)
    if choice.judge is None:
        return
    client = open_client(choice.judge, source=source)
    judge = LLMJudge(ClientAsker(client), choice.judge.model)
    try:
        judge.check()
    finally:
        judge.run(client.close())
        judge.close()


def with_embeddings(draws: pl.DataFrame, options: SemanticsOptions) -> pl.DataFrame:
    """Return the draws with an embedding of every sampled answer, where there is an embedder."""
    if options.embedder is None:
        return draws
    sampled = (pl.col("purpose") == "answer") & (pl.col("temperature") > 0)
    texts = draws.filter(sampled).select(text=pl.coalesce("answer", "text"))["text"].unique()
    vectors = options.embedder.embed(texts.to_list())
    table = pl.DataFrame({"embedded": texts, "embedding": vectors.tolist()})
    return (
        draws.with_columns(embedded=pl.when(sampled).then(pl.coalesce("answer", "text")))
        .join(table, on="embedded", how="left", maintain_order="left")
        .drop("embedded")
    )
