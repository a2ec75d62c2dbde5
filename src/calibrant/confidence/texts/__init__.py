"""Scores that compare the texts of answers, alone or together with their probabilities."""
