"""`calibrant run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from calibrant.api.run import run
from calibrant.cli.emit import emit
from calibrant.cli.options import HtmlPath, JsonPath
from calibrant.core.errors import CalibrantError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    study: Annotated[Path, typer.Argument(help="Study folder, or its study.toml.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be sent and what it can cost.")
    ] = False,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Ask again for what was set aside for good.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Ask models, cluster, grade and score: a study from study.toml.

    Whatever happens, nothing that was paid for is lost: run the same command again and it goes on.
    """
    folder = study.parent if study.name == "study.toml" else study
    with _Bar(enabled=not (quiet or dry_run)) as bar:
        try:
            result = run(folder, dry_run=dry_run, retry_failures=retry_failures, watch=bar)
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; every answer that had arrived is kept\n"
                f"  -> `calibrant run {folder}` goes on"
            ) from None
    emit(result, json=json, html=html)


class Interrupted(CalibrantError):
    """The user stopped the run."""

    exit_code = 130


class _Bar:
    """A progress bar on standard error: draws, rate, cost, time left."""

    def __init__(self, *, enabled: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[cost]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not enabled or not console.is_terminal,
        )
        self._task: Any = None
        self._priced = False

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def start(self, model: str, draws: int, *, priced: bool) -> None:
        """Begin a line for a model."""
        self._priced = priced
        self._task = self._progress.add_task(model, total=draws, rate="", cost="")

    def update(self, progress: Any) -> None:
        """Show the counts."""
        seconds = max(progress.elapsed_s, 1e-9)
        rate = f"{progress.draws_new / seconds:.1f} draws/s"
        if progress.retries:
            rate += f", {progress.retries:,} retries"
        self._progress.update(
            self._task,
            completed=progress.draws_new + progress.draws_cached,
            rate=rate,
            cost=f"${progress.cost:.4f}" if self._priced else "price unknown",
        )
