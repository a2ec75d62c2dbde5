"""`calibrant plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    HtmlPath,
    JsonPath,
    OnInvalid,
    Seed,
    inputs_to_read,
)
from calibrant.core.errors import InputError
from calibrant.verbs.plan import plan

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@takes_columns()
def command(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE..]",
            help="Scores to measure error rate and steepness on.",
            callback=inputs_to_read,
        ),
    ] = None,
    precision: Annotated[
        float | None, typer.Option(metavar="D", help="Precision of the calibration error wanted.")
    ] = None,
    labels: Annotated[
        int | None, typer.Option(metavar="M", help="Labels at hand: what do they show?")
    ] = None,
    error_rate: Annotated[
        float | None, typer.Option(metavar="E", help="Share of wrong answers.")
    ] = None,
    lipschitz: Annotated[
        float | None, typer.Option(metavar="L", help="Steepness of the gap; 1 if not measured.")
    ] = None,
    models: Annotated[int, typer.Option(help="2 for a comparison of two models.")] = 1,
    groups: Annotated[int, typer.Option(help="Groups that must each be verified.")] = 1,
    smallest_share: Annotated[
        float, typer.Option(metavar="PI", help="Share of the smallest group.")
    ] = 1.0,
    stages: Annotated[
        str, typer.Option(metavar="L,L..", help="Steepness of a pipeline's stages; inf if jumpy.")
    ] = "",
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="eu-ai-act, nist-ai-rmf or fda-samd.")
    ] = None,
    drift: Annotated[
        float | None, typer.Option(metavar="RATE", help="Drift of the ECE per unit of time.")
    ] = None,
    per: Annotated[str, typer.Option(metavar="UNIT", help="hour, day, week, month or year.")] = (
        "month"
    ),
    start: Annotated[
        str | None, typer.Option(metavar="DATE", help="Day of the verification: when it expires.")
    ] = None,
    rank: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="Leaderboard with ties: accuracy, brier or ece."),
    ] = None,
    columns: Columns,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
    seed: Seed = 0,
) -> None:
    """How many labels does a claim need, and what do these labels show?"""
    if stages.strip() and not all(part.strip() for part in stages.split(",")):
        raise InputError(f"--stages is a list of numbers separated by commas, got {stages!r}")
    result = plan(
        (inputs[0] if len(inputs) == 1 else inputs) if inputs else None,
        precision=precision,
        labels=labels,
        error_rate=error_rate,
        lipschitz=lipschitz,
        models=models,
        groups=groups,
        smallest_share=smallest_share,
        stages=stages,
        preset=preset,
        drift=drift,
        per=per,
        start=start,
        rank=rank,
        seed=seed,
        **columns,
        on_invalid=on_invalid,
    )
    emit(result, json=json, html=html)
