"""Options that the commands of `label` share, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import ADVANCED, INPUT, Option
from calibrant.inputs.pool import OpenPool, open_pool
from calibrant.inputs.provenance import document_head
from calibrant.planning.labelling.designs import DEFAULT_DESIGN
from calibrant.verbs._options import (
    TABLE,
    Bins,
    Judge,
    Peers,
    Seed,
    TableOptions,
)
from calibrant.verbs.labelling.document import label_document

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
CheckGrades: TypeAlias = Annotated[
    bool, Option("Check the grades that this program made of a study.")
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


class StoreOptions(TableOptions, total=False):
    """Options of every command of `label`: where labels are kept, how the table is read."""

    existing: Existing
    labels: Store


class PoolOptions(StoreOptions, total=False):
    """Options of every command that estimates: side information and bins."""

    judge: Judge
    peers: Peers
    bins: Bins


class DrawOptions(PoolOptions, total=False):
    """Options of commands that draw items."""

    design: Design
    overlap: Overlap
    whole_questions: WholeQuestions
    seed: Seed


class GoalOptions(PoolOptions, total=False):
    """Options of commands that say whether one may stop."""

    precision: StopPrecision
    threshold: StopThreshold
    budget: Budget


class ServeOptions(DrawOptions, GoalOptions, total=False):
    """Options of the page: it draws, and says whether one may stop."""


DEFAULTS: ServeOptions = {
    **TABLE,
    "existing": "ignore",
    "labels": None,
    "judge": None,
    "peers": False,
    "bins": 15,
    "design": DEFAULT_DESIGN,
    "overlap": 0.1,
    "whole_questions": False,
    "seed": 0,
    "precision": None,
    "threshold": None,
    "budget": None,
}


def goals_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the goal of labelling by name: a precision of 5 points where none is named.

    Examples
    --------
    >>> goals_of({"budget": 400})["precision"], goals_of({"threshold": 0.1})["precision"]
    (0.05, None)
    """
    found = {name: options.get(name) for name in ("precision", "threshold", "budget")}
    if found["precision"] is None and found["threshold"] is None:
        found["precision"] = DEFAULT_PRECISION
    return found


class OpenTask(NamedTuple):
    """A pool that a command works on, the head of its document, its columns and its goal."""

    work: OpenPool
    head: dict[str, Any]
    columns: dict[str, Any]
    goals: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the state of the pool."""
        return label_document(self.work, self.head, self.columns, self.goals)


def open_task(
    table: Any, options: Mapping[str, Any], *, wave: int = 50, create: bool = True
) -> OpenTask:
    """Open the pool of a command by its options.

    Parameters
    ----------
    table
        The pool.
    options
        Options of the command, those of its `Options` and no others.
    wave
        Items drawn at a time.
    create
        Whether to make a store where there is none.
    """
    head = document_head("label", table, seed=options.get("seed"))
    columns = {name: options[name] for name in TABLE}
    own = {name: options[name] for name in options if name in DEFAULTS}
    for name in (*TABLE, "precision", "threshold", "budget"):
        own.pop(name, None)
    work = open_pool(table, columns=columns, wave=wave, create=create, **own)
    return OpenTask(work, head, columns, goals_of(options))


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
