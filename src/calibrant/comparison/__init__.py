"""Comparing models fairly when their accuracy differs.

Start with `compare.compare_models`, `footings.SharedViews` (questions and answers that
two models are set side by side on) and `decision.PairVerdict` (what is shown of a pair).
"""

from calibrant.comparison.compare import compare_models
from calibrant.comparison.reversal import reversal_pattern, reversal_summary

__all__ = ["compare_models", "reversal_pattern", "reversal_summary"]
