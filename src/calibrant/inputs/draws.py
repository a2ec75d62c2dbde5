"""Draws with a meaning and a grade: one grade per meaning, scores of meanings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl


def drawn_again(draws: pl.DataFrame) -> pl.DataFrame | None:
    """Return the draws of models that answered some question more than once; None without any.

    How often an answer comes back is what calibration over meanings is about.
    """
    twice = draws.group_by("model", "question_id").len().filter(pl.col("len") > 1)
    kept = draws.join(twice.select("model").unique(), on="model", how="semi")
    return kept if kept.height else None


def majority_grade(grade: str, same: Sequence[str]) -> pl.Expr:
    """Return the grade of most graded draws of a meaning; where they tie, of its first graded one.

    Parameters
    ----------
    grade
        Column with true, false, or null for a draw without a grade.
    same
        Columns that are equal in draws of one meaning.

    Examples
    --------
    >>> table = pl.DataFrame({"c": [0, 0, 0, 1, 1, 2], "g": [True, False, True, False, True, None]})
    >>> table.select(majority_grade("g", ["c"]))["g"].to_list()
    [True, True, True, False, False, None]
    """
    share = pl.col(grade).mean().over(same)
    first = pl.col(grade).drop_nulls().first().over(same)
    return (
        pl.when(share > 0.5).then(True).when(share < 0.5).then(False).otherwise(first).alias(grade)
    )


def divided_note(draws: pl.DataFrame, grade: str, same: Sequence[str]) -> list[str]:
    """Say how many meanings hold right and wrong draws, and which grade they have.

    Examples
    --------
    >>> table = pl.DataFrame({"c": [0, 0, 1], "g": [True, False, True]})
    >>> divided_note(table, "g", ["c"])[0][:55]
    'meanings with draws graded right and draws graded wrong'
    """
    graded = (
        draws.drop_nulls([*same, grade]).group_by(same).agg(pl.col(grade).mean().alias("share"))
    )
    divided = graded.filter(pl.col("share").is_between(0, 1, closed="none"))
    if not divided.height:
        return []
    tied = divided.filter(pl.col("share") == 0.5).height
    ties = f", and where they tie ({tied:,}) that of its first draw" if tied else ""
    return [
        f"meanings with draws graded right and draws graded wrong: {divided.height:,} of "
        f"{graded.height:,}. Each counts as one meaning, with the grade of most of its draws{ties}"
    ]


def meaning_scores(draws: pl.DataFrame, *, keep: Sequence[str] = ()) -> pl.DataFrame:
    """Return Sem1 and Sem2 of each question and model as scores, for what takes scores.

    Parameters
    ----------
    draws
        One row per draw: question_id, model, class_id, correct.
    keep
        Columns of the questions to keep, for groups.

    Examples
    --------
    >>> table = pl.DataFrame({"question_id": ["q"] * 4, "model": ["m"] * 4,
    ...     "class_id": ["a", "a", "a", "b"], "correct": [1, 1, 1, 0]})
    >>> meaning_scores(table).select("method", "confidence", "correct").rows()
    [('sem1', 0.75, 1.0), ('sem2', 0.5, 0.75)]
    """
    # Loaded here: most inputs hold no draws.
    from calibrant.metrics.semantic import pool_draws, question_scores

    parts = []
    for part in draws.partition_by("model", maintain_order=True):
        pool = pool_draws(
            part["question_id"].to_numpy(),
            class_numbers(part["class_id"]),
            part["correct"].cast(pl.Float64).to_numpy(),
        )
        found = question_scores(pool, splits="exact")
        for method, confidence, grade in (
            ("sem1", found.sem1, found.label1),
            ("sem2", found.sem2, found.label2),
        ):
            parts.append(
                pl.DataFrame(
                    {
                        "question_id": found.ids.astype(str),
                        "model": part["model"][0],
                        "method": method,
                        "confidence": confidence,
                        "correct": grade,
                    }
                )
            )
    scores = pl.concat(parts)
    known = [name for name in keep if name in draws.columns and name not in scores.columns]
    if not known:
        return scores
    features = draws.select("question_id", *known).unique("question_id", keep="first")
    return scores.join(features, on="question_id", how="left", maintain_order="left")


def class_numbers(column: pl.Series) -> Any:
    """Return classes as numbers, NaN for a draw without an answer; texts are numbered."""
    if column.dtype == pl.String:
        column = column.replace("", None).cast(pl.Categorical).to_physical()
    return column.cast(pl.Float64).to_numpy()
