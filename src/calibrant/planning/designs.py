"""Which items to label next: designs over a pool whose confidences are known.

No design looks at anything but confidences, side information and labels already made, and all
of them choose at random within a cell, so that labelled items stay representative of their cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.registry import Registry
from calibrant.core.rng import RngLike, as_generator

__all__ = ["DEFAULT_DESIGN", "DESIGNS", "LabelPool", "choose_batch"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

DEFAULT_DESIGN = "stratified"
_EXPLORE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LabelPool:
    """Items with known confidence, some of them labelled.

    Parameters
    ----------
    confidence
        Confidences in [0, 1], shape (n,).
    correct
        Outcomes 0 or 1, NaN where there is no label yet, shape (n,).
    side
        Side information that may predict correctness (a cheap judge, the agreement of other
        models), shape (n, k), or None.
    bins
        Equal-width bins of the calibration error.
    """

    confidence: Floats
    correct: Floats
    side: Floats | None = None
    bins: int = 15

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which items have a label."""
        return np.isfinite(self.correct)

    @property
    def cell(self) -> Indices:
        """Bin of every item."""
        cells: Indices = np.minimum((self.confidence * self.bins).astype(np.intp), self.bins - 1)
        return cells


Design: TypeAlias = Callable[[LabelPool, int, np.random.Generator], Indices]
DESIGNS: Registry[Design] = Registry("design")


def choose_batch(
    pool: LabelPool, size: int, *, design: str = DEFAULT_DESIGN, rng: RngLike = 0
) -> Indices:
    """Return the items to label next, in random order.

    Parameters
    ----------
    pool
        The items.
    size
        How many labels to ask for; fewer come back where fewer are left.
    design
        ``stratified`` (spread evenly along the confidence, the default), ``random``,
        ``neyman`` (more labels where outcomes vary more) or ``active`` (explore a grid,
        then exploit the bins whose sign is resolved).
    rng
        Seed or generator.

    Examples
    --------
    >>> pool = LabelPool(np.linspace(0, 1, 100), np.full(100, np.nan))
    >>> batch = choose_batch(pool, 4)
    >>> np.sort(pool.confidence[batch] * 4 // 1).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    generator = as_generator(rng)
    left = int((~pool.labelled).sum())
    chosen = DESIGNS[design](pool, min(size, left), generator)
    return generator.permutation(chosen)


def _random(pool: LabelPool, size: int, generator: np.random.Generator) -> Indices:
    open_items = np.flatnonzero(~pool.labelled)
    return generator.choice(open_items, size, replace=False)


def _stratified(pool: LabelPool, size: int, generator: np.random.Generator) -> Indices:
    """Draw one item at random from each of `size` equal slices of the ordered pool."""
    # Shuffling first puts ties in random order; the sorts keep it.
    open_items = generator.permutation(np.flatnonzero(~pool.labelled))
    if pool.side is None:
        ordered = open_items[np.argsort(pool.confidence[open_items], kind="stable")]
    else:
        ordered = open_items[np.argsort(pool.side[open_items, 0], kind="stable")]
        ordered = ordered[np.argsort(pool.cell[ordered].astype(np.int16), kind="stable")]
    position = (np.arange(size) + generator.random(size)) / max(size, 1) * ordered.size
    # Slices narrower than two items can hit one item twice; such draws are made up at random.
    chosen = np.unique(ordered[np.minimum(position.astype(np.intp), ordered.size - 1)])
    if chosen.size == size:
        return chosen
    rest = np.setdiff1d(open_items, chosen, assume_unique=True)
    more = generator.choice(rest, size - chosen.size, replace=False)
    return np.concatenate([chosen, more])


def _neyman(pool: LabelPool, size: int, generator: np.random.Generator) -> Indices:
    """Share the labels out in proportion to a bin's size times the spread of its outcomes."""
    if not pool.labelled.any():
        return _stratified(pool, size, generator)
    cell, lab = pool.cell, pool.labelled
    items = np.bincount(cell, minlength=pool.bins)
    seen = np.bincount(cell[lab], minlength=pool.bins)
    hits = np.bincount(cell[lab], weights=pool.correct[lab], minlength=pool.bins)
    rate = (hits + 1.0) / (seen + 2.0)
    want = items * np.sqrt(rate * (1.0 - rate))
    target = want / want.sum() * (lab.sum() + size)
    return _draw(pool, np.maximum(target - seen, 0.0), size, generator)


def _active(pool: LabelPool, size: int, generator: np.random.Generator) -> Indices:
    """Explore bins evenly until half of the labels are spent, then exploit resolved ones."""
    cell, lab = pool.cell, pool.labelled
    items = np.bincount(cell, minlength=pool.bins).astype(np.float64)
    seen = np.bincount(cell[lab], minlength=pool.bins)
    explore = int(np.ceil(_EXPLORE_SHARE * (lab.sum() + size))) - int(lab.sum())
    explore = min(max(explore, 0), size)
    even = np.maximum((lab.sum() + explore) / max((items > 0).sum(), 1) - seen, 0.0)
    first = _draw(pool, np.where(items > 0, even, 0.0), explore, generator)
    if explore == size:
        return first
    residual = np.bincount(
        cell[lab], weights=pool.correct[lab] - pool.confidence[lab], minlength=pool.bins
    )
    spread = np.sqrt(0.25 / np.maximum(seen, 1))
    resolved = (seen > 0) & (np.abs(residual / np.maximum(seen, 1)) > 2 * spread)
    want = np.where(resolved, items, 0.0) if resolved.any() else items
    taken = LabelPool(pool.confidence, pool.correct.copy(), None, pool.bins)
    taken.correct[first] = 0.0
    return np.concatenate([first, _draw(taken, want, size - explore, generator)])


def _draw(pool: LabelPool, want: Floats, size: int, generator: np.random.Generator) -> Indices:
    """Draw `size` open items, bins in proportion to `want`, at random within a bin."""
    open_items = np.flatnonzero(~pool.labelled)
    cell = pool.cell[open_items]
    left = np.bincount(cell, minlength=pool.bins)
    quota = np.zeros(pool.bins, dtype=np.intp)
    share = np.where(left > 0, want, 0.0)
    share = share if share.sum() > 0 else left.astype(np.float64)
    while quota.sum() < min(size, open_items.size):
        missing = min(size, open_items.size) - quota.sum()
        room = np.where(quota < left, share, 0.0)
        room = room if room.sum() > 0 else np.where(quota < left, 1.0, 0.0)
        extra = generator.multinomial(missing, room / room.sum())
        quota = np.minimum(quota + extra, left)
    shuffled = generator.permutation(open_items.size)
    # Small integers are sorted by radix, which matters when a pool is replayed many times.
    order = shuffled[np.argsort(cell[shuffled].astype(np.int16), kind="stable")]
    rank = np.arange(order.size) - (np.cumsum(left) - left)[cell[order]]
    drawn: Indices = open_items[order[rank < quota[cell[order]]]]
    return drawn


for _name, _design in (
    ("stratified", _stratified),
    ("random", _random),
    ("neyman", _neyman),
    ("active", _active),
):
    DESIGNS.add(_name, _design)
