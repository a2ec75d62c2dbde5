"""Which question a logged answer belongs to, where the references are in a file of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.inputs.samples.read import Samples

# What people put between a question's id and the number of the draw.
_DRAW = re.compile(r"^(.*?)(?:[-_:#/.|@ ]+(?:draw|sample|gen|attempt|run|n|s)?[-_:#=]*\d+)$", re.I)
_SHOWN = 3


def match_references(found: Samples, questions: pl.DataFrame, source: str) -> Samples:
    """Return the samples under the ids of the questions in a file of references.

    An id that is not in the file may be a question's id with a draw number behind it.
    """
    ids = questions["question_id"].cast(pl.String).to_list()
    renamed = matched_ids(found.draws["question_id"].unique(maintain_order=True).to_list(), ids)
    missing = [name for name, known in renamed.items() if known is None]
    if len(missing) == len(renamed):
        raise InputError(
            f"no answer belongs to a question of the references: the answers are for "
            f"{', '.join(missing[:_SHOWN])}, the references for {', '.join(ids[:_SHOWN])}",
            source=source,
            hint="give both the same question ids",
        )
    table = pl.DataFrame(
        {"question_id": list(renamed), "__known": list(renamed.values())},
        schema={"question_id": pl.String, "__known": pl.String},
    )
    draws = (
        found.draws.join(table, on="question_id", how="left", maintain_order="left")
        .filter(pl.col("__known").is_not_null())
        .with_columns(pl.col("__known").alias("question_id"))
        .drop("__known")
    )
    key = ["question_id", "model"]
    if draws.select(*key, "draw").is_duplicated().any():
        draws = draws.with_columns(pl.int_range(pl.len()).over(key).alias("draw"))
    notes = list(found.notes)
    if missing:
        notes.append(f"{len(missing)} answered questions have no reference and are left out")
    return replace(found, questions=questions, draws=draws, notes=tuple(notes))


def matched_ids(answered: Iterable[str], known: Iterable[str]) -> dict[str, str | None]:
    """Return the question of each id that answers have.

    Examples
    --------
    >>> matched_ids(["q1", "q2-7", "q3_draw12", "q9"], ["q1", "q2", "q3"])
    {'q1': 'q1', 'q2-7': 'q2', 'q3_draw12': 'q3', 'q9': None}
    """
    ids = set(known)
    return {name: name if name in ids else _without_draw(name, ids) for name in answered}


def _without_draw(name: str, ids: set[str]) -> str | None:
    found = _DRAW.match(name)
    return found.group(1) if found is not None and found.group(1) in ids else None
