"""`calibrant report`."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import (
    FiguresFolder,
    HtmlPath,
    Inputs,
    JsonPath,
    MarkdownPath,
    Seed,
)
from calibrant.workflows.report import report

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    inputs: Inputs,
    html: HtmlPath = None,
    markdown: MarkdownPath = None,
    figures: FiguresFolder = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    json: JsonPath = None,
    seed: Seed = 0,
) -> None:
    """Render results as one HTML page, Markdown or figures."""
    emit(
        report(inputs, html=html, markdown=markdown, figures=figures, title=title, seed=seed),
        json=json,
    )
