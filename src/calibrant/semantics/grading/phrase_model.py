"""Weights of the phrase model, plain data.

A logistic regression on the features of `evidence`, fitted by `python -m studies semantics` to
human labels (EVOUNA, Natural Questions part): the half of the questions whose digest is even,
without the questions of the second human-labelled set, so that both the other half and that
set are rows that the fit has not seen.
"""

from __future__ import annotations

INTERCEPT = -0.5871
WEIGHTS: dict[str, float] = {
    "fresh_share": 1.7629,
    "contained": 1.3851,
    "figures_missing": 0.0372,
    "figures_conflict": -1.7230,
    "other_date": -3.0903,
    "precision": 2.1333,
    "all_precise": -0.3838,
    "last_word": 0.8097,
    "first_word": 0.8711,
    "answer_length": 0.0872,
    "unsure": -0.9832,
    "aliases": -0.7745,
    "short": -0.2943,
}
# Share of answers that people accept although they share no word with any reference.
NO_COMMON_WORD = 0.15
