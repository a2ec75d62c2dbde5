"""The entry point: verbs are imported when they are called, so that `--help` stays quick."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from calibrant import __version__
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.registry import did_you_mean

__all__ = ["main"]

VERBS: dict[str, str] = {
    "demo": "Run the whole chain on a small real model and write a report.",
    "run": "Ask models, cluster, grade and score: a study from study.toml.",
    "audit": "Is this confidence calibrated, and how sure can we be?",
    "compare": "Is A better calibrated than B, or only more accurate?",
    "groups": "For whom is the confidence wrong?",
    "cascade": "When to defer to a larger model, and what it costs.",
    "plan": "How many labels does a claim need, and what do these labels show?",
    "label": "Which items to label next, and may one stop?",
    "monitor": "Watch calibration over time, with a controlled false-alarm rate.",
    "bench": "Write questions with exactly k right answers, and check them.",
    "import": "Turn the logs of other tools into calibrant's tables.",
    "report": "Render results as one HTML page, Markdown or figures.",
    "methods": "List the confidence methods and what each one needs.",
    "models": "Fetch or list the weights of the embedded model.",
}
MODULES = {"import": "import_logs"}


class LazyGroup(TyperGroup):
    """A group whose verbs live in modules of their own."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class names it
        """Return the verbs in the order of a user's journey."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import the verb's module and return its command."""
        if cmd_name not in VERBS:
            raise InputError(
                f"there is no verb {cmd_name!r}", hint=did_you_mean(cmd_name, list(VERBS))
            )
        module = importlib.import_module(f"calibrant.cli.{MODULES.get(cmd_name, cmd_name)}")
        command = get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="How far can you trust what a model says about its own certainty?",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", callback=_say_version, is_eager=True
        ),
    ] = False,
) -> None:
    """How far can you trust what a model says about its own certainty?"""


def main() -> None:
    """Run the command line; errors of the data end with one message and exit code 2."""
    try:
        app()
    except CalibrantError as error:
        print(f"calibrant: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
