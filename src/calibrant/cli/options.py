"""Options that several verbs share, in one vocabulary.

A place to write to is checked while the command line is read: a verb that works for an hour must
not find out at its end that there is no such folder.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from calibrant.core.errors import InputError
from calibrant.core.inputs import check_input
from calibrant.core.naming import naming
from calibrant.core.output import check_output, check_output_folder

__all__ = [
    "COSTS_WRITTEN",
    "AnswerColumn",
    "Bins",
    "By",
    "ConfidenceColumn",
    "CorrectColumn",
    "Costs",
    "EmbedColumn",
    "EmbedDimensions",
    "EngineName",
    "FiguresFolder",
    "HtmlPath",
    "Inputs",
    "JsonPath",
    "JunitPath",
    "Level",
    "MarkdownPath",
    "MethodColumn",
    "ModelColumn",
    "OnInvalid",
    "OnInvalidByInput",
    "QuestionColumn",
    "Recalibration",
    "Resamples",
    "SavePath",
    "Scale",
    "ScoresInput",
    "Seed",
    "WeightsColumn",
    "error_or_drop",
    "file_to_write",
    "file_with_folders",
    "finite",
    "folder_to_write",
    "input_to_read",
    "inputs_to_read",
    "name_list",
    "number_by_name",
    "seconds",
    "share_inside",
    "study_to_read",
]


def input_to_read(option: typer.CallbackParam, path: str | None) -> str | None:
    """Check a file or folder that a verb will read."""
    if path is not None:
        with naming(option.opts[0] if option.param_type_name == "option" else None):
            check_input(path if path.strip() else "")
    return path


def inputs_to_read(option: typer.CallbackParam, paths: list[str] | None) -> list[str] | None:
    """Check files or folders that a verb will read."""
    for path in paths or []:
        input_to_read(option, path)
    return paths


def study_to_read(path: Path | None) -> Path | None:
    """Check a study folder that a verb will read."""
    if path is not None:
        check_input(path)
    return path


def file_to_write(option: typer.CallbackParam, path: str | None) -> str | None:
    """Check a file that a verb will write."""
    if path is not None:
        check_output(_named(option, path))
    return path


def file_with_folders(option: typer.CallbackParam, path: str | None) -> str | None:
    """Check a file that a verb will write with the folders above it."""
    if path is not None:
        check_output(_named(option, path), makes_folders=True)
    return path


def folder_to_write(option: typer.CallbackParam, path: str | None) -> str | None:
    """Check a folder that a verb will fill."""
    if path is not None:
        check_output_folder(_named(option, path))
    return path


def _named(option: typer.CallbackParam, path: str | Path) -> str | Path:
    """Refuse a place without a name: the folder one is in is a dot, and - is for --json alone."""
    if str(path) == "-":
        raise InputError(
            f"{option.opts[0]} names a file or a folder; only --json goes to standard output (-)",
            hint="name a file, or write to /dev/stdout",
        )
    if not str(path).strip():
        raise InputError(
            f"{option.opts[0]} is a path to write to, got {str(path)!r}",
            hint="name a file or a folder; . is the folder you are in",
        )
    return path


def share_inside(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check a share that is neither nothing nor all: a level, a false-alarm rate, a threshold."""
    if value is not None and not 0 < value < 1:
        raise InputError(f"{option.opts[0]} lies between 0 and 1, got {value:g}")
    return value


def seconds(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check a time to wait."""
    if value is not None and not 0 < value < math.inf:
        raise InputError(f"{option.opts[0]} is a number of seconds above 0, got {value:g}")
    return value


def finite(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check a number that may be of any size, but is one."""
    if value is not None and not math.isfinite(value):
        raise InputError(f"{option.opts[0]} is a finite number, got {value:g}")
    return value


def error_or_drop(option: typer.CallbackParam, word: str | None) -> str | None:
    """Check what to do with rows that break a rule."""
    if word not in (None, "error", "drop"):
        raise InputError(f"{option.opts[0]} is error or drop, got {word!r}")
    return word


def name_list(option: str, text: str | None) -> list[str]:
    """Return the names of a list separated by commas; an empty name is refused, and one twice.

    Examples
    --------
    >>> name_list("--models", "small, large")
    ['small', 'large']
    >>> name_list("--models", "small,,large")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: --models is a list of names separated by commas, got \
'small,,large'
    """
    found = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(found):
        raise InputError(f"{option} is a list of names separated by commas, got {text!r}")
    twice = [name for name, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(f"{option} names {twice[0]!r} more than once, got {text!r}")
    return found


def number_by_name(option: str, text: str | None, example: str) -> dict[str, float] | None:
    """Return numbers by name from a list such as 'c10=1,c01=5'."""
    if text is None:
        return None
    try:
        pairs = [part.rsplit("=", 1) for part in name_list(option, text)]
        found = {name.strip(): float(value) for name, value in pairs}
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{option} is written {example}, got {text!r}") from None
    if not all(abs(number) <= _LARGEST for number in found.values()):
        raise InputError(f"{option} holds numbers up to {_LARGEST:g}, got {text!r}")
    if len(found) < len(pairs):
        raise InputError(f"{option} gives one name several numbers, got {text!r}")
    return found


def _file_or_output(option: typer.CallbackParam, path: str | None) -> str | None:
    return path if path == "-" else file_to_write(option, path)


# -- what goes in and out
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT..",
        help="Study folder, table (csv, jsonl, parquet) or foreign log.",
        callback=inputs_to_read,
    ),
]
ScoresInput = Annotated[
    str,
    typer.Argument(
        metavar="INPUT", help="Study folder or table of scores.", callback=input_to_read
    ),
]
JsonPath = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="PATH|-", help="Write the result as JSON.", callback=_file_or_output
    ),
]
HtmlPath = Annotated[
    str | None,
    typer.Option(
        "--html", metavar="PATH", help="Write a self-contained report.", callback=file_to_write
    ),
]
JunitPath = Annotated[
    str | None,
    typer.Option(
        "--junit",
        metavar="PATH",
        help="Write the checks of --fail-if as a JUnit report.",
        callback=file_to_write,
    ),
]
MarkdownPath = Annotated[
    str | None,
    typer.Option(
        "--markdown", metavar="PATH", help="Write the tables as Markdown.", callback=file_to_write
    ),
]
FiguresFolder = Annotated[
    str | None,
    typer.Option(
        "--figures",
        metavar="DIR",
        help="Write every figure as SVG, PNG and PDF.",
        callback=folder_to_write,
    ),
]
SavePath = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="PATH",
        help="Write the fitted risk cascade as JSON.",
        callback=file_to_write,
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="local|ray|ray://HOST:PORT",
        help="Read the table in parts: in threads, or on a Ray cluster.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same bytes.")]

# -- columns of a table
By = Annotated[
    list[str] | None, typer.Option("--by", metavar="COL", help="A block per value of this column.")
]
ConfidenceColumn = Annotated[
    str | None, typer.Option("--confidence", metavar="COL", help="Column of the confidence.")
]
CorrectColumn = Annotated[
    str | None, typer.Option("--correct", metavar="COL", help="Column of the outcome, 0 or 1.")
]
ModelColumn = Annotated[
    str | None, typer.Option("--model", metavar="COL", help="Column of models.")
]
MethodColumn = Annotated[
    str | None, typer.Option("--method", metavar="COL", help="Column of confidence methods.")
]
QuestionColumn = Annotated[
    str | None, typer.Option("--question", metavar="COL", help="Column of question ids.")
]
AnswerColumn = Annotated[
    str | None, typer.Option("--answer", metavar="COL", help="Column of the answer graded.")
]
WeightsColumn = Annotated[
    str | None, typer.Option("--weights", metavar="COL", help="Column of row weights.")
]
EmbedColumn = Annotated[
    str | None,
    typer.Option("--embed", metavar="COL", help="Text whose embedding joins the features."),
]
EmbedDimensions = Annotated[
    int,
    typer.Option("--embed-dimensions", min=1, max=10_000, help="Components of the embedding."),
]

# -- rules for its rows
OnInvalid = Annotated[
    str,
    typer.Option(
        "--on-invalid",
        metavar="error|drop",
        help="What to do with rows that break a rule: stop, or drop them and report which.",
        callback=error_or_drop,
    ),
]
OnInvalidByInput = Annotated[
    str | None,
    typer.Option(
        "--on-invalid",
        metavar="error|drop",
        help="Rows that break a rule: stop (default for a table), or drop and report which "
        "(default for a study).",
        callback=error_or_drop,
    ),
]
Scale = Annotated[
    str,
    typer.Option("--scale", metavar="fraction|percent", help="How the confidence is written."),
]

# -- how numbers are made
Bins = Annotated[
    int,
    typer.Option("--bins", min=1, max=10_000, help="Equal-width bins of the calibration error."),
]
Level = Annotated[
    float, typer.Option("--level", help="Coverage of the intervals.", callback=share_inside)
]
Resamples = Annotated[
    int, typer.Option("--resamples", min=2, max=1_000_000, help="Bootstrap resamples.")
]
Recalibration = Annotated[
    str,
    typer.Option("--recalibration", metavar="NAME", help="platt, isotonic, beta or temperature."),
]
_LARGEST = 1e15
COSTS_WRITTEN = "c10=1,c01=5 (c10: deciding 1 where the truth is 0)"
Costs = Annotated[
    str | None,
    typer.Option("--costs", metavar="c10=1,c01=5", help="Cost matrix of the decision."),
]
