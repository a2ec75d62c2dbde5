"""`calibrant import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    JsonPath,
    file_with_folders,
    folder_to_write,
    inputs_to_read,
)
from calibrant.core.errors import ClaimFailed
from calibrant.verbs.import_logs import import_logs

app = typer.Typer(add_completion=False, rich_markup_mode=None)


def _place(option: typer.CallbackParam, path: str | None) -> str | None:
    is_file = path is not None and Path(path).suffix
    return file_with_folders(option, path) if is_file else folder_to_write(option, path)


@app.command()
@takes_columns("answer")
def command(
    *,
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG..",
            help="Logs of other tools, recognised by content.",
            callback=inputs_to_read,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Study folder for all tables, or a .parquet, .csv or .jsonl file for the scores.",
            callback=_place,
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Which tool wrote them, e.g. inspect.")
    ] = None,
    grade: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Scorer, metric or column that decides what is right."),
    ] = None,
    filter_name: Annotated[
        str | None, typer.Option("--filter", metavar="NAME", help="Filter of lm-eval to use.")
    ] = None,
    scale: Annotated[
        str, typer.Option(metavar="fraction|percent", help="How the logs state a confidence.")
    ] = "fraction",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a part could not be read.")
    ] = False,
    columns: Columns,
    json: JsonPath = None,
) -> None:
    """Turn the logs of other tools, or plain tables, into calibrant's tables."""
    result = import_logs(
        logs,
        out,
        kind=kind,
        grade=grade,
        filter=filter_name,
        scale=scale,
        columns={role: column for role, column in columns.items() if column is not None},
    )
    emit(result, json=json)
    unreadable = sum(entry["unreadable"] for entry in result["results"])
    if strict and unreadable:
        raise ClaimFailed(f"{unreadable} parts of the logs could not be read")
