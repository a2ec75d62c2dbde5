"""Mend a confidence together with other columns of its rows."""

from dataclasses import replace

import numpy as np
import polars as pl

from calibrant.core.rng import named_stream
from calibrant.mending.estimator import fit_map
from calibrant.mending.fit import FOLDS, Labels, crossfitted, unit_folds
from calibrant.records.learned_score import LearnedScore
from calibrant.records.mend_map import ColumnMap, MendMap

# With 200 labels a fifth of all fits got worse by columns: see docs/mend.md.
LEAST_LABELS = 500


def fit_columns(
    labels: Labels, columns: pl.DataFrame, fitted: MendMap, *, seed: int = 0
) -> ColumnMap:
    """Return a map of the confidence and of other columns; its gain is beyond `fitted`.

    Every row's score comes from other units, so that the map of the scores, its interval and its
    promise are those of new rows.

    Parameters
    ----------
    labels
        Labelled confidences.
    columns
        One row per label.
    fitted
        The map of the confidence alone.
    seed
        Seed of the folds and of the draws behind the promise.
    """
    rows = columns.with_columns(pl.Series("confidence", fitted.probabilities(labels.confidence)))
    fold = unit_folds(labels, named_stream(seed, "mend", "columns"))
    score = np.empty(len(fold))
    for number in range(FOLDS):
        beside = fold != number
        learned = _learned(rows.filter(beside), labels, beside)
        score[~beside] = learned.predict(rows.filter(~beside))
    alone = crossfitted(labels, named_stream(seed, "mend", "folds"))
    scored = fit_map(replace(labels, confidence=score), seed=seed, over=alone)
    return ColumnMap(_learned(rows, labels, np.ones(len(fold), dtype=bool)), scored)


def _learned(rows: pl.DataFrame, labels: Labels, chosen: np.ndarray) -> LearnedScore:
    return LearnedScore().fit(rows, labels.correct[chosen], labels.weights[chosen])
