"""Weights of the phrase model, plain data.

A logistic regression on the features of `evidence`, fitted by `python -m studies semantics` to
human labels (EVOUNA, Natural Questions part): the half of the questions whose digest is even,
without the questions of the second human-labelled set, so that both the other half and that
set are rows that the fit has not seen.
"""

from __future__ import annotations

__all__ = ["INTERCEPT", "NO_COMMON_WORD", "WEIGHTS"]

INTERCEPT = -0.7341
WEIGHTS: dict[str, float] = {
    "fresh_share": 1.5661,
    "contained": 1.4456,
    "figures_missing": -1.0971,
    "figures_conflict": -0.5896,
    "precision": 1.7654,
    "all_precise": 0.0205,
    "last_word": 0.9342,
    "first_word": 1.0269,
    "answer_length": 0.1249,
    "unsure": -1.0195,
    "aliases": -0.8196,
    "short": -0.0843,
}
# Share of answers that people accept although they share no word with any reference.
NO_COMMON_WORD = 0.15
