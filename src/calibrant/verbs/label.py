"""`label`: which items to label next, and may one stop?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.naming import naming
from calibrant.core.rng import named_stream
from calibrant.core.verb import INPUT, OUTPUT, Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.planning import (
    DEFAULT_DESIGN,
    LabelPool,
    choose_batch,
    judged_estimates,
    pool_estimate,
    stop_decision,
)
from calibrant.report.result import Result
from calibrant.verbs._labelling import (
    BATCH,
    ROW,
    Labelling,
    open_labelling,
    read_batch,
    write_table,
)
from calibrant.verbs._options import (
    AnswerColumn,
    Bins,
    ConfidenceColumn,
    CorrectColumn,
    Judge,
    MethodColumn,
    ModelColumn,
    OnInvalid,
    Peers,
    QuestionColumn,
    Seed,
    Table,
)

__all__ = ["label_add", "label_next", "label_status"]

_HISTORY = 40
StopPrecision: TypeAlias = Annotated[
    float | None, Option("Stop at this half-width.", metavar="D", above=0, below=1)
]
StopThreshold: TypeAlias = Annotated[
    float | None, Option("Stop when above or below this.", metavar="X", above=0, below=1)
]


@verb(example="calibrant label next scores.csv --size 50 --out batch.csv")
def label_next(
    table: Table,
    out: Annotated[
        str | Path,
        Option("Batch to write: .csv or .jsonl.", metavar="PATH", group=OUTPUT, place="write"),
    ],
    *,
    size: Annotated[int, Option("Labels to ask for.", metavar="N", min=1, max=10**9)] = 50,
    design: Annotated[
        str, Option("stratified, random, neyman or active.", metavar="NAME")
    ] = DEFAULT_DESIGN,
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    seed: Seed = 0,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> Result:
    """Write the next batch to label.

    The confidence is left out of the batch: whoever labels should not see it.

    Parameters
    ----------
    table
        A scores table whose outcome is partly or wholly missing.
    out
        Batch to write: ``.csv`` or ``.jsonl``, with the question and the answer and an empty
        column ``correct``.
    size
        Labels to ask for, shared out evenly among models and methods.
    design
        ``stratified`` (default), ``random``, ``neyman`` or ``active``.
    judge
        Column with a cheap judge's verdicts, used as side information.
    peers
        Use the agreement of other models' answers as side information.
    bins
        Equal-width bins of the calibration error.
    seed
        The same seed gives the same batch.
    confidence, correct, model, method, question, answer, on_invalid
        Column names and rules of the table, see `calibrant.records.load_scores`.

    Returns
    -------
    Result
        Document ``calibrant.label/1``.
    """
    head = document_head("label", table, seed=seed)
    columns = {
        "confidence": confidence,
        "correct": correct,
        "model": model,
        "method": method,
        "question": question,
        "answer": answer,
        "on_invalid": on_invalid,
    }
    work = open_labelling(table, judge=judge, peers=peers, columns=columns)
    number = work.batches + 1
    blocks = work.blocks()
    chosen: list[int] = []
    for index, (_, rows, pool_side) in enumerate(blocks):
        pool = _pool(rows, pool_side, bins)
        share = (size * (index + 1)) // len(blocks) - (size * index) // len(blocks)
        rng = named_stream(seed, "label", number, index)
        picks = choose_batch(pool, share, design=design, rng=rng)
        chosen.extend(rows[ROW].to_numpy()[picks].tolist())
    if not chosen:
        raise InputError("every item of the table is labelled", source=work.source)
    work.write_batch(chosen, Path(out), number)
    document = _document(work, head, bins=bins, precision=None, threshold=None)
    document["batch"] = {
        "path": str(out),
        "number": number,
        "items": len(chosen),
        "design": design,
        "side": judge or ("peers" if peers else None),
    }
    return Result(document)


@verb(example="calibrant label add scores.csv batch.csv --out scores.csv --precision 0.05")
def label_add(
    table: Table,
    batch: Annotated[
        str | Path,
        Option(
            "The batch, labels filled in.",
            metavar="BATCH",
            group=INPUT,
            argument=True,
            place="read",
        ),
    ],
    *,
    out: Annotated[
        str | Path,
        Option("Table with the labels; may be TABLE.", metavar="PATH", group=OUTPUT, place="write"),
    ],
    precision: StopPrecision = None,
    threshold: StopThreshold = None,
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> Result:
    """Take a labelled batch back, write the table with its labels, and say where we stand.

    Parameters
    ----------
    table
        The table the batch came from.
    batch
        The batch, with ``correct`` filled in; empty cells stay open and are counted.
    out
        Where to write the table with the new labels; may be the table itself.
    precision, threshold
        Goal: stop when the interval of the ECE is this narrow, or lies on one side of this.
    judge, peers, bins, confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    # Before the table is written: it may be written over itself.
    head = document_head("label", [table, batch])
    columns = {
        "confidence": confidence,
        "correct": correct,
        "model": model,
        "method": method,
        "question": question,
        "answer": answer,
        "on_invalid": on_invalid,
    }
    work = open_labelling(table, judge=judge, peers=peers, columns=columns)
    labels, empty = read_batch(Path(batch))
    added = work.add(labels, str(batch))
    write_table(work.raw, Path(out))
    document = _document(work, head, bins=bins, precision=precision, threshold=threshold)
    document["added"] = {"labels": added, "left_empty": empty, "written": str(out)}
    return Result(document)


@verb(example="calibrant label status scores.csv --precision 0.05")
def label_status(
    table: Table,
    *,
    precision: StopPrecision = None,
    threshold: StopThreshold = None,
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> Result:
    """Say where a partly labelled table stands: estimate, interval, may one stop.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 500)
    >>> y = np.where(np.arange(500) < 200, (rng.random(500) < p) * 1.0, None)
    >>> state = label_status({"confidence": p, "correct": y.tolist()}, precision=0.2)
    >>> state["results"][0]["labelled"], state["results"][0]["stop"]["stop"]
    (200, True)
    """
    head = document_head("label", table)
    columns = {
        "confidence": confidence,
        "correct": correct,
        "model": model,
        "method": method,
        "question": question,
        "answer": answer,
        "on_invalid": on_invalid,
    }
    work = open_labelling(table, judge=judge, peers=peers, columns=columns)
    return Result(_document(work, head, bins=bins, precision=precision, threshold=threshold))


def _pool(rows: pl.DataFrame, side: np.ndarray[Any, Any] | None, bins: int) -> LabelPool:
    return LabelPool(
        rows["confidence"].cast(pl.Float64).to_numpy(),
        rows["correct"].cast(pl.Float64).fill_null(float("nan")).to_numpy().copy(),
        side,
        bins,
    )


def _document(
    work: Labelling,
    head: dict[str, Any],
    *,
    bins: int,
    precision: float | None,
    threshold: float | None,
) -> dict[str, Any]:
    results = []
    for keys, rows, side in work.blocks():
        pool = _pool(rows, side, bins)
        entry: dict[str, Any] = {
            **keys,
            "n": len(rows),
            "labelled": int(pool.labelled.sum()),
            "bins": bins,
        }
        if pool.labelled.any():
            look = max(work.batches, 1)
            entry |= _state(pool, look, precision, threshold)
            entry["history"] = _history(pool, rows)
            if work.judge is not None:
                verdicts = rows[work.judge].cast(pl.Float64).to_numpy()
                with naming(work.source):
                    entry["judge"] = judged_estimates(pool.confidence, pool.correct, verdicts)
        results.append(entry)
    return {
        **head,
        "settings": {
            "bins": bins,
            "precision": precision,
            "threshold": threshold,
            "judge": work.judge,
            "peers": work.side is not None,
            **table_settings(work.columns),
        },
        "results": results,
        "batch": None,
        "added": None,
        "dropped": work.dropped,
        "target": "the value that labelling the whole table would give",
    }


def _state(
    pool: LabelPool, look: int, precision: float | None, threshold: float | None
) -> dict[str, Any]:
    estimate = pool_estimate(pool)
    return {
        "accuracy": estimate.accuracy,
        "mean_confidence": float(pool.confidence.mean()),
        "ece": estimate.ece,
        "unseen": estimate.unseen,
        "gaps": [
            {
                "bin": [k / pool.bins, (k + 1) / pool.bins],
                "share": float(estimate.weight[k]),
                "labels": int(estimate.labels[k]),
                "gap": float(estimate.gap[k]),
                "standard_error": float(estimate.gap_error[k]),
            }
            for k in range(pool.bins)
            if estimate.weight[k] > 0
        ],
        "stop": stop_decision(pool, look=look, precision=precision, threshold=threshold),
    }


def _history(pool: LabelPool, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the running estimate after each batch, the data of the figure."""
    if BATCH not in rows.columns:
        return []
    number = rows[BATCH].fill_null(0).to_numpy()
    steps = np.unique(number[pool.labelled])
    history = []
    for step in steps[-_HISTORY:]:
        known = np.where(number <= step, pool.correct, np.nan)
        part = LabelPool(pool.confidence, known, pool.side, pool.bins)
        estimate = pool_estimate(part)
        history.append(
            {"batch": int(step), "labels": int(part.labelled.sum()), "ece": estimate.ece}
        )
    return history
