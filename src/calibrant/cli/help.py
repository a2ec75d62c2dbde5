"""The help of a verb as it is stored: shown without loading the verb and its libraries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, NoReturn

import click

from calibrant.cli.catalog import VERBS

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""What every command has in common: the names of its help, and how wide that is."""


def asks_for_help(args: Sequence[str]) -> bool:
    """Return whether the words after a verb ask for its help.

    Examples
    --------
    >>> asks_for_help(["scores.csv", "-h"]), asks_for_help(["--", "-h"]), asks_for_help([])
    (True, False, False)
    """
    words = list(args)
    own = words[: words.index("--")] if "--" in words else words
    return any(word in SETTINGS["help_option_names"] for word in own)


def write_sections(
    formatter: click.HelpFormatter, sections: Sequence[tuple[str, Any]], example: str
) -> None:
    """Write the options by group, then the example."""
    for group, entries in sections:
        with formatter.section(group):
            formatter.write_dl([(left, right) for left, right in entries])
    if example:
        with formatter.section("Example"):
            formatter.write_text(example)


class StoredHelp(click.Command):
    """A verb that is only asked for its help.

    ``python -m calibrant.cli.reference`` writes what it shows, from the signature of each verb.

    Parameters
    ----------
    words
        What the verb is called on the command line.
    """

    def __init__(self, words: str) -> None:
        name = words.split()[-1]
        super().__init__(name, help=VERBS[words].summary, context_settings=SETTINGS)
        text = resources.files(__package__).joinpath("help.json").read_text(encoding="utf-8")
        self.stored: dict[str, Any] = json.loads(text)[words]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return what a call needs."""
        return list(self.stored["usage"])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the options by group, then the example."""
        write_sections(formatter, self.stored["sections"], self.stored["example"])

    def parse_args(self, ctx: click.Context, args: list[str]) -> NoReturn:  # noqa: ARG002
        """Show the help, whatever else was typed."""
        click.echo(self.get_help(ctx), color=ctx.color)
        ctx.exit()
