"""`calibrant demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import JsonPath, Seed, folder_to_write
from calibrant.cli.progress import ProgressBar
from calibrant.workflows.demo import demo

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder of the study.", callback=folder_to_write)
    ] = "demo",
    json: JsonPath = None,
    seed: Seed = 0,
) -> None:
    """Run the whole chain on a small real model and write a report."""
    with ProgressBar(enabled=True) as progress:
        result = demo(out, seed=seed, watch=progress)
    emit(result, json=json)
