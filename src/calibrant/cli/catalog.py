"""The verbs: their words, where the function of each is, what it is for, and its stored help."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple, NoReturn

import click


class CatalogEntry(NamedTuple):
    """A verb in the list of verbs."""

    place: str
    summary: str


def _stored(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


VERBS: dict[str, CatalogEntry] = {
    words: CatalogEntry(*entry) for words, entry in _stored("catalog.json").items()
}
"""In the order of a user's journey; nothing is loaded by naming them, so help is there at once."""


GROUPS: dict[str, str] = {
    "label": "Choose which answers to label next, and when to stop.",
    "bench": "Write questions with exactly k right answers, check them, and evaluate on them.",
    "models": "Fetch or list the weights of the embedded model.",
}
"""What verbs of several parts are for."""


def verb_function(words: str) -> Callable[..., Any]:
    """Return the function of a verb.

    Examples
    --------
    >>> verb_function("audit").__name__
    'audit'
    """
    module, _, name = VERBS[words].place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


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
    leading = words[: words.index("--")] if "--" in words else words
    return any(word in SETTINGS["help_option_names"] for word in leading)


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
        self.stored: dict[str, Any] = _stored("help.json")[words]

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
