"""The verbs of calibrant, one file each: what a person asks, as a Python function."""
