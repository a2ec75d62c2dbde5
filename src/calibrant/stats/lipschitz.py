"""How steep is the calibration gap? A finite-difference estimate of its Lipschitz constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats

LIPSCHITZ_CAP = 5.0
MINIMUM_PER_BIN = 30
_PERCENTILE = 75.0


@dataclass(frozen=True, slots=True)
class SlopeEstimate:
    """The estimate of one resolution.

    Parameters
    ----------
    value
        75th percentile of the adjacent slopes, at most `LIPSCHITZ_CAP`; NaN without slopes.
    bins
        Equal-width bins used.
    pairs
        Adjacent pairs of bins that both hold at least `MINIMUM_PER_BIN` labels.
    capped
        Whether the cap decided the value.
    """

    value: float
    bins: int
    pairs: int
    capped: bool


def gap_slopes(count: Floats, hits: Floats, usable: NDArray[np.bool_]) -> Floats:
    """Return the slopes between neighbouring usable bins (last axis), gap taken at the centre.

    Parameters
    ----------
    count, hits
        Labels and right answers per bin; the last axis runs over equal-width bins of [0, 1].
    usable
        Which bins take part; both bins of a pair must.

    Examples
    --------
    >>> count, hits = np.array([50.0, 50.0]), np.array([10.0, 40.0])
    >>> gap_slopes(count, hits, count >= 30)
    array([0.2])
    """
    bins = count.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = hits / count - (np.arange(bins) + 0.5) / bins
    pair = usable[:-1] & usable[1:]
    return np.asarray(np.abs(np.diff(gap, axis=-1))[..., pair] * bins, dtype=np.float64)


def summarise_slopes(slopes: Floats, bins: int) -> SlopeEstimate:
    """Return the capped 75th percentile of the slopes, NaN when there is none."""
    if slopes.size == 0:
        return SlopeEstimate(float("nan"), bins, 0, capped=False)
    raw = float(np.percentile(slopes, _PERCENTILE))
    return SlopeEstimate(min(raw, LIPSCHITZ_CAP), bins, slopes.size, capped=raw > LIPSCHITZ_CAP)
