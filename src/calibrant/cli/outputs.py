"""Output options that the commands share; `emit` does what they say."""

from __future__ import annotations

from calibrant.core.verb import OUTPUT, Option, Parameter

OUTPUTS: dict[str, tuple[type, Option]] = {
    "json": (
        str,
        Option("Write the result as JSON; - for standard output.", metavar="PATH|-", group=OUTPUT,
               place="write"),
    ),
    "html": (
        str,
        Option("Write a self-contained report.", metavar="PATH", group=OUTPUT, place="write"),
    ),
    "full": (bool, Option("Show every table.", group=OUTPUT)),
    "top": (
        int,
        Option("Show this many rows of a table.", metavar="N", group=OUTPUT, min=1, max=10**9),
    ),
    "sort": (str, Option("Sort the tables by this column.", metavar="COLUMN", group=OUTPUT)),
    "fail_if": (
        str,
        Option("Exit with 1 where this holds; may be given several times: 'ece>0.05'.",
               metavar="CLAIM", group=OUTPUT, kind="several"),
    ),
    "allow_undecided": (
        bool,
        Option("Let a condition on a claim pass where the claim is undecided.", group=OUTPUT),
    ),
    "junit": (
        str,
        Option("Write these checks as a JUnit report.", metavar="PATH", group=OUTPUT,
               place="write"),
    ),
    "quiet": (bool, Option("No progress bar.", group=OUTPUT)),
}  # fmt: skip


def output_parameters(names: tuple[str, ...]) -> dict[str, Parameter]:
    """Return the output options of a command by name."""
    return {
        name: Parameter(name, option, base, False if base is bool else None)
        for name in names
        for base, option in [OUTPUTS[name]]
    }
