"""Put values into bins exactly, and sums over bins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

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
    index, residual = _scratch()
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


def _scratch() -> tuple[Indices, Floats]:
    """Return this thread's two buffers; getting them anew costs a tenth of a short pass."""
    try:
        pair: tuple[Indices, Floats] = _buffers.pair
    except AttributeError:
        pair = _buffers.pair = np.empty(PIECE, np.intp), np.empty(PIECE)
    return pair


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
