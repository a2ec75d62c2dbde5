"""Blocks of few rows, worked on together."""
