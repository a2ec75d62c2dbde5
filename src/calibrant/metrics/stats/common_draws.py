"""Draws that all models with few rows share.

Drawing numbers takes most of the time of a model with twenty answers, and there may be thousands
of such models. They share one table of numbers for each purpose. A model's intervals are then the
same whatever it is called and whatever else is audited, and those of two models differ by their
answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Array, Floats, Indices, Ints
from calibrant.core.rng import RngLike, as_generator, named_stream

# Up to so many rows draws are shared.
FEW_ROWS = 30


class CommonDraws(Struct, frozen=True):
    """A source of random numbers that gives the same ones to whoever asks for as many.

    Parameters
    ----------
    seed
        The seed of an audit.
    purpose
        What the numbers are for; two purposes have independent numbers.

    Examples
    --------
    >>> first, second = CommonDraws(0).spawn(2)
    >>> bool((first.standard_normal((2, 3)) == CommonDraws(0, (0,)).standard_normal((2, 3))).all())
    True
    >>> bool((first.standard_normal((2, 3)) == second.standard_normal((2, 3))).any())
    False
    """

    seed: int
    purpose: tuple[int, ...] = ()

    def spawn(self, count: int) -> list[CommonDraws]:
        """Return sources for `count` purposes."""
        return [CommonDraws(self.seed, (*self.purpose, number)) for number in range(count)]

    def integers(self, high: int) -> int:
        """Return a whole number below `high`: the seed of further draws."""
        return _whole(self, high)

    def standard_normal(self, size: tuple[int, int]) -> Floats:
        """Return normal numbers; fewer rows are the first ones of more."""
        rows, columns = size
        return _normals(self, max(rows, FEW_ROWS), columns)[:rows]

    def hits(self, trials: Ints, chance: Floats, draws: int) -> Floats:
        """Return binomial numbers, shape (..., draws, k): a uniform number for every trial.

        Parameters
        ----------
        trials, chance
            Of one model, shape (k,), or of several, shape (m, k); each gets its own numbers
            whatever the others are.
        draws
            How many numbers of each.

        Examples
        --------
        >>> trials, chance = np.array([1, 2]), np.array([0.5, 0.9])
        >>> CommonDraws(0).hits(trials, chance, 1000).mean(axis=0).round(1).tolist()
        [0.5, 1.8]
        """
        times = trials.ravel()
        totals = trials.reshape(-1, trials.shape[-1]).sum(axis=1)
        most, least = int(totals.max()), int(totals.min())
        uniform = _uniforms(self, max(most, FEW_ROWS), draws)[:most]
        at = np.repeat(chance.ravel(), times)
        if most == least:
            hit = (uniform < at.reshape(-1, most, 1)).reshape(-1, draws)
        else:
            starts = np.repeat(totals.cumsum() - totals, totals)
            hit = uniform[np.arange(at.size) - starts] < at[:, None]
        first = times.cumsum() - times
        hits: Floats = (hit if at.size == times.size else hit[first]).astype(np.float64)
        # Most have one trial or two: those with a second, with a third and so on are added.
        for number in range(1, int(times.max())):
            more = np.flatnonzero(times > number)
            hits[more] += hit[first[more] + number]
        return hits.reshape(*trials.shape, draws).swapaxes(-1, -2)

    def resampled(self, rows: int, draws: int) -> Indices:
        """Return rows drawn with replacement, shape (draws, rows)."""
        return _resampled(self, rows, draws)

    def poisson(self, mean: Floats, size: tuple[int, int]) -> Floats:
        """Return Poisson numbers, shape (..., draws, k), from one uniform number each.

        Parameters
        ----------
        mean
            Of one model, shape (k,), or of several, shape (m, k).
        size
            Draws and k.

        Examples
        --------
        >>> CommonDraws(0).poisson(np.array([0.1, 3.0]), (4000, 2)).mean(axis=0).round(1).tolist()
        [0.1, 3.0]
        """
        # Loaded here: declaring a verb needs no distribution.
        from scipy import special

        draws, k = size
        counting = CommonDraws(self.seed, (*self.purpose, -1))
        uniform = _uniforms(counting, max(k, FEW_ROWS), draws)[:k]
        # Beyond the last value lies a probability of 1e-12.
        last = int(special.pdtrik(1 - 1e-12, mean.max())) + 1 if mean.size else 0
        reached = special.pdtr(np.arange(last + 1), mean[..., None])
        out = np.zeros((*mean.shape, draws))
        for number in range(last + 1):
            above = uniform > reached[..., number, None]
            if not above.any():
                break
            out += above
        return out.swapaxes(-1, -2)


Stream: TypeAlias = np.random.Generator | CommonDraws
Item = TypeVar("Item")


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, at most `size` (and at least one) at a time.

    Examples
    --------
    >>> list(batches([1, 2, 3, 4, 5], 2))
    [[1, 2], [3, 4], [5]]
    """
    size = max(size, 1)
    for start in range(0, len(items), size):
        yield items[start : start + size]


def as_stream(rng: RngLike | CommonDraws) -> Stream:
    """Return shared draws as they are, and anything else as a generator."""
    return rng if isinstance(rng, CommonDraws) else as_generator(rng)


def _generator(kind: str, source: CommonDraws, *size: int) -> np.random.Generator:
    return named_stream(source.seed, "common draws", kind, *source.purpose, *size)


def _kept(table: Array) -> Array:
    table.flags.writeable = False
    return table


@lru_cache(maxsize=64)
def _whole(source: CommonDraws, high: int) -> int:
    return int(_generator("whole", source).integers(high))


@lru_cache(maxsize=16)
def _normals(source: CommonDraws, rows: int, columns: int) -> Floats:
    return _kept(_generator("normal", source, columns).standard_normal((rows, columns)))


@lru_cache(maxsize=32)
def _uniforms(source: CommonDraws, rows: int, columns: int) -> Floats:
    return _kept(_generator("uniform", source, columns).random((rows, columns)))


@lru_cache(maxsize=FEW_ROWS)
def _resampled(source: CommonDraws, rows: int, draws: int) -> Indices:
    return _kept(_generator("rows", source, rows, draws).integers(0, rows, (draws, rows)))
