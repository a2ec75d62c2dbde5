"""Sums over cells of a grid that merge: tables of any size in one pass."""
