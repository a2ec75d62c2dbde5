"""`compare`: is A better calibrated than B, or only more accurate?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from calibrant.comparison import compare_models
from calibrant.comparison.multiplicity import correct_pairs
from calibrant.confidence import methods
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.naming import naming
from calibrant.core.rng import named_stream
from calibrant.core.verb import ADVANCED, INPUT, Option, verb
from calibrant.inputs.compare_input import opened
from calibrant.inputs.engines import engine_named
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.inputs.streaming import is_large
from calibrant.planning import verification_block
from calibrant.records import Scores, Study, load_scores
from calibrant.report.result import Result
from calibrant.verbs._options import (
    AnswerColumn,
    Bins,
    By,
    ConfidenceColumn,
    CorrectColumn,
    Data,
    Engine,
    Graded,
    Level,
    MethodColumn,
    ModelColumn,
    Models,
    OnInvalidByInput,
    QuestionColumn,
    Resamples,
    Scale,
    Seed,
)
from calibrant.verbs.streamed_compare import streamed_compare

__all__ = ["compare"]

# The paired bootstrap takes 4 kB per question in memory; larger tables are compared in parts.
STREAM_ROWS = 1_000_000
_NO_PROBABILITY = "the score is no probability, and calibration is what is compared"
_TURNED = Hint(
    "recalibrate it: `{call}` audits it as a probability",
    call=Call("audit", "INPUT", recalibrate="platt"),
)


@verb(example="calibrant compare scores.csv --models small,large --html compare.html")
def compare(
    data: Data,
    *,
    models: Models = None,
    candidates: Annotated[
        Any,
        Option(
            "Every model's confidence in every model's answer (candidate-aligned view).",
            metavar="TABLE",
            group=INPUT,
            place="read",
        ),
    ] = None,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    by: By = (),
    bins: Bins = 15,
    target: Annotated[
        str | float,
        Option(
            "Accuracy that all are brought to.",
            metavar="weakest|strongest|mean|NUMBER",
            kind="name or number",
            above=0,
            below=1,
        ),
    ] = "weakest",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    lipschitz: Annotated[
        float,
        Option(
            "Lipschitz constant behind the verification floor.",
            metavar="L",
            group=ADVANCED,
            min=0,
            max=1e6,
        ),
    ] = 1.0,
    on_invalid: OnInvalidByInput = None,
    graded: Graded = False,
    scale: Scale = "fraction",
    engine: Engine = None,
    seed: Seed = 0,
) -> Result:
    """Compare the calibration of models under matched outcomes.

    Parameters
    ----------
    data
        A scores table with several models (path, dataframe), a list of tables, a study, or a
        list of foreign logs.
    models
        Models to compare; None takes all.
    candidates
        Table with question_id, judge, author, confidence (and answer): every model's confidence
        in every model's answer, for the candidate-aligned view. A study may hold it.
    confidence, correct, model, method, question, answer
        Column names where they differ from the scores schema.
    by
        Columns that split the questions into groups with comparisons of their own.
    bins, target, level, resamples, lipschitz
        See `calibrant.comparison.compare_models`.
    on_invalid, graded, scale
        Rules for the rows, see `calibrant.records.load_scores`; by default a table stops at a
        bad row, and a study drops and counts it.
    engine
        Where the work is shared out: ``local`` (threads), ``ray`` or ``ray://HOST:PORT``. A
        table of up to a million rows is compared in memory, method by method and group by group;
        None runs these one after the other. A larger one is read and compared in parts, without
        the candidate-aligned view. The document does not depend on the engine and says under
        ``reading`` which way was taken.
    seed
        The same seed gives the same bytes.

    Returns
    -------
    Result
        Document ``calibrant.compare/1``. What cannot be compared stands in ``not_compared`` with
        the reason: a model that is never right or never wrong (unless `models` names it), a method
        or group (a score that is no probability); where nothing can be, the reason is raised.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = []
    >>> for name, skill in (("small", 0.4), ("large", 0.8)):
    ...     for i in range(300):
    ...         rows.append(
    ...             {
    ...                 "question_id": i,
    ...                 "model": name,
    ...                 "confidence": 0.9,
    ...                 "correct": rng.random() < skill,
    ...             }
    ...         )
    >>> import polars as pl
    >>> pair = compare(pl.DataFrame(rows))["pairs"][0]
    >>> pair["tie"], pair["ties"]["da"]["ece"]  # constant confidence: only accuracy differs
    (False, True)
    """
    columns: dict[str, Any] = {"confidence": confidence, "correct": correct, "model": model}
    columns |= {"method": method, "question": question, "answer": answer}
    options: dict[str, Any] = {
        "bins": bins,
        "target": target,
        "level": level,
        "resamples": resamples,
        "lipschitz": lipschitz,
    }
    if _is_streamed(data, candidates, graded):
        return streamed_compare(
            data,
            engine=engine,
            models=models,
            columns=columns,
            by=tuple(by),
            options=options,
            on_invalid=on_invalid,
            scale=scale,
            seed=seed,
        )
    given = opened(data, candidates, on_invalid=on_invalid, graded=graded, scale=scale)
    settings = {**options, "models": models, "by": list(by)}
    settings |= table_settings({**given.stated, **columns})
    head = document_head("compare", data, seed=seed, settings=settings)
    ranking = [entry["name"] for entry in methods() if not entry["probability"]]
    with naming(head["source"]):
        scores = load_scores(
            given.table, **columns, **given.rules, ranking=ranking, features=list(by)
        )
    one = partial(
        _part, pool=given.pool, ranking=ranking, options={"models": models, **options}, seed=seed
    )
    runner = map if engine is None else engine_named(engine).map
    parts = list(runner(one, _parts(scores, by)))
    compared = [part for part in parts if "refused" not in part]
    refused = [part for part in parts if "refused" in part]
    if not compared:
        raise _refusal(refused, head["source"])
    multiplicity = correct_pairs(compared, level)
    return Result(
        {
            **head,
            **options,
            "reading": {"way": "in memory"},
            "dropped": {**scores.dropped, **given.dropped},
            "emptied_models": scores.emptied,
            "not_compared": [
                *({**part["keys"], "reason": part["refused"]["message"]} for part in refused),
                *(entry for part in compared for entry in part["taken_out"]),
            ],
            "multiplicity": multiplicity,
            "results": [entry for part in compared for entry in part["results"]],
            "pairs": [entry for part in compared for entry in part["pairs"]],
            "summaries": [
                {name: part[name] for name in ("keys", "questions", "left_out", "summary")}
                for part in compared
            ],
            "self_preference": [row for part in compared for row in part["self_preference"]],
        }
    )


def _is_streamed(data: Any, candidates: Any, graded: bool) -> bool:
    if not isinstance(data, str | Path) or Study.is_study(data):
        return False
    return candidates is None and not graded and is_large(str(data), rows=STREAM_ROWS)


def _parts(scores: Scores, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Return a part per method, then per method and group."""
    parts: list[tuple[dict[str, Any], pl.DataFrame]] = []
    for (name,), frame in scores.frame.partition_by(
        "method", as_dict=True, maintain_order=True
    ).items():
        parts.append(({"method": name, "group": None}, frame))
        for column in by:
            for (value,), part in frame.partition_by(
                column, as_dict=True, maintain_order=True
            ).items():
                parts.append(({"method": name, "group": {column: str(value)}}, part))
    return parts


def _part(
    part: tuple[dict[str, Any], pl.DataFrame],
    *,
    pool: pl.DataFrame | None,
    ranking: Sequence[str],
    options: dict[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Compare the models of one part, or return why they cannot be compared."""
    keys, frame = part
    if keys["method"] in ranking:
        return {"keys": keys, "refused": {"message": _NO_PROBABILITY, "hint": _TURNED}}
    if pool is not None and "method" in pool.columns:
        pool = pool.filter(pl.col("method") == keys["method"])
        pool = pool if pool.height else None
    stream = named_stream(seed, "compare", keys["method"], keys["group"])
    taken_out: list[dict[str, Any]] = []
    if options["models"] is None:
        frame, alike = _with_both_outcomes(frame)
        taken_out = [{**keys, "model": name, "reason": reason} for name, reason in alike.items()]
    try:
        found = compare_models(frame, candidates=pool, rng=stream, **options)
    except InputError as error:
        return {"keys": keys, "refused": {"message": error.rule, "hint": error.hint}}
    for entry in found["results"]:
        own = frame.filter(pl.col("model") == entry["model"])
        entry["verification"] = verification_block(
            own["confidence"].to_numpy(), own["correct"].to_numpy(), rng=stream
        )
    for name in ("results", "pairs", "self_preference"):
        found[name] = [{**keys, **entry} for entry in found[name]]
    return {"keys": keys, "taken_out": taken_out, **found}


def _with_both_outcomes(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """Take out models that are never right or never wrong, where two others are left.

    Their accuracy cannot be matched to that of another; one such model must not keep all the
    others from being compared. Models that were asked for by name are not taken out.
    """
    ends = frame.group_by("model", maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("correct").min().alias("low"),
        pl.col("correct").max().alias("high"),
    )
    alike = ends.filter(pl.col("low") == pl.col("high"), pl.col("low").is_in([0.0, 1.0]))
    if ends.height - alike.height < 2:
        return frame, {}
    reasons = {
        str(name): f"it is {'always right' if low else 'never right'} ({n:,} answers): the aligned "
        "views need right and wrong answers of every model"
        for name, n, low, _ in alike.iter_rows()
    }
    return frame.filter(~pl.col("model").is_in(alike["model"])), reasons


def _refusal(refused: Sequence[dict[str, Any]], source: str) -> InputError:
    """Return why nothing could be compared: the first reason, and how many parts there are."""
    # That a score is no probability is known beforehand; another reason says more.
    told = next((p for p in refused if p["refused"]["message"] != _NO_PROBABILITY), refused[0])
    place = " / ".join([told["keys"]["method"], *(told["keys"]["group"] or {}).values()])
    message = f"{place}: {told['refused']['message']}"
    if len(refused) > 1:
        message += f" (none of the {len(refused)} methods and groups can be compared)"
    return InputError(message, source=source, hint=told["refused"]["hint"])
