"""`label`: people label a pool, on a page or in a spreadsheet; may one stop?

The table is only ever read. Labels are kept in a file of their own beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.verb import INPUT, OUTPUT, Option, verb
from calibrant.inputs.labelled.pool import open_pool
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
from calibrant.verbs.labelling.batches import (
    add_batch,
    labelled_frame,
    read_batch,
    write_batch,
    write_frame,
)
from calibrant.verbs.labelling.document import label_document
from calibrant.verbs.labelling.options import (
    Budget,
    Design,
    Existing,
    Overlap,
    StopPrecision,
    StopThreshold,
    Store,
    Who,
    WholeQuestions,
    goals_of,
    pool_columns,
    refuse_overwriting,
)
from calibrant.verbs.labelling.server import LabelServer, serve_until_stopped

__all__ = ["label_add", "label_export", "label_next", "label_serve", "label_status"]


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
    whole_questions: WholeQuestions = False,
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
    whole_questions
        Draw questions with all their answers: `compare` needs such labels.
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
    columns = pool_columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, design=design, wave=size, overlap=overlap, seed=seed,
        whole_questions=whole_questions,
    )  # fmt: skip
    items = work.session.take(who, size, keeps=True)
    if not items:
        raise InputError("every item of the table is labelled or given out", source=work.source)
    write_batch(work.session, items, Path(out))
    document = label_document(work, head, columns, goals_of(None, None, None))
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
    refuse_overwriting(table, out)
    head = document_head("label", table)
    columns = pool_columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins,
    )  # fmt: skip
    filled, empty = read_batch(Path(batch))
    added = add_batch(work.session, filled, who, str(batch))
    document = label_document(work, head, columns, goals_of(precision, threshold, budget))
    document["added"] = {**added, "left_empty": empty, "written": str(work.session.store.path)}
    if out is not None:
        write_frame(labelled_frame(work.session), Path(out))
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
    columns = pool_columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, create=False,
    )  # fmt: skip
    return LabelResult(label_document(work, head, columns, goals_of(precision, threshold, budget)))


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
    whole_questions: WholeQuestions = False,
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
    wave, design, overlap, whole_questions
        Items drawn at a time, how, the share that two people label, and whether questions are
        drawn with all their answers.
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
    columns = pool_columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(
        table, columns=columns, labels=labels, judge=judge, peers=peers, existing=existing,
        bins=bins, design=design, wave=wave, overlap=overlap, seed=seed,
        whole_questions=whole_questions,
    )  # fmt: skip
    goals = goals_of(precision, threshold, budget)
    server = LabelServer(work.session, **goals)
    asyncio.run(serve_until_stopped(server, port, on_start, open_browser=open_browser))
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
    refuse_overwriting(table, out)
    head = document_head("label", table)
    columns = pool_columns(confidence, correct, model, method, question, answer, on_invalid)
    work = open_pool(table, columns=columns, labels=labels, existing=existing)
    frame = pl.DataFrame(work.session.store.history()) if history else labelled_frame(work.session)
    write_frame(frame, Path(out))
    document = label_document(work, head, columns, goals_of(None, None, None))
    document["added"] = {
        "labels": frame.height, "changed": 0, "left_empty": 0, "written": str(out)
    }  # fmt: skip
    return LabelResult(document)
