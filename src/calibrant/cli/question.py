"""A question about an input, asked where somebody sits at a terminal and answered by a key."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from calibrant.core.errors import QuestionError, printable


def chosen_reading(question: QuestionError) -> dict[str, Any] | None:
    """Return the options of the reading that somebody chose; None where nobody can be asked.

    Parameters
    ----------
    question
        The error that carries the readings.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty() and len(question.readings) > 1):
        return None
    question.for_shell()
    text = str(question).partition("\n  -> ")[0]
    click.echo(f"calibrant: {text}", err=True)
    keys = [str(number) for number in range(1, len(question.readings) + 1)]
    click.echo(f"Which is meant? Press {', '.join(keys)}, or q to stop: ", nl=False, err=True)
    while True:
        key = click.getchar()
        if key in keys:
            click.echo(key, err=True)
            reading = question.readings[int(key) - 1]
            modes = [
                (f"--{n}",) if v is True else (f"--{n}", v) for n, v in reading.options.items()
            ]
            words = shlex.join(word for mode in modes for word in mode)
            click.echo(printable(f"Read with {words}"), err=True)
            return dict(reading.options)
        if key in ("q", "Q", "\x03", "\x04", "\x1b"):
            click.echo("q", err=True)
            return None
