"""Weights of rows: what weighs nothing is not there, and weights that are all alike say nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.errors import InputError


def split_weightless(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that weigh something, and those of weight 0, which count for nothing."""
    nothing = pl.col("weights") == 0
    kept = frame.filter(~nothing)
    if kept.height == 0:
        raise InputError("the weights must not all be 0")
    return kept, frame.filter(nothing)


def row_weights(frame: pl.DataFrame) -> npt.NDArray[np.float64] | None:
    """Return the weights of rows; such as are all alike weigh nothing."""
    if "weights" not in frame.columns:
        return None
    weights = frame["weights"].to_numpy()
    return None if weights.min() == weights.max() else weights
