"""The verbs of calibrant as Python functions."""
