"""Many models with a few rows each: each is what it is alone."""

from collections import Counter

import numpy as np
import polars as pl

import calibrant as cal

FEW_ROWS = 30
MODELS = 300
# What an entry says about its own rows; corrections and claims look at all models.
OWN = ("n", "questions", "metrics", "calibration_test", "reliability", "thresholds", "verification")


def table(models, seed=0):
    """Models with one to thirty-odd rows, of many shapes."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(models):
        rows = int(rng.integers(1, FEW_ROWS + 4))
        said = rng.uniform(rng.choice([0.0, 0.5, 0.97]), 1, rows).round(int(rng.integers(1, 4)))
        right = rng.random(rows) < said - rng.choice([0.0, 0.3])
        parts.append(
            pl.DataFrame(
                {
                    "model": f"m{number:03}",
                    "question_id": np.arange(rows),
                    "confidence": said,
                    "correct": right.astype(int),
                }
            )
        )
    return pl.concat(parts)


def test_models_audited_together_are_what_each_is_alone():
    rows = table(MODELS)
    found = cal.audit(rows, resamples=40)["results"]
    assert len(found) == MODELS
    seen = Counter()
    for entry, own in zip(found, rows.partition_by("model", maintain_order=True), strict=True):
        seen[own.height] += 1
        if seen[own.height] > 3:  # Three of every number of rows are looked at.
            continue
        (alone,) = cal.audit(own, resamples=40)["results"]
        for name in OWN:
            assert entry.get(name) == alone.get(name), (entry["model"], name)
    assert set(seen) == set(range(1, FEW_ROWS + 4))


def test_repeats_and_weights_change_nothing_of_this():
    rows = table(30, seed=2)
    heavy = rows.with_columns(weight=pl.lit(1.0) + pl.col("question_id") % 3)
    found = cal.audit(heavy, weights="weight", resamples=40)["results"]
    own = heavy.filter(pl.col("model") == "m004")
    (alone,) = cal.audit(own, weights="weight", resamples=40)["results"]
    (entry,) = (entry for entry in found if entry["model"] == "m004")
    assert entry["metrics"] == alone["metrics"]
