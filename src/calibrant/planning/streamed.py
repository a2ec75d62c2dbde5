"""The verification block from merged cell sums: the same numbers without the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.rng import RngLike, as_generator
from calibrant.planning import block as rows_block

__all__ = ["verification_from_cells"]

Floats = NDArray[np.float64]
_RESAMPLES = 150


def verification_from_cells(
    *,
    rows: Floats,
    hits: Floats,
    confidence: Floats,
    means: Floats,
    counts: Floats,
    rng: RngLike = 0,
) -> dict[str, Any]:
    """Return what `verification_block` returns, for rows that are units of their own.

    Parameters
    ----------
    rows, hits, confidence
        Rows, right answers and summed confidence in each of 60 equal cells.
    means, counts
        Confidences and how many rows each stands for.
    rng
        Seed or generator.
    """
    generator = as_generator(rng)
    n = int(rows.sum())
    observed = rows_block._Cells(rows[None], hits[None], confidence[None])
    draws = rows_block._resample_cells(observed, n, _RESAMPLES, generator)
    error_rate = rows_block._error_rate(observed, draws, n, plain=True)
    slopes, note = rows_block._lipschitz(observed, draws, n)
    resolution = rows_block._resolution(means, counts, observed, draws, error_rate, generator)
    found: dict[str, Any] = {
        "labels": n,
        "error_rate": error_rate,
        "lipschitz": slopes["estimate"],
        "lipschitz_resolutions": slopes["resolutions"],
        "lipschitz_note": note,
        **rows_block._floors(error_rate, slopes["estimate"], n),
        "resolution": resolution,
    }
    return found | rows_block._verdict(found)
