"""Weights of the phrase model, plain data."""

FEATURES = (
    "share", "exact_share", "fresh_share", "contained", "figures_missing", "figures_conflict",
    "precision", "all_precise", "last_word", "first_word", "has_figures", "position",
    "reference_length", "answer_length", "unsure", "aliases", "short",
)  # fmt: skip
INTERCEPT = 0.0
WEIGHTS = (0.0,) * len(FEATURES)
