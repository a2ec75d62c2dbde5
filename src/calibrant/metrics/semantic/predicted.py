"""How far Sem1 and Sem2 should be apart, from the frequencies of the pool."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from calibrant.core.arrays import Floats
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.semantic.theory import predicted_gaps

# Numbers that one chunk of questions holds at once.
_CHUNK = 2_000_000
_TINY = 1e-300


def pool_gap(pool: DrawPool, selection_n: npt.NDArray[np.int64]) -> float:
    """Return the predicted mean of c1 - c2.

    Per question, the larger of two predictions: the expansion for the two leading classes, which
    the published theory has, and independent Poisson counts for all classes, which see that with
    many rivals one of them is soon ahead by chance.

    Examples
    --------
    >>> from calibrant.metrics.semantic import pool_draws
    >>> pool = pool_draws(["a"] * 20, np.arange(20) % 10, np.zeros(20))
    >>> round(pool_gap(pool, np.array([10])), 3)
    0.12
    """
    first, second = pool.top_two()
    two = predicted_gaps(first - second, first + second, pool.size, selection_n=selection_n)
    many = many_class_gaps(pool.answers / pool.size[:, None], pool.size, selection_n)
    return float(np.maximum(two, many).mean())


def many_class_gaps(shares: npt.ArrayLike, n: npt.ArrayLike, selection_n: npt.ArrayLike) -> Floats:
    """Return E[c1 - c2] of each question where class counts are independent Poisson numbers.

    Parameters
    ----------
    shares
        (questions, classes) probabilities, zero-padded; they may add up to less than 1.
    n, selection_n
        Draws, and draws of the selection block, per question.
    """
    table = -np.sort(-np.asarray(shares, dtype=np.float64), axis=1)
    table = table[:, : max(int((table > 0).sum(axis=1).max(initial=1)), 1)]
    draws = np.broadcast_to(np.asarray(n, dtype=np.int64), table.shape[:1])
    block = np.broadcast_to(np.asarray(selection_n, dtype=np.int64), table.shape[:1])
    keys = np.column_stack([draws, block, table])
    kinds, inverse = np.unique(keys, axis=0, return_inverse=True)
    gaps = np.empty(len(kinds))
    for size in np.unique(kinds[:, :2], axis=0):
        rows = np.flatnonzero((kinds[:, :2] == size).all(axis=1))
        step = max(1, int(_CHUNK // (table.shape[1] * (size[0] + 1))))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            gaps[part] = _gaps(kinds[part, 2:], int(size[0]), int(size[1]))
    return gaps[inverse.reshape(-1)]


def _gaps(shares: Floats, n: int, block: int) -> Floats:
    upward = 1 - np.exp(np.log(np.maximum(_poisson(shares, n)[1], _TINY)).sum(axis=1))
    chance, below = _poisson(shares, block)
    strictly = below - chance
    # A rival that holds as many draws wins half of the time.
    rival = np.log(np.maximum((below + strictly) / 2, _TINY))
    lead = (chance * np.exp(rival.sum(axis=1, keepdims=True) - rival)).sum(axis=2)
    lead = np.where(shares > 0, lead, 0.0)
    selected = (lead * shares).sum(axis=1) / lead.sum(axis=1)
    gap: Floats = upward.sum(axis=1) / n - selected
    return gap


def _poisson(shares: Floats, draws: int) -> tuple[Floats, Floats]:
    """Return chance and cumulative chance of 0 to `draws`, (questions, classes, counts)."""
    counts = np.arange(draws + 1.0)
    mean = draws * shares[:, :, None]
    logs = counts * np.log(np.maximum(mean, _TINY)) - mean - gammaln(counts + 1)
    chance = np.where(mean > 0, np.exp(logs), counts == 0)
    return chance, np.minimum(np.cumsum(chance, axis=2), 1.0)
