"""Which items to label next: draws whose chances are known and kept with every label.

A design looks at confidences, side information and earlier labels. It says with which
probability it takes each item, so that every estimate afterwards can undo the choice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.core.arrays import Floats, Indices, RngLike, as_generator
from calibrant.core.names import Registry
from calibrant.labels.labelling.pools import LabelPool, Wave, features, first_look
from calibrant.metrics.stats.units import systematic_sample

DEFAULT_DESIGN = "stratified"
# Share of an item's chance that does not depend on its size: no weight explodes.
_FLOOR = 0.3
# Labels from which on a regression may steer the next wave.
_ENOUGH = 40


@dataclass(frozen=True, slots=True)
class WaveDraw:
    """Items of one wave, in random order, with the chance each of them had.

    `along` says where each lies on the line along which the draw was spread evenly, NaN where it
    was not spread: neighbours on it are alike, and were drawn one in each stretch.
    """

    index: Indices
    pi: Floats
    wave: Wave
    along: Floats


class Chances(NamedTuple):
    """Chance of every open item, the order in which they are walked, and how they are spread."""

    pi: Floats
    order: Indices
    along: Floats
    uniform: bool


Design: TypeAlias = Callable[[LabelPool, int, np.random.Generator], Chances]
DESIGNS: Registry[Design] = Registry("design")


def draw_wave(
    pool: LabelPool, size: int, *, design: str = DEFAULT_DESIGN, rng: RngLike = 0
) -> WaveDraw:
    """Draw the next items to label from those that were never drawn.

    Parameters
    ----------
    pool
        The items.
    size
        Items to draw; fewer come back where fewer are left.
    design
        ``stratified`` (equal chances, spread evenly along bin and side information; the
        default), ``random`` (equal chances) or ``pps`` (larger chances where outcomes are less
        certain, once 40 labels can tell; equal chances before).
    rng
        Seed or generator.

    Examples
    --------
    >>> pool = LabelPool(np.linspace(0, 1, 100), np.full(100, np.nan))
    >>> drawn = draw_wave(pool, 4)
    >>> np.sort(pool.confidence[drawn.index] * 4 // 1).tolist(), drawn.pi.tolist()
    ([0.0, 1.0, 2.0, 3.0], [0.04, 0.04, 0.04, 0.04])
    """
    generator = as_generator(rng)
    frame = pool.open
    count = min(size, frame.size)
    draws = DESIGNS[design](pool, count, generator)
    picks = systematic_sample(draws.pi, draws.order, generator)
    picks = generator.permutation(picks)
    wave = Wave(picks.size, int(frame.size), draws.uniform)
    return WaveDraw(frame[picks], draws.pi[picks], wave, draws.along[picks])


def choose_batch(
    pool: LabelPool, size: int, *, design: str = DEFAULT_DESIGN, rng: RngLike = 0
) -> Indices:
    """Return the items to label next, in random order; `draw_wave` gives their chances too.

    Examples
    --------
    >>> pool = LabelPool(np.linspace(0, 1, 100), np.full(100, np.nan))
    >>> len(choose_batch(pool, 4))
    4
    """
    return draw_wave(pool, size, design=design, rng=rng).index


def inclusion_probabilities(size: Floats, count: int) -> Floats:
    """Return chances proportional to `size` mixed with equal ones, none above 1.

    Examples
    --------
    >>> chances = inclusion_probabilities(np.array([1.0, 1.0, 10.0]), 2)
    >>> chances.round(2).tolist()
    [0.5, 0.5, 1.0]
    """
    if not size.size:
        return size
    mean = size.mean()
    share: Floats = (1 - _FLOOR) * (size / mean if mean > 0 else np.ones_like(size)) + _FLOOR
    certain = np.zeros(share.size, dtype=np.bool_)
    chances = np.minimum(np.full(share.size, float(count)), 1.0)
    while not certain.all():
        room = (count - certain.sum()) / share[~certain].sum()
        chances = np.where(certain, 1.0, share * room)
        beyond = (chances > 1.0) & ~certain
        if not beyond.any():
            break
        certain |= beyond
    return np.asarray(np.minimum(chances, 1.0), dtype=np.float64)


def _walk(
    pool: LabelPool, fine: Floats, generator: np.random.Generator, *, turns: bool
) -> tuple[Indices, Floats]:
    """Return the open items' order along bin, then `fine` in [0, 1], then chance; their places.

    With `turns` every other bin runs backwards, so that neighbours at a border are alike. Bins are
    of equal width: the cells of an audit hold equally many items, and would leave side information
    too few of them to be spread along.
    """
    frame = pool.open
    width = np.minimum((pool.confidence[frame] * pool.bins).astype(np.intp), pool.bins - 1)
    back = (width % 2 == 1) & turns
    coarse = np.zeros(frame.size) if pool.stratum is None else pool.stratum[frame]
    order = np.lexsort((generator.random(frame.size), np.where(back, -fine, fine), width, coarse))
    inside = np.clip(fine, 0.0, 1.0)
    # Below 1, so that no place reaches into the next bin.
    return order, width + 0.999 * np.where(back, 1.0 - inside, inside)


def _stratified(pool: LabelPool, size: int, generator: np.random.Generator) -> Chances:
    frame = pool.open
    fine = pool.confidence[frame]
    if pool.side is not None and pool.side.shape[1]:
        fine = pool.side[frame, 0]
    order, extra = _walk(pool, fine, generator, turns=True)
    return Chances(np.full(frame.size, size / max(frame.size, 1)), order, extra, True)


def _random(pool: LabelPool, size: int, generator: np.random.Generator) -> Chances:
    remaining = pool.open.size
    order, nowhere = generator.permutation(remaining), np.full(remaining, np.nan)
    return Chances(np.full(remaining, size / max(remaining, 1)), order, nowhere, True)


def _pps(pool: LabelPool, size: int, generator: np.random.Generator) -> Chances:
    lab = np.flatnonzero(pool.labelled)
    if lab.size < _ENOUGH:
        return _stratified(pool, size, generator)
    rate = first_look(features(pool), lab, pool.correct[lab], pool.weights())[pool.open]
    pi = inclusion_probabilities(np.sqrt(np.maximum(rate * (1 - rate), 1e-4)), size)
    order, extra = _walk(pool, rate, generator, turns=False)
    return Chances(pi, order, extra, False)


for _name, _design in (("stratified", _stratified), ("random", _random), ("pps", _pps)):
    DESIGNS.add(_name, _design)
# Chances that follow the spread of outcomes are Neyman's allocation, item by item.
DESIGNS.add("neyman", _pps)
