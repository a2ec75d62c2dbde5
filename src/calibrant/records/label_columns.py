"""Columns in which a table of labels says how its rows were drawn."""

from __future__ import annotations

WEIGHT = "label_weight"
"""How many rows of the pool the row stands for."""
ALONG = "label_along"
"""Where it lay on the line along which the draw was spread; empty where it was not."""
SPREAD = "label_spread"
"""Share of its variance that the spread is about, see `planning.labelling.pools`."""
DESIGN = "label_design"
"""The design that drew it."""
DRAW_COLUMNS = (WEIGHT, ALONG, SPREAD, DESIGN)
