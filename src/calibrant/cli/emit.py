"""How a verb hands over its result: terminal, JSON, HTML, checks."""

import sys
from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console

from calibrant.core.document import dump_document
from calibrant.core.errors import printable
from calibrant.report import print_block, terminal_blocks
from calibrant.report.result import Result
from calibrant.report.terminal import LEAST_WIDTH

_VIEW = ("full", "top", "sort")
_MORE = {"full": "--full", "html": "--html page.html", "json": "--json out.json"}


class _Console(Console):
    """A terminal; whoever stops reading it (`| head -1`) is dealt with where the program ends."""

    def on_broken_pipe(self) -> None:
        """Pass it on: the library would end the program as if a check had failed."""
        raise BrokenPipeError


def emit(result: Result, outputs: Mapping[str, Any], *, available: Collection[str]) -> None:
    """Do what the output options say, and print the result where JSON does not go there.

    Parameters
    ----------
    result
        What the verb returned.
    outputs
        The output options given: json, html, junit, fail_if; full, top and sort are handed to
        the tables as they are.
    available
        The output options that the command has: no other is offered.
    """
    json, html, junit = (outputs.get(name) for name in ("json", "html", "junit"))
    if html is not None:
        result.to_html(html)
    if junit is not None:
        from calibrant.report.exports import to_junit

        undecided = bool(outputs.get("allow_undecided"))
        to_junit(result, outputs.get("fail_if") or [], junit, allow_undecided=undecided)
    if json == "-":
        sys.stdout.buffer.write(dump_document(result.to_dict()))
        sys.stdout.buffer.flush()
        return
    if json is not None:
        result.to_json(json)
    console = _Console()
    console.width = max(console.width, LEAST_WIDTH)
    view = {name: outputs[name] for name in _VIEW if name in outputs}
    more = "   ".join(words for name, words in _MORE.items() if name in available)
    for block in terminal_blocks(result.to_dict(), width=console.width, more=more, **view):
        print_block(console, block)
    for path in (json, html):
        if path is not None:
            # A name in brackets is no style.
            console.print(printable(f"written: {path}"), highlight=False, markup=False)
