"""`calibrant run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.cluster_output import cluster_speaks_on_stderr
from calibrant.cli.emit import emit
from calibrant.cli.options import HtmlPath, JsonPath, study_to_read
from calibrant.cli.progress import ProgressBar
from calibrant.clients.asks import Progress
from calibrant.core.errors import CalibrantError
from calibrant.workflows.run import run

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    study: Annotated[
        Path, typer.Argument(help="Study folder, or its study.toml.", callback=study_to_read)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be sent and what it can cost.")
    ] = False,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Ask again for what was set aside for good.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="local|ray|ray://HOST:PORT",
            help="Share out clustering and grading by rules: to threads, or to a Ray cluster.",
        ),
    ] = None,
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Ask models, cluster, grade and score: a study from study.toml.

    Whatever happens, nothing that was paid for is lost: run the same command again and it goes on.
    """
    folder = study.parent if study.name == "study.toml" else study
    with RunBar(enabled=not (quiet or dry_run)) as bar, cluster_speaks_on_stderr():
        try:
            result = run(
                folder, dry_run=dry_run, retry_failures=retry_failures, watch=bar, engine=engine
            )
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; every answer that had arrived is kept\n"
                f"  -> `calibrant run {folder}` goes on"
            ) from None
    emit(result, json=json, html=html)


class RunBar(ProgressBar):
    """The bar, with a line for what a waiting user must know: a dead endpoint, what is tried next.

    Lines also come where there is no terminal for a bar.
    """

    def __init__(self, *, enabled: bool) -> None:
        super().__init__(enabled=enabled)
        self._speaks = enabled

    def update(self, progress: Progress) -> None:
        """Show the counts, and the notice where there is one."""
        super().update(progress)
        if progress.notice is not None and self._speaks:
            self._progress.console.print(progress.notice, markup=False, highlight=False)


class Interrupted(CalibrantError):
    """The user stopped the run."""

    exit_code = 130
