"""Sums over bins, placed exactly, and residuals on [0, 1] smoothed by reflected Gaussian kernels.

Rows are spread linearly onto a grid once; everything after that costs the same for a thousand
rows and for ten million. The discretisation (grid sizes, kernel cut-off, evaluation points) is
the published one of smooth ECE, so that values agree to rounding.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from calibrant.core.arrays import Array, Floats, Indices

# Writes the bin of every value of a piece into the index buffer; the third array is room for
# as many float64 numbers, to be overwritten.
BinIndex: TypeAlias = Callable[[Array, Indices, Floats], None]
# The numbers of a slice of rows; None stands for ones.
Column: TypeAlias = Callable[[slice], Array | None]

# Two buffers of this many rows stay in the second-level cache (measured: 16k to 32k are best).
PIECE = 16_384


def width_edges(bins: int, dtype: Any = np.float64) -> Array:
    """Return the `bins` + 1 edges of equal-width bins on [0, 1], rounded in `dtype`.

    Examples
    --------
    >>> width_edges(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return (np.arange(bins + 1) / bins).astype(dtype)


@lru_cache(maxsize=256)
def _width_plan(bins: int, dtype: np.dtype[Any]) -> tuple[Any, Array, bool]:
    """Return (multiplier, edges, whether truncating the product is the exact rule).

    Multiplication is monotone, so checking every edge and the number just below it settles the
    question for all values. Where truncation is not exact the multiplier is raised until no edge
    falls short; then only values just below an edge can be placed one bin too high.
    """
    edges = width_edges(bins, dtype)
    numbers = np.arange(bins + 1)
    below = np.nextafter(edges[1:], dtype.type(0))

    def reaches_edges(factor: Any) -> bool:
        return bool((np.trunc(edges * factor) == numbers).all())

    factor = dtype.type(bins)
    exact = reaches_edges(factor) and bool((np.trunc(below * factor) == numbers[:-1]).all())
    while not reaches_edges(factor):
        factor = np.nextafter(factor, dtype.type(np.inf))
    return factor, edges, exact


@lru_cache(maxsize=256)
def width_index(bins: int, dtype: Any = np.float64) -> BinIndex:
    """Return the rule that puts values of `dtype` in [0, 1] into equal-width bins.

    The index of 1.0 is `bins`, one past the last bin; `sum_by_bin` folds it into the last one.
    """
    dtype = np.dtype(dtype)
    # float16 products are too coarse to truncate; comparing with the edges needs no product.
    if dtype.itemsize < 4:
        return edge_index(width_edges(bins, dtype))
    factor, edges, exact = _width_plan(bins, dtype)

    def place(values: Array, out: Indices, room: Floats) -> None:
        product = room if dtype == np.float64 else np.empty(values.size, dtype)
        np.multiply(values, factor, out=product)
        np.copyto(out, product, casting="unsafe")
        if not exact:
            np.take(edges, out, out=product)
            np.subtract(out, values < product, out=out)

    return place


def residual_sums(confidence: Array, correct: Array, weights: Array | None, bins: int) -> Floats:
    """Return the sums of weight * (confidence - correct) over equal-width bins.

    This is `sum_by_bin` for the one case that must not cost anything beyond its arithmetic:
    one pass, two buffers of a piece each.
    """
    rows = confidence.shape[0]
    place = width_index(bins, confidence.dtype)
    # Buffers of this thread: getting them anew costs a tenth of a short pass.
    if not hasattr(_buffers, "pair"):
        _buffers.pair = np.empty(PIECE, np.intp), np.empty(PIECE)
    index, residual = _buffers.pair
    total = np.zeros(bins + 1)
    for start in range(0, rows, PIECE):
        stop = min(start + PIECE, rows)
        values = confidence[start:stop]
        local, out = index[: stop - start], residual[: stop - start]
        # The residual buffer doubles as room for the product.
        place(values, local, out)
        np.subtract(values, correct[start:stop], out=out, dtype=np.float64)
        if weights is not None:
            np.multiply(out, weights[start:stop], out=out)
        total += np.bincount(local, out, bins + 1)
    total[bins - 1] += total[bins]
    return total[:bins]


_buffers = threading.local()


def edge_index(edges: Array) -> BinIndex:
    """Return the rule for the given rising edges; values outside go to the outer bins."""
    inner = edges[1:-1]

    def place(values: Array, out: Indices, room: Floats) -> None:  # noqa: ARG001
        out[:] = np.searchsorted(inner, values, side="right")

    return place


def sum_by_bin(
    place: BinIndex, bins: int, confidence: Array, columns: Sequence[Column]
) -> list[Floats]:
    """Return one array of bin sums per column, in one pass over pieces of the data.

    Parameters
    ----------
    place, bins
        The rule that places a value, and the number of bins.
    confidence
        The values to place.
    columns
        The numbers to add.
    """
    rows = confidence.shape[0]
    totals = [np.zeros(bins + 1) for _ in columns]
    size = min(rows, PIECE)
    index, room = np.empty(size, np.intp), np.empty(size)
    for start in range(0, rows, PIECE):
        piece = slice(start, min(start + PIECE, rows))
        local = index[: piece.stop - start]
        place(confidence[piece], local, room[: local.size])
        for total, column in zip(totals, columns, strict=True):
            total += np.bincount(local, column(piece), bins + 1)
    for total in totals:
        total[bins - 1] += total[bins]
    return [total[:bins] for total in totals]


def mass_edges(confidence: Array, weights: Array | None, bins: int) -> Array:
    """Return the edges of bins that hold equal mass, without ever splitting equal values.

    Inner edge i is the first value whose mass together with all smaller ones exceeds i/bins of
    the whole; an edge belongs to the upper bin. Edges that coincide are merged, so there may be
    fewer bins than asked for.

    Examples
    --------
    >>> import numpy as np
    >>> mass_edges(np.array([0.1, 0.2, 0.6, 0.9]), None, 2).tolist()
    [0.0, 0.6, 1.0]
    """
    if weights is None:
        ordered = np.sort(confidence)
        positions = np.arange(1, bins) * ordered.size // bins
    else:
        order = np.argsort(confidence, kind="stable")
        ordered = confidence[order]
        reached = np.cumsum(weights[order], dtype=np.float64)
        # The slack keeps a sum such as 0.1 + 0.2 from passing the target 0.3 by rounding alone.
        targets = np.arange(1, bins) * (reached[-1] / bins) * (1 + 1e-12)
        positions = np.searchsorted(reached, targets, side="right").clip(max=reached.size - 1)
    inner = np.unique(ordered[positions])
    inner = inner[inner > 0]
    return np.concatenate([[0], inner, [inner.max(initial=1)]]).astype(inner.dtype)


# The published density carries this constant, which keeps it above zero.
DENSITY_FLOOR = 1e-4
# Bandwidths below this are not told apart; the search is on 2 to the power of ten steps.
FINEST_BANDWIDTH = 1e-3
HALVINGS = 10
_STEPS = 1 << HALVINGS
_FIRST_GUESS = _STEPS // 16
# So many bandwidths away the kernel is below what rounding takes from a sum of 1e-20.
_FAR = 13.1


class GridSums(Struct, frozen=True):
    """Residuals and weights spread linearly onto a grid of equal steps over [0, 1]."""

    residual: Floats
    weight: Floats


def grid_points(bandwidth: float) -> int:
    """Return the number of grid points for a bandwidth."""
    return max(2000, round(20 / bandwidth)) // 2 + 1


def grid_sums(confidence: Array, correct: Array, weights: Array | None, points: int) -> GridSums:
    """Spread residuals and weights linearly onto `points` grid points, in one pass."""
    rows = confidence.shape[0]
    size = min(rows, PIECE)
    index = np.empty(size, np.intp)
    position, fraction, residual = (np.empty(size) for _ in range(3))
    steps = points - 1
    sums = np.zeros((4, points))
    for start in range(0, rows, PIECE):
        stop = min(start + PIECE, rows)
        local, where, part, remainder = (
            a[: stop - start] for a in (index, position, fraction, residual)
        )
        np.multiply(confidence[start:stop], float(steps), out=where, dtype=np.float64)
        np.copyto(local, where, casting="unsafe")
        np.minimum(local, steps - 1, out=local)
        np.subtract(where, local, out=part)
        np.subtract(confidence[start:stop], correct[start:stop], out=remainder, dtype=np.float64)
        mass = None if weights is None else weights[start:stop]
        if mass is not None:
            np.multiply(remainder, mass, out=remainder)
        sums[0] += np.bincount(local, remainder, points)
        np.multiply(remainder, part, out=remainder)
        sums[1] += np.bincount(local, remainder, points)
        sums[2] += np.bincount(local, mass, points)
        sums[3] += np.bincount(local, part if mass is None else part * mass, points)
    return GridSums(at_points(sums[0], sums[1]), at_points(sums[2], sums[3]))


def at_points(whole: Floats, upper: Floats) -> Floats:
    """Return sums at grid points from sums over the steps above them, along the last axis.

    Of each step's sum the part weighted by the fraction belongs to the next grid point.
    """
    out = whole - upper
    out[..., 1:] += upper[..., :-1]
    return out


def every_other(values: Floats) -> Floats:
    """Return sums on the grid with every other point, along the last axis.

    A hat function of the coarse grid is piecewise linear on the fine one, so nothing is lost:
    an odd point gives half of its sum to either neighbour.

    Examples
    --------
    >>> every_other(np.array([1.0, 4.0, 0.0, 2.0, 0.0])).tolist()
    [3.0, 3.0, 1.0]
    """
    out = values[..., ::2].copy()
    half = values[..., 1::2] / 2
    out[..., :-1] += half
    out[..., 1:] += half
    return out


class SmoothingPlan(Struct, frozen=True):
    """Everything about one bandwidth that does not depend on data.

    `error` is linear algebra on the grid sums: a circular convolution of the mirrored grid with
    the kernel, read off at evenly spaced points by linear interpolation.
    """

    points: int
    spectrum: NDArray[np.complex128]
    left: Indices
    share: Floats
    density: Floats

    @staticmethod
    def transform(values: Floats) -> NDArray[np.complex128]:
        """Return the spectrum of the mirrored grid; it serves every bandwidth on that grid."""
        mirrored = np.concatenate([values, values[..., -2:0:-1]], axis=-1)
        return np.fft.rfft(mirrored, axis=-1)

    def read(self, transformed: NDArray[np.complex128]) -> Floats:
        """Return the smoothed values at the evaluation points from a spectrum."""
        return self.evaluated(transformed * self.spectrum)

    def evaluated(self, product: NDArray[np.complex128]) -> Floats:
        """Return the values at the evaluation points from the spectrum of smoothed ones."""
        period = 2 * (self.points - 1)
        smoothed = np.fft.irfft(product, n=period, axis=-1)
        lower = smoothed.take(self.left, axis=-1)
        return np.asarray(lower + (smoothed.take(self.left + 1, axis=-1) - lower) * self.share)

    def density_sum(self, weight: Floats) -> Any:
        """Return the sum of the density over the evaluation points."""
        return weight @ self.density + DENSITY_FLOOR * self.left.size

    def error(self, spectrum: NDArray[np.complex128], weight: Floats) -> float:
        """Return the smoothed calibration error at this bandwidth.

        Parameters
        ----------
        spectrum
            `transform` of the residuals on this plan's grid.
        weight
            Weights on this plan's grid.
        """
        return float(np.abs(self.read(spectrum)).sum() / self.density_sum(weight))


@lru_cache(maxsize=512)
def plan_on(bandwidth: float, points: int) -> SmoothingPlan:
    """Return the plan of a bandwidth on a given grid."""
    period = 2 * (points - 1)
    # The published kernel is sampled at `points` places around its middle; with an even number
    # it sits half a step to one side, which is kept for the sake of equal values.
    offsets = np.arange(points) - (points - 1) // 2
    distance = (np.arange(points) - (points - 1) / 2) / (points - 1)
    height = np.exp(-(distance**2) / (2 * bandwidth**2)) / (math.sqrt(2 * math.pi) * bandwidth)
    kernel = np.zeros(period)
    # A grid point d steps above contributes with the kernel at d, hence the index -d.
    kernel[-offsets % period] = height
    evaluations = np.linspace(0, 1, max(round(10 / bandwidth), 200))
    remaining = np.clip((evaluations * (points - 1)).astype(np.intp), 0, points - 2)
    step = 1 / (points - 1)
    share = (evaluations - remaining * step) / step
    spectrum = np.fft.rfft(kernel)
    # The grid weights whose product with a grid is the sum of its smoothed values.
    read = np.bincount(remaining, 1 - share, period) + np.bincount(remaining + 1, share, period)
    back = np.fft.irfft(np.fft.rfft(read) * spectrum.conj(), n=period)
    density = back[:points].copy()
    density[1:-1] += back[: points - 1 : -1]
    return SmoothingPlan(points, spectrum, remaining, share, density)


def fixed_point_bandwidth(error: Callable[[float], float]) -> float:
    """Return the bandwidth at which the smoothed error equals the bandwidth, from above.

    The published search halves [0, 1] ten times, so the answer is the smallest multiple of
    1/1024 that is not below its own error. More smoothing never raises the error, so there is
    one such place and it may be looked for in any order: two looks tell how the error falls with
    the bandwidth, and where it meets it. Four looks usually do what ten halvings do.
    """
    # No error exceeds 1, so the bandwidth 1 is wide enough; the finest one never counts as wide.
    low, high = math.floor(FINEST_BANDWIDTH * _STEPS), _STEPS
    guess, looks = _FIRST_GUESS, 0
    before: tuple[int, float] | None = None
    while high - low > 1:
        value = error(guess / _STEPS) * _STEPS
        if guess < value:
            low = guess
        else:
            high = guess
        looks += 1
        better = _meeting(before, guess, value) if looks < HALVINGS // 2 else (low + high) // 2
        before, guess = (guess, value), min(max(better, low + 1), high - 1)
    return high / _STEPS


def _meeting(before: tuple[int, float] | None, place: int, value: float) -> int:
    """Return where the error meets the bandwidth if it keeps falling as a power of it."""
    if before is None:
        # An error below the bandwidth may be noise, which falls as the root of the bandwidth.
        fall = 0.5 if value < place else 0.0
    elif value > 0 and before[1] > 0 and before[0] != place:
        fall = -math.log(value / before[1]) / math.log(place / before[0])
        fall = min(max(fall, 0.0), 1.0)
    else:
        fall = 0.0
    return math.ceil(math.pow(value * math.pow(place, fall), 1 / (1 + fall)))


def smoothing_matrix(bandwidth: float, nodes: Floats) -> Floats:
    """Return the matrix from places of a coarse grid to smoothed values at evenly spaced points.

    The kernel is summed over its mirror images; of a place far from the ends they hold nothing.
    """
    evaluations = even_steps(min(max(round(5 / bandwidth), 24), 400))

    def heights(places: Floats) -> Floats:
        away = (evaluations - places[:, None]) * (math.sqrt(0.5) / bandwidth)
        return np.asarray(np.exp(-np.square(away, out=away)))

    out = heights(nodes)
    low, high = nodes < _FAR * bandwidth, nodes > 1 - _FAR * bandwidth
    out[low] += heights(-nodes[low])
    out[high] += heights(2 - nodes[high])
    # The far tails would be denormal in single precision, which slows everything after.
    out[out < 1e-20] = 0.0
    return out / bandwidth


@lru_cache(maxsize=512)
def even_steps(points: int) -> Floats:
    """Return evenly spaced places from 0 to 1; they are shared, and must not be changed."""
    places = np.linspace(0, 1, points)
    places.flags.writeable = False
    return places
