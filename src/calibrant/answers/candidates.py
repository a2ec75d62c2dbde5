"""Every model's confidence in every candidate answer, for candidate-aligned comparison."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import cluster_answers
from calibrant.answers.semantics.annotate import annotate
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.models.study.prompts import plain_answer

_COLUMNS = ("question_id", "judge", "author", "method", "answer", "confidence", "correct")
_CONSISTENCY = "consistency"
_SCHEMA = dict.fromkeys(_COLUMNS, pl.String) | {"confidence": pl.Float64, "correct": pl.Float64}


def candidate_scores(
    pool: pl.DataFrame,
    draws: pl.DataFrame,
    questions: pl.DataFrame,
    *,
    options: SemanticsOptions,
    purpose: str = "p_true",
) -> pl.DataFrame | None:
    """Score each (model, candidate) as if the candidate were that model's own greedy answer.

    So P(True), or a stated confidence, of a candidate means exactly what that of an own answer
    means.

    Parameters
    ----------
    pool
        Draws of purpose ``p_true_pool`` (verdicts) or ``self_ask_pool`` (stated confidences);
        ``about`` is the candidate.
    draws
        The other draws, with ``answer`` filled: whose greedy answer a candidate is.
    questions
        The questions.
    options
        How answers are graded.
    purpose
        What the same question about an own answer is called: ``p_true`` or ``self_ask``.

    Returns
    -------
    DataFrame
        question_id, judge, author, method, answer, confidence, correct: one row per judge and per
        author whose greedy answer the candidate is. None where there is no pool.
    """
    if not pool.height:
        return None
    method = purpose
    if purpose == "p_true":
        # Where the endpoint shows probabilities one verdict is enough; otherwise votes count.
        visible = pool["first_token_top_logprobs"].is_not_null().any()
        method = "p_true_prob" if visible else "p_true_consistency"
    places = pool.select("question_id", "about").unique(maintain_order=True).with_row_index("place")
    places = places.with_columns(candidate_id="candidate-" + pl.col("place").cast(pl.String))
    verdicts = pool.join(places, on=["question_id", "about"], maintain_order="left")
    question_rows = verdicts.with_columns(purpose=pl.lit(purpose), question_id="candidate_id")
    question_rows = question_rows.with_columns(
        draw=pl.int_range(pl.len()).over("question_id", "model")
    )
    greedy = verdicts.unique(["candidate_id", "model"], maintain_order=True).with_columns(
        purpose=pl.lit("greedy"),
        question_id="candidate_id",
        draw=pl.lit(0, dtype=pl.Int64),
        text="about",
        temperature=pl.lit(0.0),
    )
    crossed = pl.concat([question_rows, greedy]).drop("candidate_id", "place")
    texts = places.join(questions, on="question_id", maintain_order="left")
    texts = texts.drop("question_id", "place", "about").rename({"candidate_id": "question_id"})
    marked, semantics = annotate(crossed, texts, options=options)
    scores = score_table(marked, semantics, methods=[method]).scores
    scores = scores.rename({"question_id": "candidate_id", "model": "judge"})
    rows = scores.drop("answer", "about").join(places, on="candidate_id", maintain_order="left")
    key = ["question_id", "same"]
    rows = _with_key(rows.rename({"about": "answer"}))
    greedy = draws.filter((pl.col("purpose") == "greedy") & pl.col("answer").is_not_null())
    authors = _with_key(greedy).select(*key, author="model")
    return rows.join(authors, on=key, maintain_order="left").select(_COLUMNS)


def consistency_candidates(draws: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame | None:
    """Score every model's answer by how often each model draws it: no new calls are needed.

    Parameters
    ----------
    draws
        Columns question_id, model, purpose, answer; sampled answers have the purpose ``answer``.
        Draws without an answer stay in the denominator.
    scores
        Columns question_id, model, method, answer, correct: rows of the method ``consistency`` name
        the answers that are candidates.

    Returns
    -------
    DataFrame
        As `candidate_scores`; None where fewer than two models have such scores.

    Examples
    --------
    >>> drawn = pl.DataFrame(
    ...     {
    ...         "question_id": ["q"] * 4,
    ...         "model": ["a", "a", "b", "b"],
    ...         "purpose": ["answer"] * 4,
    ...         "answer": ["Paris", "paris", "Rome", "Paris"],
    ...     }
    ... )
    >>> named = pl.DataFrame(
    ...     {
    ...         "question_id": ["q", "q"],
    ...         "model": ["a", "b"],
    ...         "method": ["consistency"] * 2,
    ...         "answer": ["Paris", "Rome"],
    ...         "correct": [1.0, 0.0],
    ...     }
    ... )
    >>> consistency_candidates(drawn, named)["confidence"].to_list()
    [1.0, 0.0, 0.5, 0.5]
    """
    target = scores.filter((pl.col("method") == _CONSISTENCY) & pl.col("answer").is_not_null())
    if target["model"].n_unique() < 2:
        return None
    sampled = draws.filter(pl.col("purpose") == "answer").select("question_id", "model", "answer")
    by_question = sampled.partition_by("question_id", as_dict=True, maintain_order=True)
    rows = [
        row
        for question, names in target.group_by("question_id", maintain_order=True)
        if question in by_question
        for row in _shares(names, by_question[question])
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row") if rows else None


def _shares(names: pl.DataFrame, draws: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield, for one question, how often each judge draws each author's answer."""
    classes = cluster_answers([*names["answer"], *draws["answer"]])
    sampled, judges = np.array(classes[names.height :]), draws["model"].to_numpy()
    answers = names.select("question_id", "model", "answer", "correct").rows()
    for judge in dict.fromkeys(judges.tolist()):
        theirs = sampled[judges == judge]
        # What was drawn has classes of its own, behind those of the answers.
        for (question, author, answer, grade), number in zip(answers, classes, strict=False):
            share = float((theirs == number).mean())
            yield question, judge, author, _CONSISTENCY, answer, share, grade


def _with_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Add what the pool tells answers apart by."""
    equal = [plain_answer(answer) for answer in frame["answer"]]
    return frame.with_columns(same=pl.Series(equal, dtype=pl.String))
