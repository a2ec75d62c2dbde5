"""`compare`: is A better calibrated than B, or only more accurate?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import calibrant
from calibrant.api.engines import engine_named
from calibrant.api.foreign import foreign_tables
from calibrant.api.result import Result
from calibrant.api.streamed_compare import streamed_compare
from calibrant.api.streaming import is_large
from calibrant.comparison import compare_models
from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.planning import verification_block
from calibrant.records import Scores, Study, load_scores, source_name
from calibrant.records.convert import ReadOptions
from calibrant.records.tables import collect, column_names, scan_table

__all__ = ["compare"]

# The paired bootstrap takes 4 kB per question in memory; larger tables are compared in parts.
STREAM_ROWS = 1_000_000
_CANDIDATE_COLUMNS = ("question_id", "judge", "author", "confidence")


def compare(
    data: Any,
    *,
    models: Sequence[str] | None = None,
    candidates: Any = None,
    confidence: str | None = None,
    correct: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    by: Sequence[str] = (),
    bins: int = 15,
    target: str | float = "weakest",
    level: float = 0.95,
    resamples: int = 1000,
    lipschitz: float = 1.0,
    on_invalid: str | None = None,
    graded: bool = False,
    scale: str = "fraction",
    engine: str | None = None,
    seed: int = 0,
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
        Document ``calibrant.compare/1``.

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
    options: dict[str, Any] = {
        "bins": bins,
        "target": target,
        "level": level,
        "resamples": resamples,
        "lipschitz": lipschitz,
    }
    if _is_streamed(data, candidates, graded):
        names = {"confidence": confidence, "correct": correct, "model": model, "method": method}
        return streamed_compare(
            data,
            engine=engine,
            models=models,
            columns={**names, "question": question, "answer": answer},
            by=tuple(by),
            options=options,
            on_invalid=on_invalid,
            scale=scale,
            seed=seed,
        )
    source = data
    if isinstance(data, str | Path) and Study.is_study(data):
        study = Study(data)
        source = study.read("scores")
        on_invalid, graded = on_invalid or "drop", True
        if candidates is None and study.has("candidates"):
            candidates = study.read("candidates")
    log = foreign_tables(data, options=ReadOptions(scale=scale))
    if log is not None:
        source, scale = log.one_row_per_question(), "fraction"
        on_invalid, graded = on_invalid or "drop", True
    scores = load_scores(
        source,
        confidence=confidence,
        correct=correct,
        model=model,
        method=method,
        question=question,
        answer=answer,
        on_invalid=on_invalid or "error",
        graded=graded,
        scale=scale,
        features=list(by),
    )
    pool = None if candidates is None else _candidates(candidates)
    runner = map if engine is None else engine_named(engine).map
    one = partial(_part, pool=pool, options={"models": models, **options}, seed=seed)
    parts = list(runner(one, _parts(scores, by)))
    return Result(
        {
            "schema": "calibrant.compare/1",
            "version": calibrant.__version__,
            "source": scores.source if log is None else source_name(data),
            "seed": seed,
            **options,
            "reading": {"way": "in memory"},
            "dropped": {**scores.dropped, **({} if log is None else log.dropped()[0])},
            "results": [entry for part in parts for entry in part["results"]],
            "pairs": [entry for part in parts for entry in part["pairs"]],
            "summaries": [
                {name: part[name] for name in ("keys", "questions", "left_out", "summary")}
                for part in parts
            ],
            "self_preference": [row for part in parts for row in part["self_preference"]],
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
    options: dict[str, Any],
    seed: int,
) -> dict[str, Any]:
    keys, frame = part
    if pool is not None and "method" in pool.columns:
        pool = pool.filter(pl.col("method") == keys["method"])
        pool = pool if pool.height else None
    stream = named_stream(seed, "compare", keys["method"], keys["group"])
    try:
        found = compare_models(frame, candidates=pool, rng=stream, **options)
    except InputError as error:
        place = " / ".join([keys["method"], *(keys["group"] or {}).values()])
        raise InputError(error.rule, source=place, row=error.row, hint=error.hint) from None
    for entry in found["results"]:
        own = frame.filter(pl.col("model") == entry["model"])
        entry["verification"] = verification_block(
            own["confidence"].to_numpy(), own["correct"].to_numpy(), rng=stream
        )
    for name in ("results", "pairs", "self_preference"):
        found[name] = [{**keys, **entry} for entry in found[name]]
    return {"keys": keys, **found}


def _candidates(source: Any) -> pl.DataFrame:
    lazy = scan_table(source)
    present = column_names(lazy, source)
    missing = [name for name in _CANDIDATE_COLUMNS if name not in present]
    if missing:
        raise InputError(
            f"a candidates table needs the columns {', '.join(_CANDIDATE_COLUMNS)}; missing: "
            f"{', '.join(missing)}",
            source=source_name(source),
        )
    # Judges x authors x questions rows: texts are kept once each, as categories.
    texts = [name for name in ("question_id", "judge", "author", "answer") if name in present]
    table = collect(
        lazy.with_columns(
            pl.col(texts).cast(pl.String).cast(pl.Categorical),
            pl.col("confidence").cast(pl.Float64),
        ),
        source,
    )
    valid = table["confidence"].is_between(0, 1).fill_null(True)
    if not valid.all():
        row = int((~valid).arg_true()[0])
        raise InputError(
            f"a candidate's confidence must lie in [0, 1], got {table['confidence'][row]}",
            source=source_name(source),
            row=row + 1,
        )
    _same_answers(table, source)
    return table


def _same_answers(table: pl.DataFrame, source: Any) -> None:
    """Refuse a question where judges were shown different answers under one author's name."""
    if "answer" not in table.columns:
        return
    code = pl.col("answer").to_physical()
    odd = (
        table.lazy()
        .group_by("question_id", "author")
        .agg(code.min().alias("least"), code.max().alias("most"))
        .filter(pl.col("least") != pl.col("most"))
        .collect(engine="streaming")
    )
    if odd.height:
        first = odd.sort(pl.col("question_id", "author").cast(pl.String)).row(0, named=True)
        raise InputError(
            f"question {first['question_id']!r} has different answers by {first['author']!r}: "
            "all judges must score the same answers",
            source=source_name(source),
            hint="score the candidates again, or leave such questions out",
        )
