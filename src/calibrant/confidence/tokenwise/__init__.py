"""Scores from the alternatives of every token of the greedy answer."""
