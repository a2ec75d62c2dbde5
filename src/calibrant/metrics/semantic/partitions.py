"""How a mass is split over classes: the partitions behind the estimate for unlimited draws.

A splitter (theta, d) is a Gibbs-type law: d = 0 is a Dirichlet process, 0 < d < 1 a Pitman-Yor
process, d = -a with theta = m a a symmetric Dirichlet law on m classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from calibrant.core.arrays import Floats, Ints

_FINITE = (
    (1, 1.0), (2, 1.0), (2, 5.0), (4, 0.4), (4, 3.0),
    (10, 0.3), (10, 2.0), (20, 1.0), (20, 5.0),
)  # fmt: skip
SPLITTERS: Floats = np.array(
    [(0.2, 0.0), (1.0, 0.0), (4.0, 0.0), (15.0, 0.0), (0.5, 0.5), (4.0, 0.5)]
    + [(classes * alpha, -alpha) for classes, alpha in _FINITE]
)
# Largest classes that are drawn one by one, and pieces that the unseen mass is broken into.
_HEAD, _STICKS = 8, 10
_ZERO, _TINY = 1e-9, 1e-12


def log_partition(counts: Ints) -> Floats:
    """Return the log chance of each row's partition under each splitter, (rows, splitters).

    Examples
    --------
    One class for all the mass makes two classes impossible:

    >>> bool(log_partition(np.array([[2, 1]]))[0, 6] < -1e5)
    True
    """
    size, classes = counts.sum(axis=1), (counts > 0).sum(axis=1)
    table = np.empty((len(counts), len(SPLITTERS)))
    for column, (theta, discount) in enumerate(SPLITTERS):
        grown = theta + np.arange(1, max(int(classes.max(initial=0)), 1)) * discount
        logs = np.where(grown > _ZERO, np.log(np.maximum(grown, 1e-300)), -1e6)
        opened = np.concatenate([[0.0, 0.0], np.cumsum(logs)])[classes]
        inside = gammaln(np.maximum(counts - discount, _ZERO)) - gammaln(1 - discount)
        rising = gammaln(theta + np.maximum(size, 1)) - gammaln(theta + 1)
        chance = opened - rising + np.where(counts > 0, inside, 0.0).sum(axis=1)
        table[:, column] = np.where(size > 0, chance, 0.0)
    return table


def largest_share(counts: Ints, splitter: Ints, rng: np.random.Generator) -> Floats:
    """Draw the share of the largest class given the counts, (rows, draws).

    Parameters
    ----------
    counts
        (rows, classes) draws per class.
    splitter
        (rows, draws) place of the splitter in `SPLITTERS`.
    rng
        Generator.
    """
    ranked = -np.sort(-counts, axis=1)
    head, rest = ranked[:, :_HEAD], ranked[:, _HEAD:]
    classes = (counts > 0).sum(axis=1)[:, None]
    theta, discount = SPLITTERS[splitter, 0], SPLITTERS[splitter, 1]
    seen = _gamma(np.where(head[:, None] > 0, head[:, None] - discount[..., None], 0.0), rng)
    small = rest.sum(axis=1)[:, None] - (rest > 0).sum(axis=1)[:, None] * discount
    small = _gamma(np.where(rest.sum(axis=1)[:, None] > 0, np.maximum(small, _TINY), 0.0), rng)
    room = np.maximum(theta + discount * classes, 0.0)
    unseen = np.where(classes == 0, 1.0, _gamma(np.where(room > _ZERO, room, 0.0), rng))
    total = seen.sum(axis=2) + small + unseen
    largest: Floats = seen.max(axis=2) / total
    # A class that no draw has seen can lead only where the unseen mass exceeds the largest.
    open_cells = np.nonzero(unseen / total > largest)
    broken = _largest_stick(
        (unseen / total)[open_cells], room[open_cells], discount[open_cells], rng
    )
    largest[open_cells] = np.maximum(largest[open_cells], broken)
    return largest


def _gamma(shape: Any, rng: np.random.Generator) -> Floats:
    drawn = rng.standard_gamma(np.maximum(shape, _TINY))
    return np.where(shape > 0, drawn, 0.0)


def _largest_stick(
    left: Floats, room: Floats, discount: Floats, rng: np.random.Generator
) -> Floats:
    """Break the unseen mass into pieces and return the largest."""
    largest = np.zeros(left.size)
    for number in range(1, _STICKS + 1):
        remaining = np.maximum(room + number * discount, 0.0)
        broken = rng.beta(np.maximum(1 - discount, _ZERO), np.maximum(remaining, _ZERO))
        piece = np.where(remaining > _ZERO, broken, 1.0)
        largest = np.maximum(largest, left * piece)
        left = left * (1 - piece)
    return largest
