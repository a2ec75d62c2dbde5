"""Small helpers: models as arrays, put through the kernels of a comparison."""

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.comparison.evidence import pair_evidences
from calibrant.comparison.footings import all_footings
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.questions import QuestionBlock, resample_counts
from calibrant.comparison.sums import model_sums
from calibrant.comparison.survey import survey_block


def block_of(confidence, correct):
    c, z = np.asarray(confidence, float), np.asarray(correct, float)
    names = tuple(f"m{number}" for number in range(len(c)))
    return QuestionBlock(names, np.arange(c.shape[1]).astype(str), c, z)


def views_of(block, *, resamples=50, rng=0, target="weakest", bins=15):
    """Return the survey, and by model the views with every partner."""
    counts = resample_counts(block.size, resamples, rng)
    survey = survey_block(block, counts)
    models = range(len(block.models))
    return survey, [
        all_footings(model_sums(block, counts, survey, m, bins=bins), survey, m, target=target)
        for m in models
    ]


def evidence_of(block, *, margin=0.05, **options):
    survey, views = views_of(block, **options)
    return pair_evidences([PairViews(0, 1, views[0][1], views[1][0])], survey, margin=margin)[0]


def calibrated(accuracy_odds, n, rng, *, moved=0.0, difficulty=None):
    """Chances around a log-odds, outcomes that follow them, confidences moved by log-odds."""
    hard = rng.normal(0, 1.2, n) if difficulty is None else difficulty
    odds = accuracy_odds - hard + rng.normal(0, 0.8, n)
    return expit(odds + moved), (rng.random(n) < expit(odds)).astype(float)


def pair_of(first, second):
    return block_of([first[0], second[0]], [first[1], second[1]])


def table_of(confidence, correct):
    models, questions = np.shape(confidence)
    table = pl.DataFrame(
        {
            "question_id": [f"q{i}" for _ in range(models) for i in range(questions)],
            "model": [f"m{m}" for m in range(models) for _ in range(questions)],
            "confidence": np.ravel(confidence),
            "correct": np.ravel(correct).astype(float),
        }
    )
    return table.filter(pl.col("confidence").is_not_nan())
