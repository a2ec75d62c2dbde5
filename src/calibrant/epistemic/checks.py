"""Checks that all estimators of this layer share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError


def checked_pair(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, frame: pl.DataFrame | None = None
) -> tuple[Floats, Floats]:
    """Return confidence and outcome as float arrays after checking ranges and lengths."""
    f = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    if f.ndim != 1 or f.shape != y.shape:
        raise InputError(
            f"confidence and correct must be of one length, got shapes {f.shape} and {y.shape}"
        )
    if frame is not None and frame.height != len(f):
        raise InputError(f"{frame.height} rows of features for {len(f)} confidences")
    bad = ~((f >= 0) & (f <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"a confidence must be between 0 and 1, got {f[row]}",
            row=row + 1,
            hint="recalibrate a score that is no probability, or drop the row",
        )
    bad = (y != 0) & (y != 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"an outcome must be 0 or 1, got {y[row]}", row=row + 1)
    return f, y
