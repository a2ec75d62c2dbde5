"""Intervals from draws: the bootstrap by units, and tests inverted along a line of candidates.

The binned calibration error is the sum of |d_b| over a vector d of mean residuals that is
nearly normal. Near d = 0 its plug-in is biased upwards and no bootstrap interval of the plug-in
covers. Here each candidate value is tested instead: the observed vector is scaled until its
absolute sum equals the candidate, noise of the variance that belongs to the candidate is added,
and the candidate is kept where the observed sum is not extreme among the simulated ones.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from calibrant.core import InputError
from calibrant.core.arrays import Array, Floats, Indices, Ints, Mask
from calibrant.metrics.stats.units import Units


def check_resamples(resamples: int) -> int:
    """Check a number of resamples."""
    if resamples < 20:
        raise InputError(
            f"resamples is at least 20, got {resamples!r}", hint="1000 gives steady intervals"
        )
    return int(resamples)


def resampled_rows(units: Units, resamples: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Yield the rows of each resample: units are drawn with replacement, rows come with them."""
    if units.codes is None:
        for _ in range(resamples):
            yield rng.integers(0, units.rows, units.rows)
        return
    order = np.argsort(units.codes, kind="stable")
    starts = np.searchsorted(units.codes[order], np.arange(units.count + 1))
    lengths = np.diff(starts)
    for _ in range(resamples):
        draws = rng.integers(0, units.count, units.count)
        sizes = lengths[draws]
        # Rows of all drawn units in one go: a running count, restarted at each unit's first row.
        offsets = np.repeat(starts[draws] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        yield order[offsets + np.arange(offsets.size)]


def percentile_interval(replicates: Floats, level: float) -> tuple[float, float]:
    """Return the middle `level` of the replicates.

    Examples
    --------
    >>> import numpy as np
    >>> percentile_interval(np.arange(101), 0.5)
    (25.0, 75.0)
    """
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def quantiles(values: Array, shares: Sequence[float], axis: int = 0) -> Array:
    """Return quantiles along an axis, the first of the answer, as `numpy.quantile` does by default.

    Of few numbers, where preparing takes longer than looking.

    Examples
    --------
    >>> quantiles(np.arange(11.0), (0.25, 0.5)).tolist()
    [2.5, 5.0]
    """
    return np.quantile(values, shares, axis=axis)


# Counts of so many rows stay in the cache.
BLOCK = 65_536


def cell_replicates(
    counts: Array, mean: Floats, spread: Floats, resamples: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Return resampled counts and sums per cell, shape (resamples, cells).

    Parameters
    ----------
    counts, mean, spread
        Rows in each cell, and the mean and standard deviation of the quantity to sum.
    """
    rows = int(counts.sum())
    draws = rng.multinomial(rows, counts / rows, size=resamples)
    sums = draws * mean
    varied = spread > 0
    if varied.any():
        noise = rng.standard_normal((resamples, int(varied.sum())))
        sums[:, varied] += np.sqrt(draws[:, varied]) * spread[varied] * noise
    return draws, sums


def mean_replicates(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return bootstrap replicates of a mean, from cells of similar values."""
    cells = 64
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.full(resamples, low)
    cell = np.minimum((values - low) * (cells / (high - low)), cells - 1).astype(np.intp)
    counts = np.bincount(cell, minlength=cells)
    filled = counts > 0
    safe = np.maximum(counts, 1)
    mean = np.bincount(cell, values, cells) / safe
    square = np.bincount(cell, values * values, cells) / safe
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    _, sums = cell_replicates(counts[filled], mean[filled], spread[filled], resamples, rng)
    return np.asarray(sums.sum(axis=1) / values.size)


def draw_counts(counts: Ints, draws: int, rng: np.random.Generator) -> None:
    """Fill `counts` with how often each row comes up when `draws` are taken with replacement.

    How many fall into each block of rows is multinomial; inside a block they are counted where
    the cache holds them, which halves the time of a million rows.

    Examples
    --------
    >>> counts = np.empty(100_000, np.int64)
    >>> draw_counts(counts, 250, np.random.default_rng(0))
    >>> int(counts.sum())
    250
    """
    rows = counts.size
    starts = np.arange(0, rows, BLOCK)
    sizes = np.diff(starts, append=rows)
    into = rng.multinomial(draws, sizes / rows) if starts.size > 1 else np.array([draws])
    for start, size, count in zip(starts.tolist(), sizes.tolist(), into.tolist(), strict=True):
        block = np.bincount(rng.integers(0, size, count), minlength=size)
        counts[start : start + size] = block


def area_replicates(
    score: Array, positive: Mask, resamples: int, rng: np.random.Generator
) -> Floats:
    """Return exact bootstrap replicates of the area under the ROC curve, sorting only once.

    How many of the drawn rows are positive is binomial; given that, positives and negatives are
    drawn apart. Counted positives, summed up in order of score, answer for every negative how
    many drawn positives lie below it. Negatives are counted too, so that only the counting
    itself jumps about in memory.
    """
    high, low = np.sort(score[positive]), np.sort(score[~positive])
    # For every negative: positives below it, and positives not above it.
    below = np.searchsorted(high, low, side="left")
    through = np.searchsorted(high, low, side="right")
    tied = bool((below != through).any())
    rows, positives = positive.size, high.size
    out = np.empty(resamples)
    # Kept from one resample to the next: fresh memory costs as much as counting in it.
    reached = np.zeros(positives + 1, np.int64)
    draws, room = np.empty(low.size, np.int64), np.empty(low.size, np.int64)
    for index in range(resamples):
        right = int(rng.binomial(rows, positives / rows))
        wrong = rows - right
        if right == 0 or wrong == 0:
            out[index] = np.nan
            continue
        draw_counts(reached[1:], right, rng)
        np.cumsum(reached, out=reached)
        draw_counts(draws, wrong, rng)
        beaten = float(draws @ np.take(reached, below, out=room, mode="clip"))
        if tied:
            beaten += float(draws @ np.take(reached, through, out=room, mode="clip"))
            beaten /= 2
        out[index] = 1 - beaten / (right * wrong)
    return out


# What is asked at one candidate after the other.
Ask: TypeAlias = Callable[[Any], float]


def share_of(held: Mask) -> float:
    """Return the share of draws for which something holds.

    Half a draw on either side keeps a share of exactly 0 or 1 from deciding too much.

    Examples
    --------
    >>> share_of(np.zeros(49, bool))
    0.01
    """
    return (int(np.count_nonzero(held)) + 0.5) / (held.size + 1)


def first_crossing(
    places: Sequence[float] | Floats, share: Ask, level: float, *, rising: bool = True
) -> float:
    """Return the first place where a share reaches the tail, linearly between candidates.

    Or where it falls below the tail, if it is not `rising`.

    Parameters
    ----------
    places
        Rising candidates.
    share
        Returns the share of draws for which something holds, by number of the candidate.
    level
        Two-sided level: the tail is half of what it leaves out.

    Examples
    --------
    >>> shares = [0.005, 0.015, 0.045]
    >>> round(first_crossing([0.0, 1.0, 2.0], shares.__getitem__, 0.95), 9)
    1.333333333
    >>> shares = [0.3, 0.04, 0.01]
    >>> round(first_crossing([0.0, 1.0, 2.0], shares.__getitem__, 0.95, rising=False), 9)
    1.5
    """
    before, tail = 0.0, (1 - level) / 2
    for place in range(len(places)):
        value = share(place)
        if (value >= tail) == rising:
            last = places[max(place - 1, 0)]
            part = (tail - before) / (value - before) if place else 0.0
            return float(last + part * (places[place] - last))
        before = value
    return float(places[-1])


def halved(share: Ask, inside: float, outside: float, tail: float, steps: int = 7) -> float:
    """Return where a share falls from above `tail` (inside) to below it (outside), by halving.

    Linearly between the last two places.

    Examples
    --------
    >>> round(halved(lambda place: 1 - place, 0.0, 1.0, 0.25, steps=20), 3)
    0.75
    """
    at_inside, at_outside = share(inside), share(outside)
    if at_inside < tail:
        return inside
    if at_outside >= tail:
        return outside
    for _ in range(steps):
        middle = (inside + outside) / 2
        value = share(middle)
        if value >= tail:
            inside, at_inside = middle, value
        else:
            outside, at_outside = middle, value
    return inside + (outside - inside) * (at_inside - tail) / (at_inside - at_outside)


def root_between(
    function: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]
) -> float:
    """Return where a function passes 0, from two places with values of unlike sign.

    Ten looks do what fifty halvings do: the line through both ends, whose farther end counts half
    when it stays twice (the Illinois rule).

    Parameters
    ----------
    function
        Continuous between the ends.
    low, high
        Two places, each with the value there. Nearer than 1e-14 they count as one.

    Examples
    --------
    >>> round(root_between(lambda x: x * x - 2, (0.0, -2.0), (2.0, 2.0)), 12)
    1.414213562373
    """
    (a, at_a), (b, at_b) = low, high
    for _ in range(100):
        c = b - at_b * (b - a) / (at_b - at_a)
        at_c = function(c)
        if at_c == 0 or abs(c - b) < 1e-14 or abs(c - a) < 1e-14:
            return c
        if (at_c < 0) != (at_b < 0):
            a, at_a = b, at_b
        else:
            at_a /= 2
        b, at_b = c, at_c
    return b
