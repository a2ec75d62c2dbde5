"""`label`: people label a pool, on a page or in a spreadsheet; may one stop?

The table is only ever read. Labels are kept in a file of their own beside it.
"""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import ADVANCED, INPUT, OUTPUT, Option, verb
from calibrant.inputs.labelled.pool import OpenPool, open_pool
from calibrant.inputs.provenance import document_head
from calibrant.planning.labelling.designs import DEFAULT_DESIGN
from calibrant.report.typed import LabelResult
from calibrant.verbs._options import (
    AnswerColumn,
    Bins,
    ConfidenceColumn,
    CorrectColumn,
    Judge,
    MethodColumn,
    ModelColumn,
    OnInvalid,
    OutFile,
    Peers,
    QuestionColumn,
    Seed,
    Table,
)
from calibrant.verbs.labelling.batches import add_batch, read_batch, write_batch, write_frame
from calibrant.verbs.labelling.document import label_document
from calibrant.verbs.labelling.server import LabelServer

__all__ = ["label_add", "label_export", "label_next", "label_serve", "label_status"]

StopPrecision: TypeAlias = Annotated[
    float | None,
    Option("Stop when accuracy and error are known to within this.", metavar="D", above=0, below=1),
]
StopThreshold: TypeAlias = Annotated[
    float | None,
    Option("Stop when the error is above or below this.", metavar="X", above=0, below=1),
]
Budget: TypeAlias = Annotated[
    int | None,
    Option("The most labels you will make, if fixed beforehand.", metavar="N", min=50, max=10**9),
]
Store: TypeAlias = Annotated[
    str | Path | None,
    Option("Where labels are kept; beside the table by default.", metavar="PATH", group=ADVANCED),
]
Who: TypeAlias = Annotated[str, Option("Name of the person who labels.", metavar="NAME")]
Design: TypeAlias = Annotated[
    str,
    Option(
        "How items are drawn.",
        metavar="stratified|random|pps",
        choices=("stratified", "random", "pps", "neyman"),
    ),
]
Overlap: TypeAlias = Annotated[
    float, Option("Share of items that two people label.", metavar="SHARE", min=0, max=1)
]
Existing: TypeAlias = Annotated[
    str,
    Option(
        "Outcomes in the table itself: leave them out, or take them as a random choice.",
        metavar="ignore|random",
        group=INPUT,
        choices=("ignore", "random"),
    ),
]


@verb(example="calibrant label next pool.csv --size 50 --out batch.csv")
def label_next(
    table: Table,
    out: Annotated[
        str | Path,
        Option(
            "Batch to write: .csv, .jsonl or .xlsx.", metavar="PATH", group=OUTPUT, place="write"
        ),
    ],
    *,
    size: Annotated[int, Option("Labels to ask for.", metavar="N", min=1, max=10**9)] = 50,
    who: Who = "me",
    design: Design = DEFAULT_DESIGN,
    overlap: Overlap = 0.1,
    judge: Judge = None,
    peers: Peers = False,
    existing: Existing = "ignore",
    labels: Store = None,
    bins: Bins = 15,
    seed: Seed = 0,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> LabelResult:
    """Write the next batch to label, for a spreadsheet.

    Confidence and model are left out of the batch: whoever labels should not see them.

    Parameters
    ----------
    table
        The pool: scores whose outcome is partly or wholly missing. It is never written.
    out
        Batch to write, with question, answer and an empty column ``correct``.
    size
        Labels to ask for.
    who
        The person it is for: two people get different items, but for the overlap.
    design
        ``stratified`` (default), ``random`` or ``pps``; the chance of every item is kept.
    overlap
        Share of items that two people label, to see how they agree.
    judge, peers
        Side information: a cheap judge's column, the agreement of other models' answers.
    existing
        What to do with outcomes in the table: ``ignore``, or ``random`` where they are a random
        choice of its rows.
    labels
        Where labels are kept; beside the table by default.
    bins
        Equal-width bins of the calibration error.
    seed
        The same seed gives the same batch.
    confidence, correct, model, method, question, answer, on_invalid
        Column names and rules of the table, see `calibrant.records.load_scores`.

    Returns
    -------
    LabelResult
        Document ``calibrant.label/1``.
    """
    head = document_head("label", table, seed=seed)
    columns = _columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, design=design, wave=size, overlap=overlap, seed=seed,
    )  # fmt: skip
    items = work.session.take(who, size, keeps=True)
    if not items:
        raise InputError("every item of the table is labelled or given out", source=work.source)
    write_batch(work.session, items, Path(out))
    document = label_document(work, head, columns, _goals(None, None, None))
    document["batch"] = {
        "path": str(out),
        "number": len(work.session.store.waves()),
        "items": len(items),
        "design": design,
        "who": who,
        "side": judge or ("peers" if peers else None),
    }
    return LabelResult(document)


@verb(example="calibrant label add pool.csv batch.csv --precision 0.05")
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
        str | Path | None,
        Option(
            "Also write the labelled rows here; never the table itself.",
            metavar="PATH",
            group=OUTPUT,
            place="write",
        ),
    ] = None,
    who: Who = "me",
    precision: StopPrecision = None,
    threshold: StopThreshold = None,
    budget: Budget = None,
    judge: Judge = None,
    peers: Peers = False,
    existing: Existing = "ignore",
    labels: Store = None,
    bins: Bins = 15,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> LabelResult:
    """Take a labelled batch back, and say where we stand.

    Parameters
    ----------
    table
        The table the batch came from. It is never written.
    batch
        The batch, with ``correct`` filled in (1, 0, unsure); empty cells stay open.
    out
        Also write the labelled rows, with their weights, to this file.
    who
        The person who labelled.
    precision, threshold, budget
        Goal: stop when accuracy and error are this precise, or the error lies on one side of
        this; and the most labels one will make.
    judge, peers, existing, labels, bins
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    _refuse_overwriting(table, out)
    head = document_head("label", table)
    columns = _columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins,
    )  # fmt: skip
    filled, empty = read_batch(Path(batch))
    added = add_batch(work.session, filled, who, str(batch))
    document = label_document(work, head, columns, _goals(precision, threshold, budget))
    document["added"] = {**added, "left_empty": empty, "written": str(work.session.store.path)}
    if out is not None:
        write_frame(_labelled(work), Path(out))
        document["added"]["written"] = str(out)
    return LabelResult(document)


@verb(example="calibrant label status pool.csv --precision 0.05")
def label_status(
    table: Table,
    *,
    precision: StopPrecision = None,
    threshold: StopThreshold = None,
    budget: Budget = None,
    judge: Judge = None,
    peers: Peers = False,
    existing: Existing = "ignore",
    labels: Store = None,
    bins: Bins = 15,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> LabelResult:
    """Say where a pool stands: estimates, precision, agreement, may one stop.

    Parameters
    ----------
    table
        The pool.
    precision, threshold, budget
        The goal, as in `label_add`.
    judge, peers, existing, labels, bins
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 500)
    >>> y = np.where(np.arange(500) < 200, (rng.random(500) < p) * 1.0, None)
    >>> state = label_status({"confidence": p, "correct": y.tolist()}, precision=0.2,
    ...                      existing="random")
    >>> state["results"][0]["labelled"], state["results"][0]["stop"]["stop"]
    (200, True)
    """
    head = document_head("label", table)
    columns = _columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, create=False,
    )  # fmt: skip
    return LabelResult(label_document(work, head, columns, _goals(precision, threshold, budget)))


@verb(example="calibrant label serve pool.csv --precision 0.05")
def label_serve(
    table: Table,
    *,
    port: Annotated[
        int, Option("Port on loopback; 0 takes a free one.", metavar="N", min=0, max=65_535)
    ] = 0,
    open_browser: Annotated[bool, Option("Open the page in a browser.", cli="open")] = False,
    wave: Annotated[int, Option("Items drawn at a time.", metavar="N", min=1, max=10**6)] = 50,
    precision: StopPrecision = None,
    threshold: StopThreshold = None,
    budget: Budget = None,
    design: Design = DEFAULT_DESIGN,
    overlap: Overlap = 0.1,
    judge: Judge = None,
    peers: Peers = False,
    existing: Existing = "ignore",
    labels: Store = None,
    bins: Bins = 15,
    seed: Seed = 0,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
    on_start: Callable[[str], None] | None = None,
) -> LabelResult:
    """Serve a page on which people label the pool with the keyboard; stop it with Ctrl-C.

    Every label is kept at once, so that nothing is lost when the page or the server goes away:
    start it again and go on.

    Parameters
    ----------
    table
        The pool. It is never written.
    port, open_browser
        Port on loopback, and whether to open a browser.
    wave, design, overlap
        Items drawn at a time, how, and the share that two people label.
    precision, threshold, budget
        The goal, shown as progress.
    judge, peers, existing, labels, bins, seed
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    on_start
        Called with the address of the page; by default it is printed.
    """
    head = document_head("label", table, seed=seed)
    columns = _columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, design=design, wave=wave, overlap=overlap, seed=seed,
    )  # fmt: skip
    goals = _goals(precision, threshold, budget)
    server = LabelServer(work.session, **goals)

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address)
        else:
            sys.stderr.write(f"Label here: {address}\n")
            sys.stderr.flush()
        if open_browser:
            webbrowser.open(address)

    asyncio.run(_serve(server, port, started))
    return LabelResult(label_document(work, head, columns, goals))


@verb(example="calibrant label export pool.csv --out labels.csv", outputs=("json",))
def label_export(
    table: Table,
    out: OutFile,
    *,
    history: Annotated[
        bool, Option("Every row ever written, undone ones too, in place of labelled rows.")
    ] = False,
    existing: Existing = "ignore",
    labels: Store = None,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    on_invalid: OnInvalid = "error",
) -> LabelResult:
    """Write the labelled rows with their weights, or everything that ever happened.

    Parameters
    ----------
    table
        The pool.
    out
        File to write: .csv, .jsonl, .parquet or .xlsx; never the table itself.
    history
        Who labelled what and when, undone rows included.
    existing, labels
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    _refuse_overwriting(table, out)
    head = document_head("label", table)
    columns = _columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(table, columns=columns, labels=labels, existing=existing)
    frame = pl.DataFrame(work.session.store.history()) if history else _labelled(work)
    write_frame(frame, Path(out))
    document = label_document(work, head, columns, _goals(None, None, None))
    document["added"] = {
        "labels": frame.height, "changed": 0, "left_empty": 0, "written": str(out)
    }  # fmt: skip
    return LabelResult(document)


async def _serve(server: LabelServer, port: int, started: Callable[[str], None]) -> None:
    started(await server.start(port))
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        # Ctrl-C ends the wait; the state is told afterwards.
        pass
    finally:
        await server.stop()


def _labelled(work: OpenPool) -> pl.DataFrame:
    """Return the rows whose answer is labelled, with outcome and weight."""
    found = work.session.labelled_rows()
    nested = [name for name, kind in found.schema.items() if kind.is_nested()]
    return found.drop(nested)


def _goals(precision: float | None, threshold: float | None, budget: int | None) -> dict[str, Any]:
    return {"precision": precision, "threshold": threshold, "budget": budget}


def _columns(
    confidence: str | None,
    correct: str | None,
    model: str | None,
    method: str | None,
    question: str | None,
    answer: str | None,
    on_invalid: str,
) -> dict[str, Any]:
    return {
        "confidence": confidence,
        "correct": correct,
        "model": model,
        "method": method,
        "question": question,
        "answer": answer,
        "on_invalid": on_invalid,
    }


def _refuse_overwriting(table: Any, out: str | Path | None) -> None:
    if out is None or not isinstance(table, str | Path):
        return
    if Path(out).resolve() == Path(table).resolve():
        raise InputError(
            "the table itself is never written: its labels are kept beside it",
            source=str(out),
            hint=Hint("name another file with {out}, or leave it out"),
        )
