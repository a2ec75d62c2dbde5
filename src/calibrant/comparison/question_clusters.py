"""Questions on which models differ together: clusters of a comparison that nobody named."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats
from calibrant.data.groupings import LEAST_ROWS, SAMPLE, row_groupings, under_own_names
from calibrant.data.score_table import Scores
from calibrant.metrics.stats.dependence import Dependence, search_groups
from calibrant.metrics.stats.group_test import CellResiduals

# So many models are each held against the others.
_MOST_MODELS = 12


def question_clusters(
    scores: Scores,
    frame: pl.DataFrame,
    questions: Array,
    confidence: Floats,
    correct: Floats,
    skip: Collection[str] = (),
) -> Dependence | None:
    """Search questions on which models differ together.

    What several models get wrong together does not move their difference: each model is held
    against the mean of the others. Columns that hold several values of one question are of
    answers, and say nothing of questions.

    Parameters
    ----------
    scores
        The table.
    frame
        Rows of all models.
    questions
        The id of each question.
    confidence, correct
        Of each model and question, shape (models, questions); NaN where there is none.
    skip
        Columns that are not looked at.
    """
    if scores.drawn_from is not None or questions.size < LEAST_ROWS:
        return None
    question_rows = frame.with_columns(pl.col("question_id").cast(pl.String))
    place = pl.DataFrame({"question_id": questions.astype(str)})
    first = question_rows.unique("question_id", keep="first", maintain_order=True)
    rows = place.join(first, on="question_id", how="left", maintain_order="left")
    own = {*skip, *_of_answers(question_rows, rows)}
    rows = under_own_names(rows, scores.reading, scores.assumed)
    groupings = [*row_groupings(rows, own)]
    difference = _apart(confidence, correct)
    # Of two models one difference is all there is.
    models = np.unique(np.linspace(0, len(difference) - 1, _MOST_MODELS).astype(int)).tolist()
    models = models[:1] if len(difference) == 2 else models
    matches = Dependence(tested=tuple(each.kind for each in groupings))
    for model in models:
        nothing, share = np.zeros(questions.size), 1 / len(models)
        search = search_groups(nothing, difference[model], groupings, share=share)
        if search.inflation > matches.inflation:
            matches = search
    return matches


def _of_answers(frame: pl.DataFrame, rows: pl.DataFrame) -> set[str]:
    """Return the columns with several values for one question: they are of answers."""
    subset = frame.filter(pl.col("question_id").is_in(rows["question_id"].head(SAMPLE).implode()))
    names = [name for name, kind in subset.schema.items() if not kind.is_nested()]
    counts = subset.group_by("question_id").agg(pl.col(names).exclude("question_id").n_unique())
    return {name for name in counts.columns[1:] if int(str(counts[name].max())) > 1}


def _apart(confidence: Floats, correct: Floats) -> Floats:
    """Return how far each model is from the mean of the others, beyond what confidence says."""
    left = np.full(confidence.shape, np.nan)
    answers = np.isfinite(confidence) & np.isfinite(correct)
    # Questions that only one model has are harder or easier: beside them, it differs on all others.
    answers &= answers.sum(axis=0) > 1
    for model, (confidences, right) in enumerate(zip(confidence, correct, strict=True)):
        has = answers[model]
        if has.any():
            left[model, has] = CellResiduals.of_rows(confidences[has], right[has]).residual
    finite, notes = np.isfinite(left), np.nan_to_num(left)
    others = np.maximum(finite.sum(axis=0) - finite, 1)
    companion = (notes.sum(axis=0) - notes) / others
    return np.where(finite, notes - companion, 0.0)
