"""Side information for free: do the other models give the same answer?"""

from __future__ import annotations

import polars as pl

from calibrant.core.errors import UnavailableError


def peer_agreement(frame: pl.DataFrame) -> pl.Series:
    """Return, for every row, the share of other models that give the same answer, in [0, 1].

    It is no label and no claim: it steers which items to label and takes noise out of the
    estimate, while the labels alone decide its value.

    Parameters
    ----------
    frame
        Columns ``question_id``, ``model``, ``answer``; a missing answer agrees with nobody.

    Examples
    --------
    >>> frame = pl.DataFrame({"question_id": ["q"] * 3, "model": ["a", "b", "c"],
    ...                       "answer": ["X", "x ", "Y"]})
    >>> peer_agreement(frame).to_list()
    [0.5, 0.5, 0.0]
    """
    models = frame["model"].n_unique() if "model" in frame.columns else 0
    if models < 2 or "answer" not in frame.columns:
        raise UnavailableError(
            "peer agreement needs a column `answer` and at least two models on the same questions"
        )
    said = pl.col("answer").cast(pl.String).str.strip_chars().str.to_lowercase()
    rows = frame.select("question_id", "model", said.alias("said"))
    votes = rows.unique().group_by("question_id", "said").agg(votes=pl.len())
    others = rows.group_by("question_id").agg(others=pl.col("model").n_unique() - 1)
    joined = rows.join(votes, on=["question_id", "said"], how="left", maintain_order="left").join(
        others, on="question_id", how="left", maintain_order="left"
    )
    agreed = (
        pl.when(pl.col("said").is_null() | (pl.col("others") == 0))
        .then(0.0)
        .otherwise((pl.col("votes") - 1) / pl.col("others"))
    )
    return joined.select(agreed.fill_null(0.0).alias("peers")).to_series()
