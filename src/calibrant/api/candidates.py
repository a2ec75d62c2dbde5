"""Every model's confidence in every candidate answer, for candidate-aligned comparison."""

from __future__ import annotations

import polars as pl

from calibrant.confidence import score_table
from calibrant.semantics import annotate

__all__ = ["candidate_scores"]

_METHODS = ("p_true_prob", "p_true_consistency")


def candidate_scores(
    pool: pl.DataFrame, draws: pl.DataFrame, questions: pl.DataFrame
) -> pl.DataFrame:
    """Score each (model, candidate) as if the candidate were that model's own greedy answer.

    So P(True) of a candidate means exactly what P(True) of an own answer means.

    Parameters
    ----------
    pool
        Draws of purpose ``p_true_pool``: the verdicts; ``about`` is the candidate.
    draws
        The other draws, with ``answer`` filled: whose greedy answer a candidate is.
    questions
        The questions.

    Returns
    -------
    DataFrame
        One row per question, model (who judges), method and candidate: ``answer``, ``confidence``,
        ``correct``, ``authors`` (models whose greedy answer it is), ``own``.
    """
    places = (
        pool.select("question_id", "about")
        .unique(maintain_order=True)
        .with_row_index("place")
        .with_columns(("candidate-" + pl.col("place").cast(pl.String)).alias("candidate_id"))
    )
    verdicts = pool.join(places, on=["question_id", "about"], maintain_order="left")
    crossed = pl.concat(
        [
            verdicts.with_columns(
                purpose=pl.lit("p_true"), question_id="candidate_id"
            ).with_columns(draw=pl.int_range(pl.len()).over("question_id", "model")),
            verdicts.unique(["candidate_id", "model"], maintain_order=True).with_columns(
                purpose=pl.lit("greedy"),
                question_id="candidate_id",
                draw=pl.lit(0, dtype=pl.Int64),
                text="about",
                temperature=pl.lit(0.0),
            ),
        ]
    ).drop("candidate_id", "place")
    asked = places.join(questions, on="question_id", maintain_order="left").with_columns(
        question_id="candidate_id"
    )
    marked, semantics = annotate(crossed, asked.drop("candidate_id", "place", "about"))
    scores = score_table(marked, semantics, methods=_METHODS).scores
    found = scores.rename({"question_id": "candidate_id"}).join(
        places, on="candidate_id", maintain_order="left"
    )
    return _with_authors(found, draws).drop("candidate_id", "place", "about", strict=False)


def _with_authors(scores: pl.DataFrame, draws: pl.DataFrame) -> pl.DataFrame:
    greedy = draws.filter((pl.col("purpose") == "greedy") & pl.col("answer").is_not_null())
    plain = (
        pl.col("answer")
        .str.to_lowercase()
        .str.split(" ")
        .list.eval(pl.element().filter(pl.element() != ""))
        .list.join(" ")
    )
    authors = greedy.group_by("question_id", plain.alias("same")).agg(authors="model")
    return (
        scores.with_columns(same=plain)
        .join(authors, on=["question_id", "same"], how="left", maintain_order="left")
        .with_columns(own=pl.col("authors").list.contains(pl.col("model")).fill_null(False))
        .drop("same")
    )
