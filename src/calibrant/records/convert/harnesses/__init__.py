"""Readers of evaluation harnesses: one run, many questions, a grade for each answer."""
