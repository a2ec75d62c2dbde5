"""What an argument of a verb is called, takes and means."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

INPUT, COMPUTE, OUTPUT, ADVANCED = "Input", "What to compute", "Output", "Advanced"
GROUPS = (INPUT, COMPUTE, OUTPUT, ADVANCED)

Kind = Literal[
    "",
    "names",
    "several",
    "whole numbers",
    "numbers",
    "map",
    "map or numbers",
    "date",
    "name or number",
]
Place = Literal["", "read", "write", "write with folders", "folder", "file or folder"]


@dataclass(frozen=True, slots=True)
class Option:
    """What an argument of a verb means, and which values it takes.

    Parameters
    ----------
    help
        One sentence.
    metavar
        What goes there, in the help: ``COL``, ``PATH``, ``A,B,..``.
    group
        Where it stands in the help.
    min, max, above, below
        Ends of a range that are allowed, and ends that are not.
    unit
        What a number counts, for messages: ``seconds``.
    choices
        The words allowed.
    kind
        How a text on the command line is read where the type alone does not say it: ``names``
        (separated by commas), ``several`` (the option is given several times), ``whole numbers``,
        ``numbers``, ``map`` (name=number), ``map or numbers``, ``date``, ``name or number``.
    place
        A path: to ``read`` from, to ``write`` a file to (``write with folders``: folders above it
        are made), a ``folder`` to fill.
    example
        How the value is written, for messages.
    argument
        On the command line it is given without a name; with `several` values where `kind` says so.
    required
        The command needs it, although a call from Python does not.
    cli
        Name on the command line where it is not that of the argument.

    Examples
    --------
    >>> Option("Equal-width bins.", min=1, max=100).group
    'What to compute'
    """

    help: str
    _: KW_ONLY
    metavar: str = ""
    group: str = COMPUTE
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    kind: Kind = ""
    place: Place = ""
    example: str = ""
    argument: bool = False
    required: bool = False
    cli: str = ""
