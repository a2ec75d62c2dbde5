"""Split a pool of draws into a selection block and an evaluation block.

A random split needs the class counts only: the counts of the selection block follow the
multivariate hypergeometric law. Here that law is sampled, or worked out exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from calibrant.core.errors import InputError
from calibrant.core.rng import RngLike, as_generator

__all__ = ["SplitDraws", "SplitLaw", "exact_cost", "sample_splits", "split_law"]

# Numbers that one chunk of random splits may hold at once.
_CHUNK = 8_000_000

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SplitLaw:
    """The law of a random split, per question and class.

    Parameters
    ----------
    selection
        (questions, classes): chance that the selection block chooses this class.
    heldout
        (questions, classes): expectation of the class's frequency on the evaluation block times
        the indicator that the class is chosen.
    """

    selection: FloatArray
    heldout: FloatArray

    @property
    def confidence(self) -> FloatArray:
        """Expected held-out frequency of the chosen class, given that one is chosen."""
        chosen = self.selection.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: FloatArray = self.heldout.sum(axis=1) / chosen
        return mean

    def mean_of(self, values: FloatArray) -> FloatArray:
        """Mean of a number per class over the chosen classes; NaN where one of them has none."""
        known = np.where(self.selection > 0, values, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: FloatArray = (self.selection * known).sum(axis=1) / self.selection.sum(axis=1)
        # Shares add up to 1 with a rounding error; equal values must keep their value.
        least = np.where(self.selection > 0, values, np.inf).min(axis=1)
        most = np.where(self.selection > 0, values, -np.inf).max(axis=1)
        return np.where(least == most, least, mean)


@dataclass(frozen=True, slots=True)
class SplitDraws:
    """Sampled splits: chosen class (-1: none) and its held-out frequency, (questions, splits)."""

    selected: IntArray
    heldout: FloatArray

    @property
    def confidence(self) -> FloatArray:
        """Mean held-out frequency of the chosen class over the splits that choose one."""
        chosen = self.selected >= 0
        total = np.where(chosen, self.heldout, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: FloatArray = total / chosen.sum(axis=1)
        return mean

    def law(self, classes: int) -> SplitLaw:
        """Return the shares and held-out sums of these splits, for so many classes."""
        questions, splits = self.selected.shape
        chosen = self.selected >= 0
        cell = (np.arange(questions)[:, None] * classes + self.selected)[chosen]
        size = questions * classes
        selection = np.bincount(cell, minlength=size) / splits
        heldout = np.bincount(cell, weights=self.heldout[chosen], minlength=size) / splits
        return SplitLaw(selection.reshape(-1, classes), heldout.reshape(-1, classes))


def exact_cost(counts: npt.ArrayLike, block: npt.ArrayLike) -> float:
    """Return roughly how many multiplications :func:`split_law` needs.

    Examples
    --------
    >>> exact_cost([[10, 10]], 10) < exact_cost([[25, 25]], 25)
    True
    """
    table = np.asarray(counts, dtype=np.int64)
    size = np.broadcast_to(np.asarray(block, dtype=np.float64), table.shape[:1])
    classes = (table > 0).sum(axis=1)
    return float(np.sum(classes * size**3))


def split_law(
    counts: npt.ArrayLike, block: npt.ArrayLike, *, selectable: npt.ArrayLike | None = None
) -> SplitLaw:
    """Work out the law of a random split exactly.

    Parameters
    ----------
    counts
        (questions, classes) draws per class, zero-padded. Columns are in the order in which the
        classes were first seen: among equally frequent classes the first column is chosen.
    block
        Size of the selection block, one number or one per question; at least 1 and below the
        size of the pool.
    selectable
        (questions, classes) False for what can never be chosen, such as refusals. They still
        fill places in the blocks.

    Returns
    -------
    SplitLaw

    Notes
    -----
    The chance that class k is chosen with a draws is a coefficient of a product of truncated
    binomial polynomials: classes before k hold fewer than a draws, classes after k at most a.
    All terms are positive, so nothing cancels. Where a is more than half of the block, no other
    class can reach it and the plain hypergeometric law is enough.

    Examples
    --------
    Two of three draws agree; a block of one picks the pair's class in 2 of 3 splits:

    >>> law = split_law([[2, 1]], 1)
    >>> law.selection.round(4).tolist(), law.confidence.round(4).tolist()
    ([[0.6667, 0.3333]], [0.3333])
    """
    table, size, allowed = _checked(counts, block, selectable)
    selection = np.zeros(table.shape)
    heldout = np.zeros(table.shape)
    if not table.size:
        return SplitLaw(selection, heldout)
    keys = np.column_stack([size, table, allowed])
    kinds, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    kind_selection = np.zeros((len(kinds), table.shape[1]))
    kind_heldout = np.zeros_like(kind_selection)
    width = table.shape[1]
    kind_counts, kind_allowed = kinds[:, 1 : 1 + width], kinds[:, 1 + width :].astype(bool)
    groups = np.column_stack([kinds[:, 0], kind_counts.sum(axis=1), (kind_counts > 0).sum(axis=1)])
    for group in np.unique(groups, axis=0):
        rows = np.flatnonzero((groups == group).all(axis=1))
        law = _law_of_one_size(kind_counts[rows], kind_allowed[rows], int(group[0]))
        kind_selection[rows], kind_heldout[rows] = law
    return SplitLaw(kind_selection[inverse], kind_heldout[inverse])


def _law_of_one_size(
    counts: IntArray, allowed: BoolArray, block: int
) -> tuple[FloatArray, FloatArray]:
    """Law for questions that share pool size, block size and number of classes."""
    filled = np.argsort(counts == 0, axis=1, kind="stable")
    width = int((counts[0] > 0).sum())
    order = filled[:, :width]
    dense = np.take_along_axis(counts, order, axis=1)
    free = np.take_along_axis(allowed, order, axis=1)
    pool = int(dense[0].sum())
    chosen = np.zeros(dense.shape)
    held = np.zeros(dense.shape)
    for top in range(1, block + 1):
        if 2 * top > block:
            chance = _plain_law(dense, pool, block, top)
        elif top * width >= block or not free.all():
            chance = _contested_law(dense, free, pool, block, top)
        else:
            continue
        chance = np.where(free, chance, 0.0)
        chosen += chance
        held += chance * (dense - top) / (pool - block)
    full_chosen, full_held = np.zeros(counts.shape), np.zeros(counts.shape)
    np.put_along_axis(full_chosen, order, chosen, axis=1)
    np.put_along_axis(full_held, order, held, axis=1)
    return full_chosen, full_held


def _plain_law(counts: IntArray, pool: int, block: int, top: int) -> FloatArray:
    """Chance that each class has exactly `top` draws in the block."""
    return np.exp(
        _log_choose(counts, top)
        + _log_choose(pool - counts, block - top)
        - _log_choose(np.asarray(pool), block)
    )


def _contested_law(
    counts: IntArray, free: BoolArray, pool: int, block: int, top: int
) -> FloatArray:
    """Chance that each class has `top` draws and wins: prefix times suffix polynomials."""
    questions, width = counts.shape
    length = block - top + 1
    before = np.zeros((width, questions, length))
    before[0, :, 0] = 1.0
    for k in range(1, width):
        reach = np.where(free[:, k - 1], top - 1, block)
        before[k] = _times_binomial(before[k - 1], counts[:, k - 1], reach)
    after = np.zeros((questions, length))
    after[:, 0] = 1.0
    wins = np.empty(counts.shape)
    for k in range(width - 1, -1, -1):
        others = np.einsum("qi,qi->q", before[k], after[:, ::-1])
        wins[:, k] = np.exp(_log_choose(counts[:, k], top)) * others
        if k:
            reach = np.where(free[:, k], top, block)
            after = _times_binomial(after, counts[:, k], reach)
    scale: FloatArray = wins / np.exp(_log_choose(np.asarray(pool), block))
    return scale


def _times_binomial(poly: FloatArray, counts: IntArray, reach: IntArray) -> FloatArray:
    """Multiply each row by the binomial polynomial of its count, cut after `reach`."""
    limit = np.minimum(counts, reach)
    product = np.zeros_like(poly)
    length = poly.shape[1]
    for power in range(min(int(limit.max(initial=0)), length - 1) + 1):
        weight = np.where(power <= limit, np.exp(_log_choose(counts, power)), 0.0)
        product[:, power:] += weight[:, None] * poly[:, : length - power]
    return product


def _log_choose(n: npt.ArrayLike, k: int) -> FloatArray:
    n = np.asarray(n, dtype=np.float64)
    possible = (n >= k) & (k >= 0)
    safe = np.where(possible, n, max(k, 0))
    value = gammaln(safe + 1) - gammaln(k + 1) - gammaln(safe - k + 1)
    return np.where(possible, value, -np.inf)


def sample_splits(
    counts: npt.ArrayLike,
    block: npt.ArrayLike,
    *,
    splits: int = 200,
    rng: RngLike = 0,
    selectable: npt.ArrayLike | None = None,
) -> SplitDraws:
    """Draw random splits, vectorised over questions and splits.

    Parameters
    ----------
    counts, block, selectable
        As for :func:`split_law`.
    splits
        Splits per question.
    rng
        Seed or generator; the same seed gives the same splits.

    Returns
    -------
    SplitDraws

    Examples
    --------
    >>> draws = sample_splits([[20, 0], [10, 10]], 10, splits=100, rng=0)
    >>> int(draws.selected[0].max()), float(draws.heldout[0].min())
    (0, 1.0)
    """
    if splits < 1:
        raise InputError(f"the number of splits must be at least 1, got {splits}")
    table, size, allowed = _checked(counts, block, selectable)
    generator = as_generator(rng)
    questions = table.shape[0]
    selected = np.full((questions, splits), -1, dtype=np.int64)
    held = np.full((questions, splits), np.nan)
    pool = table.sum(axis=1)
    for sizes in np.unique(np.column_stack([pool, size]), axis=0):
        rows = np.flatnonzero((pool == sizes[0]) & (size == sizes[1]))
        step = max(1, _CHUNK // (splits * table.shape[1]))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            picked = _split_chunk(table[part], allowed[part], int(sizes[1]), splits, generator)
            selected[part], held[part] = picked
    return SplitDraws(selected, held)


def _split_chunk(
    counts: IntArray, allowed: BoolArray, block: int, splits: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Split questions of one pool size: the same positions for all, each in an order of its own.

    Every question's draws are put into a random order of their own, so that a set of positions
    that all questions share picks an independent random half of each. Counting classes in the
    halves is then one matrix product.
    """
    questions, width = counts.shape
    pool = int(counts[0].sum())
    classes = np.repeat(np.tile(np.arange(width), questions), counts.ravel())
    order = np.argsort(rng.random((questions, pool)), axis=1)
    arranged = np.take_along_axis(classes.reshape(questions, pool), order, axis=1)
    members = np.zeros((pool, questions, width), dtype=np.float32)
    members[np.arange(pool), np.arange(questions)[:, None], arranged] = 1
    places = np.argsort(rng.random((splits, pool)), axis=1)[:, :block]
    halves = np.zeros((splits, pool), dtype=np.float32)
    halves[np.arange(splits)[:, None], places] = 1
    taken = (halves @ members.reshape(pool, -1)).reshape(splits, questions, width)
    taken = np.where(allowed, taken, 0)
    winner = taken.argmax(axis=2)
    won = np.take_along_axis(taken, winner[..., None], axis=2)[..., 0]
    left = counts[np.arange(questions), winner] - won
    selected = np.where(won > 0, winner, -1)
    held = np.where(won > 0, left / (pool - block), np.nan)
    return selected.T, held.T


def _checked(
    counts: npt.ArrayLike, block: npt.ArrayLike, selectable: npt.ArrayLike | None
) -> tuple[IntArray, IntArray, BoolArray]:
    table = np.asarray(counts, dtype=np.int64)
    if table.ndim != 2:
        raise InputError(f"counts must be a (questions, classes) table, got shape {table.shape}")
    if table.size and table.min() < 0:
        raise InputError(f"counts must not be negative, got {table.min()}")
    size = np.broadcast_to(np.asarray(block, dtype=np.int64), table.shape[:1])
    pool = table.sum(axis=1)
    bad = np.flatnonzero((size < 1) | (size >= pool))
    if bad.size:
        row = int(bad[0])
        raise InputError(
            f"the selection block must hold at least 1 draw and leave at least 1, got "
            f"{int(size[row])} of {int(pool[row])}",
            row=row + 1,
        )
    allowed = (
        np.ones(table.shape, dtype=bool)
        if selectable is None
        else np.asarray(selectable, dtype=bool)
    )
    if allowed.shape != table.shape:
        raise InputError(
            f"selectable must have the shape of counts {table.shape}, got {allowed.shape}"
        )
    return table, size, allowed
