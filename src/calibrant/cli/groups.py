"""`calibrant groups`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    COSTS_WRITTEN,
    Costs,
    EmbedColumn,
    EmbedDimensions,
    HtmlPath,
    JsonPath,
    Level,
    OnInvalid,
    Recalibration,
    ScoresInput,
    Seed,
    name_list,
    number_by_name,
    share_inside,
)
from calibrant.verbs.groups import groups

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@takes_columns()
def command(
    *,
    source: ScoresInput,
    features: Annotated[
        str, typer.Option(metavar="A,B,C", help="Columns that may describe a group.")
    ],
    embed: EmbedColumn = None,
    embed_dimensions: EmbedDimensions = 8,
    columns: Columns,
    models: Annotated[
        str | None, typer.Option(metavar="A,B", help="Look at these models only.")
    ] = None,
    recalibration: Recalibration = "platt",
    residuals: Annotated[
        str,
        typer.Option(metavar="NAME", help="Model of the loss: tree, shrunk, forest or boosting."),
    ] = "tree",
    splits: Annotated[
        str, typer.Option(metavar="auto|histogram|exact", help="How the tree looks for splits.")
    ] = "auto",
    repeats: Annotated[
        int, typer.Option(min=1, max=1_000, help="Random splits that are averaged.")
    ] = 5,
    max_groups: Annotated[
        int, typer.Option(min=2, max=1_000, help="Leaves of the tree of groups.")
    ] = 12,
    max_conditions: Annotated[
        int, typer.Option(min=1, max=100, help="Conditions of a rule, at most.")
    ] = 3,
    min_group: Annotated[
        int, typer.Option(min=1, max=10**9, help="Rows that a group must have.")
    ] = 50,
    alpha: Annotated[float, typer.Option(help="Level of the flags.", callback=share_inside)] = 0.05,
    control: Annotated[
        str, typer.Option(metavar="holm|bh", help="Control for the number of groups.")
    ] = "holm",
    costs: Costs = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Where the confidence decides; default: the optimum.", callback=share_inside
        ),
    ] = None,
    level: Level = 0.95,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
    seed: Seed = 0,
) -> None:
    """For whom is the confidence wrong?"""
    result = groups(
        source,
        features=name_list("--features", features),
        embed=embed,
        embed_dimensions=embed_dimensions,
        **columns,
        only_models=name_list("--models", models) or None,
        on_invalid=on_invalid,
        seed=seed,
        recalibration=recalibration,
        residuals=residuals,
        splits=splits,
        repeats=repeats,
        max_groups=max_groups,
        max_conditions=max_conditions,
        min_group=min_group,
        alpha=alpha,
        control=control,
        costs=number_by_name("--costs", costs, COSTS_WRITTEN),
        threshold=threshold,
        level=level,
    )
    emit(result, json=json, html=html)
