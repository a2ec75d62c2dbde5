"""`calibrant methods`: the confidence methods and what each one needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import HtmlPath, JsonPath, study_to_read

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def methods(
    study: Annotated[
        Path | None,
        typer.Argument(
            metavar="[STUDY]", help="Say which methods this study can use.", callback=study_to_read
        ),
    ] = None,
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """List the confidence methods and what each one needs.

    With a study folder: which of them are available there, and why the others are not.
    """
    from calibrant.verbs.methods import methods as list_methods

    emit(list_methods(study), json=json, html=html)
