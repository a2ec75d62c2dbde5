"""The verification block of an audit: what these labels can show about this model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike
from calibrant.metrics.inputs import check_weights
from calibrant.planning.cells import (
    CELLS,
    Cells,
    cell_of,
    observed_cells,
    resample_cells,
    resample_rows,
)
from calibrant.planning.refusal import require_labels
from calibrant.stats import floors
from calibrant.stats.bootstrap import quantiles
from calibrant.stats.few.draws import CommonDraws, Stream, as_stream
from calibrant.stats.lipschitz import LIPSCHITZ_CAP, MINIMUM_PER_BIN, gap_slopes, summarise_slopes

if TYPE_CHECKING:
    from calibrant.metrics.row_block import RowBlock
    from calibrant.metrics.streamed import CellBlock

__all__ = ["verification_block", "verification_of"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

_SLOPE_BINS = (20, 10)
_ECE_BINS = 15
_NULL_DRAWS = 400
# Noise makes absolute slopes larger by itself, so little is added for the upper end; with half a
# standard error the interval covers in at least 95 % of simulated data sets.
_UPWARDS = 0.5
_Z = float(ndtri(0.975))


def verification_block(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    units: ArrayLike | None = None,
    resamples: int = 150,
    rng: RngLike | CommonDraws = 0,
) -> dict[str, Any]:
    """Say how precise these labels let one be: error rate, steepness of the gap, worst cases.

    Parameters
    ----------
    confidence
        Confidences in [0, 1], shape (n,).
    correct
        Outcomes in [0, 1], shape (n,), without gaps.
    weights
        Row weights; the number of labels is then Kish's effective number.
    units
        Unit of each row (question); labels are counted, and resampled, by unit.
    resamples
        Bootstrap resamples behind the interval of the Lipschitz constant and the resolution.
    rng
        Seed or generator.

    Returns
    -------
    dict
        ``error_rate``, ``lipschitz``, ``passive_floor``, ``active_floor``, ``accuracy_floor``
        (estimates), ``lipschitz_resolutions`` (one entry per binning), ``lipschitz_note`` (why
        it cannot be estimated, or None), ``optimal_bins`` and ``resolution`` (what this very
        data resolves).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, size=5000)
    >>> block = verification_block(p, rng.uniform(size=p.size) < p - 0.2)
    >>> round(block["error_rate"].value, 2)
    0.46
    """
    p, y, w, u = _checked(confidence, correct, weights, units)
    generator = as_stream(rng)
    observed = observed_cells(p, y, w)
    plain = u is None and bool(np.all(w == 1.0)) and bool(np.isin(y, (0.0, 1.0)).all())
    draws = (
        resample_cells(observed, len(p), resamples, generator)
        if plain
        else resample_rows(p, y, w, u, resamples, generator)
    )
    return _found(observed, draws, _label_count(w, u), plain, (p, w), generator)


def verification_of(
    block: RowBlock | CellBlock, *, rng: RngLike | CommonDraws = 0
) -> dict[str, Any]:
    """Return the verification block of rows or of merged sums."""
    from calibrant.metrics.row_block import RowBlock

    if isinstance(block, RowBlock):
        return verification_block(
            *block.given, weights=block.given_weights, units=block.given_units, rng=rng
        )
    return _from_cells(**block.verification_sums(), rng=rng)


def _from_cells(
    *,
    rows: Floats,
    hits: Floats,
    confidence: Floats,
    means: Floats,
    counts: Floats,
    resamples: int = 150,
    rng: RngLike | CommonDraws = 0,
) -> dict[str, Any]:
    """Return what `verification_block` returns, for rows that are units of their own.

    Parameters
    ----------
    rows, hits, confidence
        Rows, right answers and summed confidence in each of 60 equal cells.
    means, counts
        Confidences and how many rows each stands for.
    resamples, rng
        As for `verification_block`.
    """
    n, generator = int(rows.sum()), as_stream(rng)
    observed = Cells(rows[None], hits[None], confidence[None])
    draws = resample_cells(observed, n, resamples, generator)
    return _found(observed, draws, n, True, (means, counts), generator)


def _found(
    observed: Cells,
    draws: Cells,
    labels: int,
    plain: bool,
    rows: tuple[Floats, Floats],
    generator: Stream,
) -> dict[str, Any]:
    error_rate = _error_rate(observed, draws, labels, plain)
    slopes, note = _lipschitz(observed, draws, labels)
    resolution = _resolution(*rows, observed, draws, error_rate, generator)
    return {
        "labels": labels,
        "error_rate": error_rate,
        "lipschitz": slopes["estimate"],
        "lipschitz_resolutions": slopes["resolutions"],
        "lipschitz_note": note,
        **_floors(error_rate, slopes["estimate"], labels),
        "resolution": resolution,
    }


def _checked(
    confidence: ArrayLike,
    correct: ArrayLike,
    weights: ArrayLike | None,
    units: ArrayLike | None,
) -> tuple[Floats, Floats, Floats, Indices | None]:
    require_labels(correct)
    p = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    w = np.ones_like(p) if weights is None else np.asarray(weights, dtype=np.float64)
    if not p.shape == y.shape == w.shape or p.ndim != 1:
        raise InputError(
            f"confidence, correct and weights are vectors of one length, got {p.shape}, {y.shape} "
            f"and {w.shape}"
        )
    for name, values, upper in (("confidence", p, 1.0), ("correct", y, 1.0), ("weights", w, None)):
        bad = ~((values >= 0.0) & (values <= (np.inf if upper is None else upper)))
        if bad.any():
            row = int(np.argmax(bad))
            limit = "at least 0" if upper is None else "in [0, 1]"
            raise InputError(f"{name} is {limit}, got {values[row]}", row=row + 1)
    units = None if units is None else np.asarray(units)
    w = np.asarray(check_weights(w, p.size), dtype=np.float64)
    held = w > 0.0
    if not held.all():
        # A resample of rows without weight would have nothing to divide by.
        p, y, w, units = p[held], y[held], w[held], None if units is None else units[held]
    if units is None:
        return p, y, w, None
    names, index = np.unique(units, return_inverse=True)
    return p, y, w, None if names.size == p.size else index.astype(np.intp)


def _label_count(w: Floats, u: Indices | None) -> int:
    if u is not None:
        w = np.asarray(np.bincount(u, weights=w), dtype=np.float64)
    return max(1, round(float(w.sum() ** 2 / (w**2).sum())))


def _error_rate(observed: Cells, draws: Cells, labels: int, plain: bool) -> Estimate:
    value = 1.0 - float(observed.hits.sum() / observed.weight.sum())
    value = min(max(value, 0.0), 1.0)
    if plain or value in (0.0, 1.0):
        # Wilson's interval stays open when no error was seen, where resampling says [0, 0].
        centre = (value + _Z**2 / (2 * labels)) / (1 + _Z**2 / labels)
        half = _Z * np.sqrt(value * (1 - value) / labels + _Z**2 / (4 * labels**2))
        half /= 1 + _Z**2 / labels
        low = 0.0 if value == 0.0 else centre - half
        high = 1.0 if value == 1.0 else centre + half
        return Estimate(value, float(low), float(high), n=labels, interval="wilson")
    rates = 1.0 - draws.hits.sum(axis=1) / draws.weight.sum(axis=1)
    low, high = np.quantile(rates, (0.025, 0.975))
    return Estimate(value, float(low), float(high), n=labels)


def _lipschitz(observed: Cells, draws: Cells, labels: int) -> tuple[dict[str, Any], str | None]:
    entries = []
    scale = labels / observed.weight.sum()
    for bins in _SLOPE_BINS:
        low = high = float("nan")
        if labels < 2 * MINIMUM_PER_BIN:
            # No two bins can hold enough.
            slope = summarise_slopes(np.empty(0), bins)
        else:
            seen = observed.merged(bins)
            usable = seen.weight[0] * scale >= MINIMUM_PER_BIN
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
    note = None
    if not chosen["pairs"]:
        note = (
            f"the Lipschitz constant cannot be estimated: no two adjacent bins hold "
            f"{MINIMUM_PER_BIN} labels each, neither with 20 bins nor with 10; the confidences "
            "are too concentrated or the labels too few"
        )
    elif chosen["bins"] != _SLOPE_BINS[0]:
        note = "from 10 bins: with 20, no two adjacent bins hold 30 labels each"
    elif chosen["capped"]:
        note = "the estimate reached its cap of 5"
    return {"estimate": chosen["estimate"], "resolutions": entries}, note


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


def _floors(error_rate: Estimate, lipschitz: Estimate, labels: int) -> dict[str, Any]:
    rates, slopes = _ends(error_rate), np.maximum(_ends(lipschitz), 1e-12)

    def box(values: list[float], *extra: float) -> Estimate:
        low, high = min(values[1:]), max(*values[1:], *extra)
        return Estimate(values[0], low, high, n=labels, interval="box of the inputs' intervals")

    # The accuracy floor is largest at an error rate of 1/2, which may lie inside the interval.
    half = [0.5] if error_rate.low <= 0.5 <= error_rate.high else []
    defined = error_rate.value > 0 and slopes[0] == slopes[0]
    return {
        "passive_floor": box(
            [
                floors.passive_floor(error_rate=rate, labels=labels, lipschitz=slope)
                if slope == slope
                else float("nan")
                for rate, slope in zip(rates, slopes, strict=True)
            ]
        ),
        "active_floor": box([floors.active_floor(error_rate=r, labels=labels) for r in rates]),
        "accuracy_floor": box(
            [floors.accuracy_floor(error_rate=rate, labels=labels) for rate in rates],
            *(floors.accuracy_floor(error_rate=rate, labels=labels) for rate in half),
        ),
        "optimal_bins": floors.optimal_bins(
            error_rate=error_rate.value, labels=labels, lipschitz=float(slopes[0])
        )
        if defined
        else None,
    }


def _ends(estimate: Estimate) -> Floats:
    return np.array([estimate.value, estimate.low, estimate.high])


def _ece(cells: Cells) -> Floats:
    binned = cells.merged(_ECE_BINS)
    gap = np.abs(binned.hits - binned.confidence).sum(axis=1)
    return np.asarray(gap / binned.weight.sum(axis=1), dtype=np.float64)


def _resolution(
    p: Floats,
    w: Floats,
    observed: Cells,
    draws: Cells,
    error_rate: Estimate,
    generator: Stream,
) -> dict[str, Any]:
    """Return the spread of the ECE on this data, and what it were under perfect calibration."""
    value, spread, labels = float(_ece(observed)[0]), _ece(draws), error_rate.n
    # Resampling adds the noise a second time, so the spread is moved back by twice its bias.
    low, high = quantiles(spread - 2 * (spread.mean() - value), (0.025, 0.975))
    if error_rate.value in (0.0, 1.0):
        # All outcomes alike: resampling sees no spread, the interval of the rate does.
        slack = error_rate.high - error_rate.low
        low, high = value - slack, value + slack
    # Under perfect calibration a bin's errors are nearly Poisson where confidence is near 0 or
    # 1 and nearly normal elsewhere; a centred Poisson law of the same variance serves both.
    cell = cell_of(p) // (CELLS // _ECE_BINS)
    sums = np.bincount(cell, weights=w * p * (1 - p), minlength=_ECE_BINS)
    variance: Floats = sums * (labels / w.sum())
    # A bin that cannot err draws nothing.
    variance = variance[variance > 0]
    size = (_NULL_DRAWS, variance.size)
    null = np.abs(generator.poisson(variance, size) - variance)
    return {
        "ece": Estimate(value, max(0.0, min(float(low), value)), max(float(high), value), n=labels),
        "bins": _ECE_BINS,
        "half_width": float(high - low) / 2,
        "if_calibrated": float(quantiles(null.sum(axis=1) / labels, (0.95,))[0]),
    }
