"""Work that splits by question: parts go to an engine, results come back in the old order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from calibrant.api.engines import Engine
from calibrant.core.errors import InputError
from calibrant.semantics.annotate import Annotated, annotate
from calibrant.semantics.options import Options

__all__ = ["annotate_on", "question_parts"]


def question_parts(frame: pl.DataFrame, parts: int) -> list[pl.DataFrame]:
    """Split a table by question into at most `parts` tables; all rows of a question stay together.

    Questions are dealt in order of first appearance, so that the split depends on the table alone.

    Examples
    --------
    >>> table = pl.DataFrame({"question_id": ["a", "b", "a", "c"]})
    >>> [part["question_id"].to_list() for part in question_parts(table, 2)]
    [['a', 'a', 'c'], ['b']]
    """
    known = frame["question_id"].unique(maintain_order=True)
    dealt = pl.DataFrame({"question_id": known, "_part": range(known.len())}).with_columns(
        pl.col("_part") % parts
    )
    joined = frame.join(dealt, on="question_id", how="left", maintain_order="left")
    return [part.drop("_part") for part in joined.partition_by("_part", maintain_order=True)]


def annotate_on(
    engine: Engine,
    draws: pl.DataFrame,
    questions: pl.DataFrame | None = None,
    *,
    options: Options | None = None,
    parts: int = 16,
) -> Annotated:
    """Return what `annotate` returns, with the questions shared out over an engine.

    Only for clustering and grading by rules: a judge keeps one docket for the whole table.

    Parameters
    ----------
    engine
        Where the parts run.
    draws, questions, options
        As for `calibrant.semantics.annotate`.
    parts
        Number of parts.
    """
    if options is not None and options.judge is not None:
        raise InputError(
            "a judge is asked for the whole table at once, an engine splits it",
            hint="leave out the judge, or annotate without an engine",
        )
    numbered = draws.with_row_index("_row")
    shared = question_parts(numbered, parts)
    one = partial(_annotated, questions=questions, options=options)
    found = list(engine.map(one, shared))
    rows = pl.concat([part["_row"] for part in shared])
    order = rows.arg_sort()
    return Annotated(
        pl.concat([part.draws for part in found], how="vertical_relaxed")[order],
        pl.concat([part.semantics for part in found], how="vertical_relaxed")[order],
        _merged([part.document for part in found]),
    )


def _annotated(
    part: pl.DataFrame, *, questions: pl.DataFrame | None, options: Options | None
) -> Annotated:
    return annotate(part.drop("_row"), questions, options=options)


def _merged(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up counts, join the first examples, keep what all parts share."""
    out: dict[str, Any] = {}
    for name, first in documents[0].items():
        values = [document[name] for document in documents]
        if isinstance(first, bool) or first is None or isinstance(first, str):
            out[name] = first
        elif isinstance(first, int):
            out[name] = sum(values)
        elif isinstance(first, dict):
            total: Counter[str] = Counter()
            for value in values:
                total.update(value)
            out[name] = dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
        elif name == "normalisation":
            out[name] = first
        else:
            out[name] = [item for value in values for item in value][:20]
    return out
