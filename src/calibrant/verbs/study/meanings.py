"""The semantics step of a study: which tools cluster and grade its answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from calibrant.answers.samples.source import reading_judge
from calibrant.answers.semantics.asking import ClientAsker
from calibrant.answers.semantics.extract import extract_answer
from calibrant.answers.semantics.llm_judge import LLMJudge, open_judge
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.data import Study
from calibrant.models.endpoints.embedded import open_embedder
from calibrant.models.study.config import SemanticsConfig, StudyConfig
from calibrant.models.study.costs import load_prices, price_of
from calibrant.models.study.endpoints import open_client
from calibrant.models.study.plan import PlannedQuestion


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
