"""The plan and the audit of one table say the same about miscalibration."""

import numpy as np
import polars as pl

import calibrant as cal


def table(models=12, n=400, seed=0):
    """Models that are calibrated, but for the last one; by chance some look otherwise alone."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(models):
        p = rng.beta(4, 2, n)
        wrong = 0.25 if number == models - 1 else 0.0
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": [f"m{number:02d}"] * n,
                    "confidence": p,
                    "correct": (rng.random(n) < np.clip(p - wrong, 0, 1)).astype(int),
                }
            )
        )
    return pl.concat(parts)


def test_both_give_one_answer():
    frame = table()
    audited = {e["model"]: e for e in cal.audit(frame, resamples=50)["results"]}
    planned = cal.plan(frame)
    alone = 0
    for block in planned["measured"]:
        mine, other = block["verification"], audited[block["model"]]
        assert block["significance"]["tests"] == other["significance"]["tests"] == 36
        assert block["significance"]["gap"] == other["significance"]["gap"]
        assert block["significance"]["within_margin"] == other["significance"]["within_margin"]
        alone += mine["resolution"]["ece"]["value"] > mine["resolution"]["if_calibrated"]
    # Tested alone, some of the twelve would have been called miscalibrated by chance.
    assert alone > 1
