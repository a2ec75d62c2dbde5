"""`calibrant label`: next, add, status."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    Bins,
    HtmlPath,
    JsonPath,
    OnInvalid,
    Seed,
    file_to_write,
    input_to_read,
    share_inside,
)
from calibrant.verbs.label import label_add, label_next, label_status

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Which items to label next, and may one stop?",
)

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="Scores whose outcome is partly missing.", callback=input_to_read
    ),
]
Judge = Annotated[
    str | None,
    typer.Option("--judge", metavar="COL", help="A cheap judge's verdicts, as side information."),
]
Peers = Annotated[
    bool,
    typer.Option("--peers", help="Use the agreement of other models' answers."),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision", metavar="D", help="Stop at this half-width.", callback=share_inside
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", metavar="X", help="Stop when above or below this.", callback=share_inside
    ),
]


@app.command("next")
@takes_columns("answer")
def next_batch(
    *,
    table: TableArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="PATH", help="Batch: .csv or .jsonl.", callback=file_to_write
        ),
    ],
    size: Annotated[int, typer.Option("--size", help="Labels to ask for.")] = 50,
    design: Annotated[
        str, typer.Option("--design", metavar="NAME", help="stratified, random, neyman, active.")
    ] = "stratified",
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    columns: Columns,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
    seed: Seed = 0,
) -> None:
    """Write the next batch to label, with question and answer."""
    result = label_next(
        table,
        out,
        size=size,
        design=design,
        judge=judge,
        peers=peers,
        bins=bins,
        seed=seed,
        **columns,
        on_invalid=on_invalid,
    )
    emit(result, json=json, html=html)


@app.command("add")
@takes_columns("answer")
def add_batch(
    *,
    table: TableArgument,
    batch: Annotated[
        str,
        typer.Argument(
            metavar="BATCH", help="The batch, labels filled in.", callback=input_to_read
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Table with the labels; may be TABLE.",
            callback=file_to_write,
        ),
    ],
    precision: Precision = None,
    threshold: Threshold = None,
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    columns: Columns,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Take a labelled batch back, and say where we stand."""
    result = label_add(
        table,
        batch,
        out=out,
        precision=precision,
        threshold=threshold,
        judge=judge,
        peers=peers,
        bins=bins,
        **columns,
        on_invalid=on_invalid,
    )
    emit(result, json=json, html=html)


@app.command("status")
@takes_columns("answer")
def status(
    *,
    table: TableArgument,
    precision: Precision = None,
    threshold: Threshold = None,
    judge: Judge = None,
    peers: Peers = False,
    bins: Bins = 15,
    columns: Columns,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Say where a partly labelled table stands."""
    result = label_status(
        table,
        precision=precision,
        threshold=threshold,
        judge=judge,
        peers=peers,
        bins=bins,
        **columns,
        on_invalid=on_invalid,
    )
    emit(result, json=json, html=html)
