"""Asking a model about answers: queries, what it may be shown, and a judge for tests."""
