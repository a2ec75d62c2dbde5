"""`calibrant audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.claims.checks import failed_claims, parse_claim
from calibrant.cli.cluster_output import cluster_speaks_on_stderr
from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.options import (
    Bins,
    By,
    EngineName,
    HtmlPath,
    Inputs,
    JsonPath,
    JunitPath,
    Level,
    OnInvalidByInput,
    Resamples,
    Scale,
    Seed,
)
from calibrant.core.errors import ClaimFailed
from calibrant.verbs.audit import audit

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@takes_columns("answer", "weights")
def command(
    *,
    inputs: Inputs,
    columns: Columns,
    by: By = None,
    bins: Bins = 15,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    recalibrate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Recalibrate first, cross-fitted: temperature, platt, isotonic, beta, histogram.",
        ),
    ] = None,
    on_invalid: OnInvalidByInput = None,
    graded: Annotated[bool, typer.Option("--graded", help="Outcomes may lie in [0, 1].")] = False,
    scale: Scale = "fraction",
    repeats: Annotated[
        bool,
        typer.Option("--repeats", help="Rows of one question are repeated answers to it."),
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM", help="Exit with 1 where this holds: 'ece>0.05'."),
    ] = None,
    junit: JunitPath = None,
    engine: EngineName = None,
    json: JsonPath = None,
    html: HtmlPath = None,
    seed: Seed = 0,
) -> None:
    """Is this confidence calibrated, and how sure can we be?"""
    claims = [parse_claim(text) for text in fail_if or []]
    with cluster_speaks_on_stderr():
        result = audit(
            inputs[0] if len(inputs) == 1 else inputs,
            **columns,
            by=by or (),
            bins=bins,
            level=level,
            resamples=resamples,
            recalibrate=recalibrate,
            on_invalid=on_invalid,
            graded=graded,
            scale=scale,
            repeats=repeats,
            engine=engine,
            seed=seed,
        )
    # Loaded here, so that reading starts first; by now it is there already.
    from calibrant.cli.emit import emit

    emit(result, json=json, html=html)
    if junit is not None:
        from calibrant.integrations.exports import to_junit

        to_junit(result, fail_if or [], junit)
    failures = failed_claims(result["results"], claims)
    if failures:
        raise ClaimFailed("the check fails:\n  " + "\n  ".join(failures))
