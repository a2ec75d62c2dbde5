"""Work on draws that an engine shares out by rules, text by text and question by question."""

from __future__ import annotations

import polars as pl

from calibrant.inputs.streams.engines import Engine
from calibrant.semantics.annotate import Annotated, annotate
from calibrant.semantics.options import Options


def annotate_on(
    engine: Engine,
    draws: pl.DataFrame,
    questions: pl.DataFrame | None = None,
    *,
    options: Options | None = None,
) -> Annotated:
    """Return what `annotate` returns, with texts and questions shared out over an engine.

    Only for clustering and grading by rules: a judge keeps one docket for the whole table.

    Parameters
    ----------
    engine
        Where the parts run.
    draws, questions, options
        As for `calibrant.semantics.annotate`.

    Examples
    --------
    >>> from calibrant.inputs.streams.engines import LocalEngine
    >>> draws = pl.DataFrame({
    ...     "question_id": ["q"] * 2, "model": ["m"] * 2, "draw": [0, 1],
    ...     "purpose": ["answer"] * 2, "text": ["Paris", "paris."],
    ... })
    >>> annotate_on(LocalEngine(), draws).semantics["class_id"].to_list()
    [0, 0]
    """
    return annotate(draws, questions, options=options, mapper=engine.map)
