"""`calibrant compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.cluster_output import cluster_speaks_on_stderr
from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    Bins,
    By,
    EngineName,
    HtmlPath,
    Inputs,
    JsonPath,
    Level,
    OnInvalidByInput,
    Resamples,
    Scale,
    Seed,
    input_to_read,
    name_list,
)
from calibrant.verbs.compare import compare

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@takes_columns("answer")
def command(
    *,
    inputs: Inputs,
    models: Annotated[
        str | None, typer.Option(metavar="A,B,..", help="Models to compare, by name.")
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Every model's confidence in every model's answer (CA view).",
            callback=input_to_read,
        ),
    ] = None,
    columns: Columns,
    by: By = None,
    bins: Bins = 15,
    target: Annotated[
        str,
        typer.Option(
            metavar="weakest|strongest|mean|NUMBER", help="Accuracy that all are brought to."
        ),
    ] = "weakest",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    lipschitz: Annotated[
        float, typer.Option(help="Lipschitz constant behind the verification floor.")
    ] = 1.0,
    on_invalid: OnInvalidByInput = None,
    graded: Annotated[bool, typer.Option("--graded", help="Outcomes may lie in [0, 1].")] = False,
    scale: Scale = "fraction",
    engine: EngineName = None,
    json: JsonPath = None,
    html: HtmlPath = None,
    seed: Seed = 0,
) -> None:
    """Is A better calibrated than B, or only more accurate?"""
    with cluster_speaks_on_stderr():
        result = compare(
            inputs[0] if len(inputs) == 1 else inputs,
            models=name_list("--models", models) or None,
            candidates=candidates,
            **columns,
            by=by or (),
            bins=bins,
            target=_number_or_name(target),
            level=level,
            resamples=resamples,
            lipschitz=lipschitz,
            on_invalid=on_invalid,
            graded=graded,
            scale=scale,
            engine=engine,
            seed=seed,
        )
    emit(result, json=json, html=html)


def _number_or_name(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
