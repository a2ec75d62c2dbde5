"""Random audits of every kind, for checks that must hold in all of them."""

import functools

import numpy as np
import polars as pl

import calibrant as cal


def random_table(rng):
    """Models of unequal accuracy, calibrated or not, some with few values, some rows missing."""
    questions = int(rng.choice([5, 30, 120, 600]))
    parts = []
    for number in range(int(rng.integers(1, 5))):
        said = rng.beta(*rng.uniform(0.5, 5, 2), questions)
        if rng.random() < 0.3:
            said = np.round(said, 1)
        shift = rng.choice([-0.2, -0.02, 0, 0, 0.02, 0.2])
        chance = np.clip(said - shift, 0, 1) if rng.random() < 0.9 else np.zeros(questions)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(questions),
                    "model": f"m{number}",
                    "confidence": said,
                    "correct": (rng.random(questions) < chance).astype(int),
                    "topic": rng.choice(["a", "b"], questions),
                }
            ).filter(pl.Series(rng.random(questions) < rng.choice([1.0, 1.0, 0.7])))
        )
    return pl.concat(parts)


@functools.cache
def random_audit(seed):
    """The document of a random audit, made once: who changes it takes a copy."""
    rng = np.random.default_rng([12, seed])
    table = random_table(rng)
    while table.height < 2:
        table = random_table(rng)
    by = ["topic"] if rng.random() < 0.3 else []
    margin = float(rng.choice([0.01, 0.02, 0.05]))
    return cal.audit(table, by=by, resamples=20, margin=margin).to_dict()
