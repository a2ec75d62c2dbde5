"""Weights of the phrase model, plain data.

A logistic regression on the features of `evidence`, fitted by `python -m studies semantics` to
human labels (EVOUNA, Natural Questions part): the half of the questions whose digest is even,
without the questions of the second human-labelled set, so that both the other half and that
set are rows that the fit has not seen.
"""

from __future__ import annotations

__all__ = ["INTERCEPT", "NO_COMMON_WORD", "WEIGHTS"]

INTERCEPT = -0.6535
WEIGHTS: dict[str, float] = {
    "fresh_share": 1.6707,
    "contained": 1.4235,
    "figures_missing": -1.0990,
    "figures_conflict": -0.7455,
    "precision": 1.6623,
    "all_precise": 0.1365,
    "last_word": 0.9007,
    "first_word": 0.9927,
    "answer_length": 0.0972,
    "unsure": -0.9990,
    "aliases": -0.8273,
    "short": -0.1757,
}
# Share of answers that people accept although they share no word with any reference.
NO_COMMON_WORD = 0.15
