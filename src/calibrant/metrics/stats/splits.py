"""Split a pool of draws into a selection block and an evaluation block.

A random split needs the class counts only: the counts of the selection block follow the
multivariate hypergeometric law. Here that law is sampled, or worked out exactly. Where several
classes lead the selection block, each of them counts for its share: a rule that looked outside
the block to break the tie would bias the held-out frequency.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from calibrant.core.arrays import Floats, Ints, Mask, MaybeArray, RngLike, as_generator
from calibrant.core.errors import InputError

# Numbers that one chunk of random splits holds at once: a megabyte stays in the cache.
_CHUNK = 250_000


# Chance of each class, its held-out share, and the chance of a tie, by question.
_Law: TypeAlias = tuple[Floats, Floats, Floats]


class SplitLaw(Struct, frozen=True):
    """The law of a random split, per question and class.

    Parameters
    ----------
    selection
        (questions, classes): chance that the selection block chooses this class; of t classes
        that lead the block together each is chosen with chance 1/t.
    heldout
        (questions, classes): expectation of the class's frequency on the evaluation block times
        its share of the choice.
    tied
        (questions,): chance that several classes lead the selection block.
    """

    selection: Floats
    heldout: Floats
    tied: Floats

    @property
    def confidence(self) -> Floats:
        """Expected held-out frequency of the chosen class, given that one is chosen."""
        choice = self.selection.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = self.heldout.sum(axis=1) / choice
        return mean

    def mean_of(self, values: Floats) -> Floats:
        """Mean of a number per class over the chosen classes; NaN where one of them has none."""
        choice = np.where(self.selection > 0, values, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = (self.selection * choice).sum(axis=1) / self.selection.sum(axis=1)
        # Shares add up to 1 with a rounding error; equal values must keep their value.
        least = np.where(self.selection > 0, values, np.inf).min(axis=1)
        most = np.where(self.selection > 0, values, -np.inf).max(axis=1)
        return np.where(least == most, least, mean)


class _Ranked(NamedTuple):
    """Counts of what can be chosen, largest first; ties have no order, so neither have classes."""

    counts: Ints  # (questions, classes), zero-padded
    order: Ints  # column of the caller's table
    others: Ints  # draws that can never be chosen
    block: Ints

    def spread(self, ranked: Floats) -> Floats:
        """Put columns back into the caller's order."""
        full = np.zeros(self.order.shape)
        np.put_along_axis(full, self.order[:, : ranked.shape[1]], ranked, axis=1)
        return full


def exact_cost(counts: ArrayLike, block: ArrayLike) -> float:
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


def split_law(counts: ArrayLike, block: ArrayLike, *, selectable: MaybeArray = None) -> SplitLaw:
    """Work out the law of a random split exactly.

    Parameters
    ----------
    counts
        (questions, classes) draws per class, zero-padded; the order of columns does not matter.
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
    Class k leads with a draws and s others lead with it: its share 1/(1 + s) is the integral of
    u^s over [0, 1]. Given u, the chance is a coefficient of a product of truncated binomial
    polynomials in which the term of a draws carries a factor u. The integrand is a polynomial in
    u, so that Gauss-Legendre nodes make the integral exact. All terms are positive: nothing
    cancels. Where a is more than half of the block, no other class can reach it.

    Examples
    --------
    Two of three draws agree; a block of one picks the pair's class in 2 of 3 splits:

    >>> law = split_law([[2, 1]], 1)
    >>> law.selection.round(4).tolist(), law.confidence.round(4).tolist()
    ([[0.6667, 0.3333]], [0.3333])
    """
    ranking = _ranked(*_valid(counts, block, selectable))
    if not ranking.order.size:
        return SplitLaw(np.zeros(ranking.order.shape), np.zeros(ranking.order.shape), np.zeros(0))
    keys = np.column_stack([ranking.block, ranking.others, ranking.counts])
    kinds, inverse = _distinct(keys)
    selection, heldout = np.zeros((2, len(kinds), ranking.counts.shape[1]))
    tied = np.zeros(len(kinds))
    table, width = kinds[:, 2:], (kinds[:, 2:] > 0).sum(axis=1)
    for (size, pool, classes), rows in _alike(kinds[:, 0], kinds[:, 1:].sum(axis=1), width):
        law = _law_of_one_size(table[rows, :classes], kinds[rows, 1], pool, size)
        selection[rows, :classes], heldout[rows, :classes], tied[rows] = law
    choice, frequency = (ranking.spread(part[inverse]) for part in (selection, heldout))
    return SplitLaw(choice, frequency, tied[inverse])


def _alike(*columns: Ints) -> Iterator[tuple[list[int], Ints]]:
    """Yield numbers of questions, the last one above 0, and the questions that share them."""
    table = np.column_stack(columns)
    for numbers in np.unique(table[table[:, -1] > 0], axis=0):
        yield numbers.tolist(), np.flatnonzero((table == numbers).all(axis=1))


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return distinct rows and the place of each row among them, comparing rows as bytes."""
    compact = np.ascontiguousarray(keys.astype(np.int32))
    whole = compact.view(np.dtype((np.void, compact.dtype.itemsize * compact.shape[1])))
    _, first, inverse = np.unique(whole.reshape(-1), return_index=True, return_inverse=True)
    return keys[first], inverse.reshape(-1)


def _law_of_one_size(counts: Ints, peers: Ints, pool: int, block: int) -> _Law:
    """Law for questions that share pool size, block size and number of classes."""
    # Any chance gives the same hypergeometric law; block / pool keeps numbers near 1.
    size, selection = np.arange(pool + 1.0)[:, None], np.arange(block + 1.0)
    remaining = size - selection
    with np.errstate(invalid="ignore"):
        log_choose = (
            gammaln(size + 1) - gammaln(selection + 1) - gammaln(np.maximum(remaining, 0) + 1)
        )
        logs = log_choose + selection * np.log(block / pool) + remaining * np.log1p(-block / pool)
    weight = np.where(remaining >= 0, np.exp(logs), 0.0)
    total = weight[pool, block]
    choice, heldout = np.zeros((2, *counts.shape))
    strict = np.zeros(len(counts))
    for top in range(1, min(block, int(counts.max())) + 1):
        if 2 * top > block:
            chance = weight[counts, top] * weight[pool - counts, block - top] / total
            strict += chance.sum(axis=1)
        elif top * counts.shape[1] + int(peers.max()) >= block:
            chance, alone = _contested_law(counts, peers, weight, block, top)
            chance, alone = chance / total, alone / total
            strict += alone.sum(axis=1)
        else:
            continue
        choice += chance
        heldout += chance * (counts - top) / (pool - block)
    return choice, heldout, np.maximum(choice.sum(axis=1) - strict, 0.0)


def _contested_law(
    counts: Ints, peers: Ints, weight: Floats, block: int, top: int
) -> tuple[Floats, Floats]:
    """Weight of each class leading with `top` draws: with its share of ties, and alone."""
    rivals = min(counts.shape[1], block // top) - 1
    nodes, shares = np.polynomial.legendre.leggauss(rivals // 2 + 1)
    # The last node, u = 0, leaves no room for ties: it gives the chance of leading alone.
    u = np.append((nodes + 1) / 2, 0.0)
    length = block - top + 1
    able = int((counts >= top).sum(axis=1).max())
    remainder = np.zeros((len(counts), u.size, length))
    remainder[:] = weight[peers, :length][:, None, :]
    for k in range(counts.shape[1] - 1, able - 1, -1):
        remainder = _times(remainder, weight, counts[:, k], top, u)
    before = [remainder]
    for k in range(able - 1):
        before.append(_times(before[-1], weight, counts[:, k], top, u))
    after = np.zeros((len(counts), u.size, length))
    after[..., 0] = 1.0
    wins, alone = np.zeros((2, *counts.shape))
    for k in range(able - 1, -1, -1):
        modes = np.einsum("qgi,qgi->qg", before[k], after[..., ::-1])
        lead = weight[counts[:, k], top]
        wins[:, k], alone[:, k] = lead * (modes[:, :-1] @ (shares / 2)), lead * modes[:, -1]
        if k:
            after = _times(after, weight, counts[:, k], top, u)
    return wins, alone


def _times(poly: Floats, weight: Floats, counts: Ints, top: int, u: Floats) -> Floats:
    """Multiply by each row's polynomial up to `top`, whose last term carries the factor u."""
    length, most = poly.shape[2], int(counts.max())
    terms = weight[counts]
    product = poly * terms[:, :1, None]
    for power in range(1, min(top - 1, length - 1, most) + 1):
        product[..., power:] += terms[:, power, None, None] * poly[..., : length - power]
    if top < length and top <= most:
        product[..., top:] += terms[:, top, None, None] * u[:, None] * poly[..., : length - top]
    return product


def sample_splits(
    counts: ArrayLike,
    block: ArrayLike,
    *,
    splits: int = 200,
    rng: RngLike = 0,
    selectable: MaybeArray = None,
) -> SplitLaw:
    """Return the shares and held-out sums of random splits, vectorised over questions.

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
    SplitLaw

    Examples
    --------
    >>> law = sample_splits([[20, 0], [10, 10]], 10, splits=100, rng=0)
    >>> law.selection[0].tolist(), law.confidence[0]
    ([1.0, 0.0], np.float64(1.0))
    """
    if splits < 1:
        raise InputError(f"the number of splits must be at least 1, got {splits}")
    ranking = _ranked(*_valid(counts, block, selectable))
    generator = as_generator(rng)
    selection, heldout = np.zeros((2, *ranking.counts.shape))
    tied = np.zeros(len(selection))
    pool = ranking.counts.sum(axis=1) + ranking.others
    width = (ranking.counts > 0).sum(axis=1)
    for (size, used_names, classes), rows in _alike(pool, ranking.block, width):
        step = max(1, _CHUNK // (splits * classes))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            law = _drawn_law(ranking.counts[part, :classes], size, used_names, splits, generator)
            selection[part, :classes], heldout[part, :classes], tied[part] = law
    return SplitLaw(ranking.spread(selection), ranking.spread(heldout), tied)


def _drawn_law(counts: Ints, pool: int, block: int, splits: int, rng: np.random.Generator) -> _Law:
    """Split questions of one pool size: the same positions for all, each in an order of its own.

    Every question's draws are put into a random order of their own, so that a set of positions
    that all questions share picks an independent random half of each. Counting classes in the
    halves is then one matrix product.
    """
    questions, width = counts.shape
    # Draws that can never be chosen have class `width`, which is not counted.
    sizes = np.column_stack([counts, pool - counts.sum(axis=1)])
    classes = np.repeat(np.tile(np.arange(width + 1), questions), sizes.ravel())
    order = np.argsort(rng.random((questions, pool), dtype=np.float32), axis=1)
    arranged = np.take_along_axis(classes.reshape(questions, pool), order, axis=1)
    members = (arranged.T[:, None, :] == np.arange(width)[:, None]).astype(np.float32)
    places = np.argsort(rng.random((splits, pool)), axis=1)[:, :block]
    halves = np.zeros((splits, pool), dtype=np.float32)
    halves[np.arange(splits)[:, None], places] = 1
    selection = (halves @ members.reshape(pool, -1)).reshape(splits, width, questions)
    return _tallied(selection, counts, pool - block)


def _tallied(taken: NDArray[np.float32], counts: Ints, remaining: int) -> _Law:
    """Mean shares, held-out sums and ties; `taken` is (splits, classes, questions)."""
    lead = taken.max(axis=1)
    leaders = taken == lead[:, None, :]
    number = leaders.sum(axis=1, dtype=np.int16)
    share = np.where(lead > 0, 1 / number, 0.0)
    splits = len(taken)
    selection, draws = np.empty((2, *counts.shape))
    for k in range(counts.shape[1]):
        mine = leaders[:, k] * share
        selection[:, k] = mine.sum(axis=0) / splits
        draws[:, k] = np.einsum("sq,sq->q", mine, lead) / splits
    tied = ((number > 1) & (lead > 0)).mean(axis=0)
    return selection, np.maximum(counts * selection - draws, 0.0) / remaining, tied


def _ranked(table: Ints, size: Ints, allowed: Mask) -> _Ranked:
    free = np.where(allowed, table, 0)
    order = np.argsort(-free, axis=1, kind="stable")
    counts = np.take_along_axis(free, order, axis=1)
    used = max(int((counts > 0).sum(axis=1).max(initial=0)), 1)
    return _Ranked(counts[:, :used], order, table.sum(axis=1) - free.sum(axis=1), size)


def _valid(counts: ArrayLike, block: ArrayLike, selectable: MaybeArray) -> tuple[Ints, Ints, Mask]:
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
    allowed = np.ones(table.shape, bool) if selectable is None else np.asarray(selectable, bool)
    if allowed.shape != table.shape:
        raise InputError(
            f"selectable must have the shape of counts {table.shape}, got {allowed.shape}"
        )
    return table, size, allowed
