"""How steeply the gap changes with the confidence: its Lipschitz constant, as labels tell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibrant.core.estimate import Estimate
from calibrant.planning.cells import Cells
from calibrant.stats.lipschitz import LIPSCHITZ_CAP, MINIMUM_PER_BIN, gap_slopes, summarise_slopes

_SLOPE_BINS = (20, 10)
# Noise makes absolute slopes larger by itself, so little is added for the upper end; with half a
# standard error the interval covers in at least 95 % of simulated data sets.
_UPWARDS = 0.5
_Z = float(ndtri(0.975))


class Steepness(NamedTuple):
    """The estimate, the one of every binning, and why it cannot be estimated, or None."""

    estimate: Estimate
    resolutions: list[dict[str, Any]]
    note: str | None


def steepness(samples: tuple[Cells, Cells] | None, labels: int) -> Steepness:
    """Return the steepness of the gap, from what was observed and resamples of it.

    Without `samples` there are too few labels for any.
    """
    entries: list[dict[str, Any]] = []
    for bins in _SLOPE_BINS:
        low = high = float("nan")
        if samples is None or labels < 2 * MINIMUM_PER_BIN:
            # No two bins can hold enough.
            slope = summarise_slopes(np.empty(0), bins)
        else:
            observed, draws = samples
            seen = observed.merged(bins)
            usable = seen.weight[0] * (labels / observed.weight.sum()) >= MINIMUM_PER_BIN
            slope = summarise_slopes(gap_slopes(seen.weight, seen.hits, usable)[0], bins)
            if slope.pairs:
                low, high = _slope_ends(seen, draws.merged(bins), usable, bins)
        estimate = Estimate(
            slope.value,
            min(low, slope.value),
            max(high, slope.value),
            n=labels,
            interval="percentile of the slopes' own ends",
        )
        entries.append(
            {"bins": bins, "estimate": estimate, "pairs": slope.pairs, "capped": slope.capped}
        )
    chosen = next((entry for entry in entries if entry["pairs"]), entries[0])
    return Steepness(chosen["estimate"], entries, _slope_note(chosen))


def _slope_note(chosen: Mapping[str, Any]) -> str | None:
    if not chosen["pairs"]:
        return (
            f"the Lipschitz constant cannot be estimated: no two adjacent bins hold "
            f"{MINIMUM_PER_BIN} labels each, neither with 20 bins nor with 10; the confidences "
            "are too concentrated or the labels too few"
        )
    if chosen["bins"] != _SLOPE_BINS[0]:
        return "from 10 bins: with 20, no two adjacent bins hold 30 labels each"
    return "the estimate reached its cap of 5" if chosen["capped"] else None


def _slope_ends(
    seen: Cells, drawn: Cells, usable: NDArray[np.bool_], bins: int
) -> tuple[float, float]:
    """Return both ends of the steepness: the percentile of the slopes' own lower and upper ends.

    The percentile grows with every slope, so the ends of the slopes carry over to it. Noise only
    ever makes an absolute slope look larger: its lower end takes that off.
    """
    pair = usable[:-1] & usable[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(drawn.weight > 0, drawn.hits / drawn.weight, 0.0)
        rate = seen.hits[0] / seen.weight[0]
    slope = (np.diff(rate) * bins - 1.0)[pair]
    error = np.diff(rates, axis=1)[:, pair].std(axis=0) * bins
    low = np.percentile(np.maximum(np.abs(slope) - _Z * error, 0.0), 75.0)
    high = np.percentile(np.abs(slope) + _UPWARDS * error, 75.0)
    return min(float(low), LIPSCHITZ_CAP), min(float(high), LIPSCHITZ_CAP)
