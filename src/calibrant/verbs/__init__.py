"""The verbs of calibrant, one file each: what a person asks, as a Python function.

Start with `audit.audit`; `opening.open_input.open_input` turns whatever was given into a source.
Verbs do not call each other.
"""
