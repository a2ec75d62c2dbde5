"""Options that the commands of `label` share, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import ADVANCED, INPUT, Option

__all__ = [
    "Budget",
    "Design",
    "Existing",
    "Overlap",
    "StopPrecision",
    "StopThreshold",
    "Store",
    "Who",
    "WholeQuestions",
    "goals_of",
    "pool_columns",
    "refuse_overwriting",
]

# What most people who name no goal can use, for 130 to 350 labels.
DEFAULT_PRECISION = 0.05

StopPrecision: TypeAlias = Annotated[
    float | None,
    Option(
        "Stop when accuracy and error are known to within this; 0.05 where no goal is named.",
        metavar="D",
        above=0,
        below=1,
    ),
]
StopThreshold: TypeAlias = Annotated[
    float | None,
    Option("Stop when the error is above or below this.", metavar="X", above=0, below=1),
]
Budget: TypeAlias = Annotated[
    int | None,
    Option("The most labels you will make, if fixed beforehand.", metavar="N", min=50, max=10**9),
]
Store: TypeAlias = Annotated[
    str | Path | None,
    Option("Where labels are kept; beside the table by default.", metavar="PATH", group=ADVANCED),
]
Who: TypeAlias = Annotated[str, Option("Name of the person who labels.", metavar="NAME")]
Design: TypeAlias = Annotated[
    str,
    Option(
        "How items are drawn.",
        metavar="stratified|random|pps",
        choices=("stratified", "random", "pps", "neyman"),
    ),
]
Overlap: TypeAlias = Annotated[
    float, Option("Share of items that two people label.", metavar="SHARE", min=0, max=1)
]
WholeQuestions: TypeAlias = Annotated[
    bool, Option("Draw questions with all their answers, so that models can be compared.")
]
Existing: TypeAlias = Annotated[
    str,
    Option(
        "Outcomes in the table itself: leave them out, or take them as a random choice.",
        metavar="ignore|random",
        group=INPUT,
        choices=("ignore", "random"),
    ),
]


def goals_of(
    precision: float | None, threshold: float | None, budget: int | None
) -> dict[str, Any]:
    """Return the goal of labelling by name: a precision of 5 points where none is named.

    Examples
    --------
    >>> goals_of(None, None, 400)["precision"], goals_of(None, 0.1, None)["precision"]
    (0.05, None)
    """
    if precision is None and threshold is None:
        precision = DEFAULT_PRECISION
    return {"precision": precision, "threshold": threshold, "budget": budget}


def pool_columns(
    confidence: str | None,
    correct: str | None,
    model: str | None,
    method: str | None,
    question: str | None,
    answer: str | None,
    on_invalid: str,
) -> dict[str, Any]:
    """Return the names of a pool's columns by role, with the rule for bad rows."""
    return {
        "confidence": confidence,
        "correct": correct,
        "model": model,
        "method": method,
        "question": question,
        "answer": answer,
        "on_invalid": on_invalid,
    }


def refuse_overwriting(table: Any, out: str | Path | None) -> None:
    """Refuse to write the user's own table."""
    if out is None or not isinstance(table, str | Path):
        return
    if Path(out).resolve() == Path(table).resolve():
        raise InputError(
            "the table itself is never written: its labels are kept beside it",
            source=str(out),
            hint=Hint("name another file with {out}, or leave it out"),
        )
