"""`run`: questions -> draws -> semantics -> scores -> audit, in one study folder."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from msgspec import to_builtins
from msgspec.structs import replace

from calibrant.answers.candidates import candidate_scores, consistency_candidates
from calibrant.answers.confidence import METHODS, Options, needs_of, score_table
from calibrant.answers.semantics.annotate import annotate
from calibrant.core.errors import InputError, require_known
from calibrant.core.event_loop import OwnLoop
from calibrant.core.hints import Hint
from calibrant.core.shared_options import About, Engine, MendColumns, Similarity, Tau, Variant
from calibrant.core.verb import INPUT, Check, Option, Supplied, verb
from calibrant.data import Study
from calibrant.data.mend import maps_of_models, mended_columns
from calibrant.data.questions import load_questions, tabular_questions
from calibrant.data.sources.engines import engine_named
from calibrant.models.ledger import Ledger
from calibrant.models.ledger.repair import repair_ledger
from calibrant.models.protocol import Client
from calibrant.models.study.config import StudyConfig, load_config
from calibrant.models.study.costs import check_budget, forecast, study_prices
from calibrant.models.study.endpoints import open_client, probe_endpoint
from calibrant.models.study.plan import select_probes
from calibrant.models.study.probes import POOL, STATED_POOL
from calibrant.models.study.prompts import iterate_questions
from calibrant.models.study.runner import Collected, ProgressWatch, collect
from calibrant.report.result import RunResult
from calibrant.verbs.audit import audit
from calibrant.verbs.study.analysis import write_study_page
from calibrant.verbs.study.run_document import (
    CAP_REACHED,
    Prepared,
    agree,
    agree_to_hosts,
    answer_in,
    cap_reached,
    check_semantics,
    paid_models,
    run_document,
    semantics_options,
    with_embeddings,
)

FAILURES_SHOWN = 50
_SUMMARY = ("accuracy", "mean_confidence", "ece", "auroc")


@verb(
    example="calibrant run study --dry-run",
    resumable=True,
    checks=(Check("", "", cap_reached, CAP_REACHED),),
)
def run(
    study: Annotated[str | Path, Option(metavar="STUDY", group=INPUT, argument=True, place="read")],
    *,
    dry_run: Annotated[bool, Option()] = False,
    retry_failures: Annotated[bool, Option()] = False,
    repair: Annotated[bool, Option()] = False,
    probe: Annotated[bool, Option()] = False,
    yes: Annotated[bool, Option()] = False,
    watch: Annotated[ProgressWatch | None, Supplied("progress")] = None,
    confirm: Annotated[Callable[[str], bool] | None, Supplied("confirmation")] = None,
    about: About = None,
    variant: Variant = None,
    tau: Tau = None,
    similarity: Similarity = None,
    mend: MendColumns = None,
    engine: Engine = None,
) -> RunResult:
    """Ask models what a study wants to know, and score and audit the answers.

    What the ledger holds is never asked for again: a second call, or a call after an
    interruption, goes on where the first one ended.

    Parameters
    ----------
    study
        Study folder, or its study.toml.
    dry_run
        Say what would be sent and what it can cost.

        Nothing is sent.
    retry_failures
        Ask again what failed for good in an earlier run.
    repair
        First check the ledger; put the backup in the place of a damaged one, keep a copy.

        What can still be read is added, and what cannot is asked for again.
    probe
        Only show what each endpoint can do, for at most 3 calls per model.
    yes
        Do not ask before calls whose cost is unknown or above budget.ask_above.
    watch
        Is told about progress.
    confirm
        Is asked before such calls. Without it, as usual in Python, nobody is asked.
    about, variant, tau, similarity
        How scores are made, in place of what ``[scoring]`` in study.toml says.
    mend
        A file that `mend` saved: scores get columns ``mended``, ``mended_low``, ``mended_high``.
    engine
        Share out clustering and grading by rules, and Sem-ECE: ``local`` (threads), ``ray`` or
        ``ray://HOST:PORT``. The tables and documents are the same. Not with a judge or
        embeddings, which work on the whole table at once.

    Returns
    -------
    RunResult
        Document ``calibrant.run/1``.
    """
    folder = Study(Path(study).parent if Path(study).name == "study.toml" else study)
    config = load_config(folder)
    values = {"about": about, "variant": variant, "tau": tau, "similarity": similarity}
    choice = {name: value for name, value in values.items() if value is not None}
    config = replace(config, scoring=replace(config.scoring, **choice))
    source = str(folder.config_path)
    if engine is not None:
        _check_engine(engine, config, source)
    if mend is not None:
        # Refused before a question is asked and paid for.
        maps_of_models(mend, [model.name for model in config.models])
    questions = _questions(config)
    check_semantics(config, source)
    clients = {model.name: open_client(model, source=source) for model in config.models}
    prepared = _prepare(config, questions, clients)
    if confirm is not None and not (yes or dry_run):
        agree_to_hosts(config, confirm)
    if probe:
        with OwnLoop() as loop:
            probed = loop.run(_probe(config, clients))
        return RunResult({**run_document(prepared, None, dry_run=True), "probe": probed})
    repaired = repair_ledger(folder.ledger_path) if repair else None
    expected = collected = None
    with _ledger(folder, dry_run=dry_run) as ledger, _loop_of(clients.values()) as loop:
        if dry_run or config.budget.capped:
            expected = forecast(prepared, ledger)
        if not dry_run:
            if expected is not None:
                check_budget(config, expected, ledger)
            # Only then is begun: no display covers the question.
            if confirm is not None and not yes and paid_models(config):
                lead = expected or forecast(prepared, ledger)
                agree(config, lead, confirm, lost=0 if repaired is None else repaired.lost)
            work = collect(prepared, ledger, watch=watch, retry_failures=retry_failures)
            collected = loop.run(work)
    document = run_document(prepared, expected, dry_run=dry_run)
    if repaired is not None:
        document["repair"] = to_builtins(repaired, enc_hook=str)
    if collected is not None:
        document |= _digest(folder, prepared, collected, engine, mend)
        folder.write_result("run", document)
        write_study_page(folder)
    return RunResult(document)


async def arun(study: str | Path, **options: Any) -> RunResult:
    """Run a study without holding up the event loop; the options are those of `run`.

    The study is asked, graded and audited in a thread. Cancelling the wait does not stop the
    thread; what was answered is in the ledger either way.

    Parameters
    ----------
    study
        Folder that holds ``study.toml``, or that file.
    **options
        See `calibrant.run`.

    Returns
    -------
    RunResult
        Document ``calibrant.run/1``.
    """
    return await asyncio.to_thread(run, study, **options)


async def _probe(config: StudyConfig, clients: Mapping[str, Client]) -> list[dict[str, Any]]:
    reports = []
    for model in config.models:
        client = clients[model.name]
        reports.append({"model": model.name, **await probe_endpoint(client, model.model)})
        await client.close()
    return reports


def _check_engine(engine: str, config: StudyConfig, source: str) -> None:
    """Refuse an engine that cannot be used before a question is asked and paid for."""
    engine_named(engine)
    used = {"judge": config.semantics.judge is not None, "embeddings": config.semantics.embeddings}
    name = next((item for item, is_used in used.items() if is_used), None)
    if name is not None:
        raise InputError(
            Hint(
                "semantics.{0} works on the whole table at once, and {engine} shares it out", name
            ),
            source=source,
            hint=Hint("leave out {engine}, or semantics.{0}", name),
        )


def _prepare(config: StudyConfig, table: pl.DataFrame, clients: Mapping[str, Client]) -> Prepared:
    questions = list(iterate_questions(table))
    names = list(METHODS) if config.methods is None else config.methods
    source = str(config.folder / "study.toml")
    require_known(names, METHODS, "methods: there is no method {}", source=source)
    scoring = Options(**config.scoring.given)
    needs = {name: needs_of(METHODS[name], scoring) for name in names}
    kinds = {question.kind for question in questions}
    selections = {
        name: select_probes(needs, config, client.capabilities, kinds=kinds, model=name)
        for name, client in clients.items()
    }
    target_names = {name: selection.wanted for name, selection in selections.items()}
    unavailable = {name: selection.unavailable for name, selection in selections.items()}
    prices = study_prices(config)
    read = answer_in
    return Prepared(config, questions, target_names, clients, prices, read, table, unavailable)


def _questions(config: StudyConfig) -> pl.DataFrame:
    source = config.questions
    if source.tabular is not None:
        return tabular_questions(source.path, source.tabular, limit=source.limit)
    return load_questions(source.path, layout=source.layout, limit=source.limit)


@contextmanager
def _ledger(study: Study, *, dry_run: bool) -> Iterator[Ledger]:
    """Open the study's ledger; a dry run leaves no file behind."""
    selection = study.ledger_path.is_file()
    with tempfile.TemporaryDirectory() as folder:
        path = study.ledger_path if selection or not dry_run else Path(folder) / "ledger"
        with Ledger(path, read_only=selection and dry_run) as ledger:
            yield ledger


@contextmanager
def _loop_of(clients: Iterable[Client]) -> Iterator[OwnLoop]:
    """Yield a loop for the clients, which are closed in it at the end."""

    async def close() -> None:
        for client in clients:
            await client.close()

    with OwnLoop() as loop:
        try:
            yield loop
        finally:
            loop.run(close())


# -- from draws to results -------------------------------------------------------------------


def _digest(
    study: Study,
    prepared: Prepared,
    collected: Collected,
    engine: str | None,
    mend: str | Path | None,
) -> dict[str, Any]:
    """Write the tables and the audit, and return what the document says about them."""
    config, table = prepared.config, prepared.table
    answers = collected.draws.filter(~pl.col("purpose").is_in([POOL, STATED_POOL]))
    pool, confidence = (collected.draws.filter(purpose=name) for name in (POOL, STATED_POOL))
    mapper = None if engine is None else engine_named(engine).map
    with semantics_options(study, config) as options:
        annotated = annotate(answers, table, options=options, mapper=mapper)
        draws, semantics = annotated
        embedded = with_embeddings(draws, options)
        verdicts = pl.concat([embedded, pool], how="diagonal") if pool.height else embedded
        how = config.scoring.given
        scored = score_table(
            verdicts, semantics, table, methods=config.methods, seed=config.seed, **how
        )
        pools = [
            candidate_scores(pool, draws, table, options=options),
            candidate_scores(confidence, draws, table, options=options, purpose="self_ask"),
            consistency_candidates(draws, scored.scores),
        ]
    tables = {
        "questions": table,
        "draws": draws,
        "semantics": semantics,
        "scores": scored.scores if mend is None else mended_columns(scored.scores, mend),
    }
    if candidates := [pool for pool in pools if pool is not None]:
        tables["candidates"] = pl.concat(candidates, how="vertical_relaxed")
    for name, frame in tables.items():
        study.write(name, frame)
    study.write_result("semantics", annotated.document)
    results: list[dict[str, Any]] = []
    if scored.scores.drop_nulls(["confidence", "correct"]).height:
        audited = audit(study.path, on_invalid="drop", seed=config.seed, engine=engine)
        study.write_result("audit", audited.to_dict())
        for entry in audited["results"]:
            head = {name: entry[name] for name in ("model", "method", "n", "probability")}
            metrics = entry["metrics"]
            results.append(head | {name: metrics[name] for name in _SUMMARY if name in metrics})
    lacks = prepared.unavailable
    return {
        "counts": collected.counts,
        "tables": {name: frame.height for name, frame in tables.items()},
        "unread": [entry for entry in scored.failures if entry["unread"]],
        "failures": {
            "count": len(collected.failures),
            "shown": to_builtins(collected.failures[:FAILURES_SHOWN]),
        },
        "findings": [{"model": n, **to_builtins(item)} for n, item in collected.findings],
        "stopped": collected.stopped or annotated.document["judge_stopped"],
        "skipped_second_turns": collected.skipped,
        # How many questions were scored, or why none was.
        "methods": [
            {**entry, "reason": lacks[entry["model"]].get(entry["method"], entry["reason"])}
            for entry in scored.availability
        ],
        "results": results,
    }
