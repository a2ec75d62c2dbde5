"""Comparing models fairly when their accuracy differs."""

from calibrant.comparison.compare import compare_models
from calibrant.comparison.reversal import reversal_pattern, reversal_summary

__all__ = ["compare_models", "reversal_pattern", "reversal_summary"]
