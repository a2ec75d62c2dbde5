"""One grade per meaning, where every draw came with a grade of its own.

Whether an answer is right is a property of its meaning. What counts as one meaning must not hang
on the grades: a share that the grades cut is no share of the answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


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
