"""Inputs of methods beyond whole texts: tokens with alternatives, verdicts of a pool."""
