"""Columns that describe questions and answers: which rows have them, texts as numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint
from calibrant.data import Scores
from calibrant.data.reading.roles import ROLES
from calibrant.data.score_table import CLUSTER

FEATURE_MISSING = "feature_missing"


def refuse_outcome(features: Sequence[str], correct: str | None) -> None:
    """Refuse the outcome as a feature: it would tell what is to be found out."""
    if (correct or "correct") in features:
        raise InputError(
            f"the outcome {correct or 'correct'!r} cannot be a feature: it is what a confidence "
            "is held against",
            hint=Hint("name columns with {features} that are known before the answer is graded"),
        )


def describing_columns(frame: pl.DataFrame) -> list[str]:
    """Return the columns that may describe a question or an answer, for a hint.

    Numbers and flags that vary, and texts that repeat: an id or a free text says nothing of other
    rows, nor does a second name of the questions or the models.

    Examples
    --------
    >>> table = {"confidence": [0.1] * 9, "topic": list("aabbaabba"), "note": list("abcdefghi")}
    >>> describing_columns(pl.DataFrame(table))
    ['topic']
    """
    names = []
    for column in frame.get_columns():
        name = column.name
        if name.startswith("_") or name in (*ROLES, CLUSTER) or column.dtype.is_nested():
            continue
        values = column.n_unique()
        text = not (column.dtype.is_numeric() or column.dtype == pl.Boolean)
        keys = (key for key in ("question_id", "model", CLUSTER) if key in frame.columns)
        if 1 < values <= (column.len() / 3 if text else column.len()) and not any(
            frame[key].n_unique() == values == frame.select(name, key).n_unique() for key in keys
        ):
            names.append(name)
    return names


def features_hint(frame: pl.DataFrame) -> Hint:
    """Return how to name features, with those that the table has."""
    names = describing_columns(frame)
    if not names:
        return Hint("name columns with {features}")
    return Hint("name columns, for example {features}", features=names)


def without_missing(scores: Scores, columns: Sequence[str], on_invalid: str | None) -> Scores:
    """Return the rows that have all features; others are left out and counted, or an error."""
    frame = scores.frame
    features = [frame[name] for name in columns]
    missing = [
        x.is_null() | ~x.is_finite() if x.dtype.is_float() else x.is_null() for x in features
    ]
    bad = reduce(or_, missing, pl.repeat(False, frame.height, eager=True))
    if not bad.any():
        return scores
    if on_invalid == "error":
        name = next(lacks.name for lacks in missing if lacks.any())
        raise InputError(
            f"the feature {name!r} is missing in {int(bad.sum())} of {frame.height} rows",
            source=scores.source,
            hint=Hint(
                "fill it with a category of its own, or use {on_invalid} to leave such rows "
                "out and have them counted",
                on_invalid="missing",
            ),
        )
    losses = frame.filter(bad).with_columns(rule=pl.lit(FEATURE_MISSING))
    return replace(
        scores,
        frame=frame.filter(~bad),
        dropped={**scores.dropped, FEATURE_MISSING: losses.height},
        rejected=pl.concat([scores.rejected, losses], how="diagonal_relaxed"),
    )


def beside_methods(scores: Scores, methods: Sequence[str]) -> Scores:
    """Return the rows of the first method, with the confidences of the others as columns."""
    frame, keys = scores.frame, ["model", "question_id"]
    require_known(methods, frame["method"].unique().sort().to_list(), "there is no method {}")
    rows = frame.filter(pl.col("method") == methods[0])
    for name in methods[1:]:
        peer = frame.filter(pl.col("method") == name)
        peer = peer.select(*keys, pl.col("confidence").alias(name))
        if peer.select(keys).is_duplicated().any():
            rule = f"{name} has several confidences for one question"
            raise InputError(
                rule, source=scores.source, hint="keep one row per question and method"
            )
        rows = rows.join(peer, on=keys, how="left", maintain_order="left")
    return replace(scores, frame=rows)


def embed_texts(texts: pl.Series) -> tuple[Floats, str]:
    """Return one vector per text, and the name of the embedder; needs the extra `local`."""
    from calibrant.models.endpoints.embedded import open_embedder

    distinct = texts.unique(maintain_order=True)
    embedder = open_embedder()
    vectors = np.asarray(embedder.embed(distinct.to_list()), dtype=np.float64)
    place = {text: position for position, text in enumerate(distinct.to_list())}
    return vectors[[place[text] for text in texts.to_list()]], embedder.name


def vector_column(column: str) -> str:
    """Return the name of the column that holds the whole embedding of a text column."""
    return f"{column} vector"


def embedded(
    frame: pl.DataFrame, features: list[str], column: str | None, dimensions: int
) -> tuple[pl.DataFrame, list[str], dict[str, Any] | None]:
    """Add the principal components of a text column's embedding as features, and the whole of it.

    What is returned last holds all that a policy needs to do the same to a new question.
    """
    if column is None:
        return frame, features, None
    vectors, name = embed_texts(frame[column].cast(pl.String))
    if dimensions < 1 or dimensions > min(vectors.shape):
        raise InputError(
            f"embed_dimensions must be between 1 and {min(vectors.shape)}, got {dimensions}"
        )
    centre = vectors.mean(axis=0)
    _, sizes, axes = np.linalg.svd(vectors - centre, full_matrices=False)
    # The sign of an axis is free: its largest entry is made positive, so that runs agree.
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
    points = (vectors - centre) @ axes[:dimensions].T
    names = [f"{column}_{number + 1}" for number in range(dimensions)]
    joined = frame.with_columns(
        *(pl.Series(new, points[:, place]) for place, new in enumerate(names)),
        pl.Series(vector_column(column), vectors.astype(np.float32)),
    )
    about = {
        "column": column,
        "embedder": name,
        "dimensions": dimensions,
        "explained_variance": float((sizes[:dimensions] ** 2).sum() / (sizes**2).sum()),
        "centre": centre,
        "axes": axes[:dimensions],
    }
    return joined, [*features, *names], about
