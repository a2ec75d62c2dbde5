"""Every model's confidence in every candidate answer, for candidate-aligned comparison."""

from __future__ import annotations

import polars as pl

from calibrant.collect.subjects import plain_answer
from calibrant.confidence import score_table
from calibrant.semantics.annotate import annotate
from calibrant.semantics.options import Options

__all__ = ["candidate_scores"]


def candidate_scores(
    pool: pl.DataFrame, draws: pl.DataFrame, questions: pl.DataFrame, *, options: Options
) -> pl.DataFrame | None:
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
    options
        How answers are graded.

    Returns
    -------
    DataFrame
        question_id, judge, author, method, answer, confidence, correct: one row per judge and per
        author whose greedy answer the candidate is. None where there is no pool.
    """
    if not pool.height:
        return None
    # Where the endpoint shows probabilities one verdict is enough; otherwise votes are counted.
    shown = pool["first_token_top_logprobs"].is_not_null().any()
    method = "p_true_prob" if shown else "p_true_consistency"
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
    asked = asked.drop("candidate_id", "place", "about")
    marked, semantics = annotate(crossed, asked, options=options)
    scores = score_table(marked, semantics, methods=[method]).scores
    found = (
        scores.rename({"question_id": "candidate_id", "model": "judge"})
        .drop("answer", "about")
        .join(places, on="candidate_id", maintain_order="left")
        .rename({"about": "answer"})
    )
    return (
        _with_key(found)
        .join(_authors(draws), on=["question_id", "same"], maintain_order="left")
        .select("question_id", "judge", "author", "method", "answer", "confidence", "correct")
    )


def _authors(draws: pl.DataFrame) -> pl.DataFrame:
    greedy = draws.filter((pl.col("purpose") == "greedy") & pl.col("answer").is_not_null())
    return _with_key(greedy).select("question_id", "same", author="model")


def _with_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Add what the pool tells answers apart by."""
    same = [plain_answer(answer) for answer in frame["answer"]]
    return frame.with_columns(same=pl.Series(same, dtype=pl.String))
