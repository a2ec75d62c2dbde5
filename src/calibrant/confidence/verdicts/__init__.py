"""Scores from verdicts: on each meaning, by other models, on the support by samples."""
