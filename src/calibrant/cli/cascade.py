"""`calibrant cascade`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.cluster_output import cluster_speaks_on_stderr
from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    COSTS_WRITTEN,
    Costs,
    EmbedColumn,
    EmbedDimensions,
    EngineName,
    HtmlPath,
    JsonPath,
    OnInvalid,
    Recalibration,
    SavePath,
    ScoresInput,
    Seed,
    finite,
    name_list,
    number_by_name,
    share_inside,
)
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.verbs.cascade import cascade

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_PRICES_WRITTEN = "1,8,70 or small=1,large=70"


def _prices(text: str | None, models: list[str]) -> dict[str, float] | None:
    """Return prices from '1,8,70', in the order of the models, or from 'small=1,large=70'."""
    if text is None:
        return None
    if "=" in text:
        prices = number_by_name("--price", text, _PRICES_WRITTEN) or {}
        unknown = [name for name in prices if name not in models]
        if unknown:
            raise InputError(
                f"--price is that of a model, got {unknown[0]!r}",
                hint=did_you_mean(unknown[0], models),
            )
        return prices
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--price is written {_PRICES_WRITTEN}, got {text!r}") from None
    if len(values) != len(models):
        raise InputError(f"--price has {len(values)} prices for {len(models)} models, got {text!r}")
    return dict(zip(models, values, strict=True))


@app.command()
@takes_columns()
def command(
    *,
    source: ScoresInput,
    models: Annotated[str, typer.Option(metavar="A,B,C", help="Models, cheapest first.")],
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that the policies may use.")
    ] = None,
    price: Annotated[
        str | None, typer.Option(metavar="1,8,70", help="Price per call, or per unit of --cost.")
    ] = None,
    cost: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of costs or token counts.")
    ] = None,
    embed: EmbedColumn = None,
    embed_dimensions: EmbedDimensions = 8,
    decision: Annotated[
        str,
        typer.Option(
            metavar="answer|class",
            help="answer: --correct grades each model's own answer; class: it is the outcome.",
        ),
    ] = "answer",
    costs: Costs = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Where a confidence decides 1 (class only).", callback=share_inside),
    ] = None,
    columns: Columns,
    only_method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Method to use where there are several.")
    ] = None,
    recalibration: Recalibration = "platt",
    residuals: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Model of the residual: tree, shrunk, forest or boosting."
        ),
    ] = "tree",
    max_depth: Annotated[
        int | None, typer.Option(min=1, max=100, help="Depth of the trees.")
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="risk, risk_shrunk, risk_boosting, calibration, confidence, router, router_knn.",
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(min=1, max=10_000, help="Random splits that are averaged.")
    ] = 20,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Risk that the saved policy tolerates.", callback=finite),
    ] = None,
    save: SavePath = None,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
    engine: EngineName = None,
    seed: Seed = 0,
) -> None:
    """When to defer to a larger model, and what it costs."""
    order = name_list("--models", models)
    with cluster_speaks_on_stderr():
        result = cascade(
            source,
            models=order,
            features=name_list("--features", features),
            embed=embed,
            embed_dimensions=embed_dimensions,
            price=_prices(price, order),
            cost=cost,
            **columns,
            only_method=only_method,
            on_invalid=on_invalid,
            splits=splits,
            tolerance=tolerance,
            save=save,
            engine=engine,
            seed=seed,
            decision=decision,
            costs=number_by_name("--costs", costs, COSTS_WRITTEN),
            threshold=threshold,
            recalibration=recalibration,
            residuals=residuals,
            max_depth=max_depth,
            strategies=tuple(name_list("--strategies", strategies)) or None,
        )
    emit(result, json=json, html=html)
