"""`label`: people label a pool, on a page or in a spreadsheet; may one stop?

The table is only ever read. Labels are kept in a file of their own beside it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.loopback import announced, until_stopped
from calibrant.core.shared_options import Table, source, written
from calibrant.core.verb import Option, verb
from calibrant.labels.page import batches
from calibrant.labels.page import options as pools
from calibrant.labels.page.grades import grades_document, open_grades
from calibrant.labels.page.server import LabelServer, widest_block
from calibrant.report.result import LabelResult


@verb(example="calibrant label next pool.csv --size 50 --out batch.csv", shared=pools.LABELLING)
def label_next(
    table: Table,
    out: Annotated[str | Path, written()],
    *,
    size: Annotated[int, Option(metavar="N", min=1, max=10**9)] = 50,
    who: pools.Who = "me",
    **options: Unpack[pools.DrawOptions],
) -> LabelResult:
    """Write the next batch to label, for a spreadsheet.

    Confidence and model are left out of the batch: whoever labels should not see them.

    Parameters
    ----------
    table
        The pool: scores whose outcome is partly or wholly missing. It is never written.
    out
        Batch to write: .csv, .jsonl or .xlsx.

        It has question, answer and an empty column ``correct``.
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
        Slices of the confidences that few rows state, at most; other values are cells of their
        own.
    seed
        The same seed gives the same batch.
    confidence, correct, model, method, question, answer, on_invalid
        Column names and rules of the table, see `calibrant.data.load_scores`.

    Returns
    -------
    LabelResult
        Document ``calibrant.label/1``.
    """
    batches.check_ending(Path(out))
    task = pools.open_task(table, options, wave=size)
    session = task.work.session
    with session.store.removed_if_unused():
        batches.refuse_open_batch(session, Path(out))
        items = session.take(who, size, keeps=True)
        if not items:
            raise InputError(
                "every item of the table is labelled or given out",
                source=task.work.source,
                hint=Hint("see what the labels show with {call}", call=Call("audit", "TABLE")),
            )
    batches.write_batch(session, items, Path(out))
    document = task.document()
    document["batch"] = {
        "path": str(out),
        "number": len(session.store.waves()),
        "items": len(items),
        "design": options["design"],
        "who": who,
        "side": task.work.judge or ("peers" if task.work.peers else None),
    }
    return LabelResult(document)


@verb(example="calibrant label add pool.csv batch.csv --precision 0.05", shared=pools.LABELLING)
def label_add(
    table: Table,
    batch: Annotated[str | Path, source(metavar="BATCH", argument=True)],
    *,
    out: Annotated[str | Path | None, written()] = None,
    who: pools.Who = "me",
    **options: Unpack[pools.GoalOptions],
) -> LabelResult:
    """Take a labelled batch back, and say where we stand.

    Parameters
    ----------
    table
        The table the batch came from. It is never written.
    batch
        The batch, labels filled in.

        Labels are 1, 0 or unsure in ``correct``; empty cells stay open.
    out
        Also write the labelled rows here; never the table itself.

        With their weights.
    who
        The person who labelled.
    precision, threshold, budget
        Goal: stop when accuracy and error are this precise (0.05 where no goal is named), or the
        error lies on one side of this; and the most labels one will make.
    judge, peers, existing, labels, bins
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    pools.refuse_overwriting(table, out)
    task = pools.open_task(table, options)
    session = task.work.session
    filled, empty = batches.read_batch(Path(batch))
    added = batches.add_batch(session, filled, who, str(batch))
    document = task.document()
    document["added"] = {**added, "left_empty": empty, "written": str(session.store.path)}
    if out is not None:
        batches.write_frame(batches.labelled_frame(session), Path(out))
        document["added"]["written"] = str(out)
    return LabelResult(document)


@verb(example="calibrant label status pool.csv --precision 0.05", shared=pools.LABELLING)
def label_status(
    table: Table, *, grades: pools.CheckGrades = False, **options: Unpack[pools.GoalOptions]
) -> LabelResult:
    """Say where a pool stands: estimates, precision, agreement, may one stop.

    Parameters
    ----------
    table
        The pool.
    grades
        Say instead how good the grades are that this program made of a study, by the ones that
        people checked: how often they are wrong, and by which rule.
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
    if grades:
        return LabelResult(grades_document(open_grades(table, options), table))
    return LabelResult(pools.open_task(table, options, create=False).document())


@verb(example="calibrant label serve pool.csv --precision 0.05", shared=pools.LABELLING)
def label_serve(
    table: Table,
    *,
    port: Annotated[int, Option(metavar="N", min=0, max=65535)] = 0,
    open_browser: Annotated[bool, Option(cli="open")] = True,
    wave: Annotated[int, Option(metavar="N", min=1, max=10**6)] = 50,
    grades: pools.CheckGrades = False,
    on_start: Callable[[str], None] | None = None,
    **options: Unpack[pools.ServeOptions],
) -> LabelResult:
    """Serve a page on which people label the pool with the keyboard; stop it with Ctrl-C.

    Every label is kept at once, so that nothing is lost when the page or the server goes away:
    start it again and go on.

    Parameters
    ----------
    table
        The pool. It is never written.
    port
        Port on loopback; 0 takes a free one.
    open_browser
        Open the page in a browser.
    grades
        Check the grades that this program made of a study, in place of labelling its pool: those
        that are likely wrong come first and more often, the verdict stays hidden. `audit`,
        `compare` and `decide` of the study then include the errors that were found.
    wave
        Items drawn at a time.
    design, overlap, whole_questions
        How items are drawn, the share that two people label, and whether questions are
        drawn with all their answers.
    on_start
        Called with the address of the page; by default it is printed.
    precision, threshold, budget
        The goal, shown as progress.
    judge, peers, existing, labels, bins, seed
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    started = announced("Label here", on_start, open_browser=open_browser)
    if grades:
        checks = open_grades(table, options, wave=wave)
        check_server = LabelServer(checks, checks.precise)
        asyncio.run(until_stopped(check_server.start(port), check_server.stop, started))
        return LabelResult(grades_document(checks, table))
    task = pools.open_task(table, options, wave=wave)
    precise = partial(widest_block, task.work.session, **task.goals)
    server = LabelServer(task.work.session, precise, task.goals["budget"])
    asyncio.run(until_stopped(server.start(port), server.stop, started))
    return LabelResult(task.document())


@verb(
    example="calibrant label export pool.csv --out labels.csv",
    outputs=("json",),
    shared=pools.LABELLING,
)
def label_export(
    table: Table,
    out: Annotated[str | Path, written()],
    *,
    history: Annotated[bool, Option()] = False,
    **options: Unpack[pools.StoreOptions],
) -> LabelResult:
    """Write the labelled rows with what their draw was, or everything that ever happened.

    `audit` reads the rows as it reads the pool itself: columns ``label_weight``,
    ``label_along``, ``label_spread`` and ``label_design`` say how each was drawn.

    Parameters
    ----------
    table
        The pool.
    out
        Where to write.

        A file that ends in .csv, .jsonl, .parquet or .xlsx; never the table itself.
    history
        Every row ever written, undone ones too, in place of labelled rows.

        Who labelled what and when.
    existing, labels
        As in `label_next`.
    confidence, correct, model, method, question, answer, on_invalid
        As in `label_next`.
    """
    pools.refuse_overwriting(table, out)
    task = pools.open_task(table, options)
    session = task.work.session
    frame = pl.DataFrame(session.store.history()) if history else batches.labelled_frame(session)
    batches.write_frame(frame, Path(out))
    document = task.document()
    labels, path = frame.height, str(out)
    document["added"] = {"labels": labels, "changed": 0, "left_empty": 0, "written": path}
    return LabelResult(document)
