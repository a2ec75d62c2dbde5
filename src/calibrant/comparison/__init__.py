"""Comparing models fairly when their accuracy differs."""
