"""Rows that stand in a table several times: the same rows, or texts that are nearly equal."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Indices, Mask

# Fewer rows are repeated by chance too often.
LEAST_ROWS = 40
_CHANCE = 1e-3
_MOST_TIMES = 50
# Values on this grid are round: many rows share them.
_ROUND = 200
_LEAST_ODD = 20
_TWENTIETHS = 20
# So many pairs of unequal outcome must be expected for their absence to tell.
_LEAST_UNEQUAL = 7


class Repeats(NamedTuple):
    """How often every row stands there, and which rows are the second or a later one of several."""

    times: int
    again: Array


def find_repeats(confidence: Array, correct: Array) -> Repeats | None:
    """Return which rows are repeated, or None where that may be chance.

    Two signs are looked for. The counts of equal rows have a common divisor: of `d` different rows
    all counts are multiples of k with a chance of about k^-d. Or more confidences with many
    decimals have a twin than their resolution explains, and twins have the same outcome: scores of
    coarse numbers, such as shares of 7 draws, have twins of both outcomes. Rows that are repeated
    among round values alone, and not all of them, are not found.

    Parameters
    ----------
    confidence, correct
        One value per row.

    Examples
    --------
    >>> said = np.linspace(0.3, 0.9, 50)
    >>> find_repeats(np.tile(said, 3), np.ones(150)).times
    3
    >>> find_repeats(said, np.ones(50)) is None
    True
    """
    if confidence.size < LEAST_ROWS:
        return None
    # Without counts `np.unique` would load the module of masked arrays.
    outcomes = np.unique(correct, return_counts=True)[0]
    counts = np.concatenate(
        [np.unique(confidence[correct == y], return_counts=True)[1] for y in outcomes]
    )
    times = int(np.gcd.reduce(counts))
    by_chance = math.fsum(float(number) ** -counts.size for number in range(2, _MOST_TIMES))
    if times > 1 and by_chance <= _CHANCE:
        return Repeats(times, _place(confidence, correct) % times > 0)
    odd = np.abs(confidence * _ROUND - np.rint(confidence * _ROUND)) > 1e-6
    if _has_twins(np.asarray(confidence[odd], np.float64), correct[odd]):
        return Repeats(2, odd & (_place(confidence, correct) > 0))
    return None


def _place(confidence: Array, correct: Array) -> Array:
    """Return which of its equals a row is, in the order of the table, counted from 0."""
    rows = np.stack([confidence, correct], axis=1).astype(np.float64)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    new = np.ones(order.size, np.bool_)
    new[1:] = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    place = np.empty(order.size, np.intp)
    # The sort is stable.
    place[order] = np.arange(order.size) - np.flatnonzero(new)[np.cumsum(new) - 1]
    return place


def _has_twins(values: Array, correct: Array) -> bool:
    """Return whether more values have a twin, of equal outcome, than chance explains."""
    if values.size < _LEAST_ODD:
        return False
    digits = next((d for d in range(2, 13) if np.abs(values.round(d) - values).max() < 1e-12), 12)
    part = np.clip((values * _TWENTIETHS).astype(np.intp), 0, _TWENTIETHS - 1)
    rows = np.bincount(part, minlength=_TWENTIETHS)
    near = rows / values.size * np.maximum(rows - 1, 0) * 10.0**-digits * _TWENTIETHS
    expected = 1 - math.exp(-float(near.sum()))
    _, first, place, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    share = float((counts[place] > 1).mean())
    reach = 5 * math.sqrt(expected * (1 - expected) / values.size)
    if share <= expected + reach + 0.02:
        return False
    rate = (np.bincount(part, correct, _TWENTIETHS) / np.maximum(rows, 1))[part[first]]
    right = np.bincount(place, correct) / counts
    unequal = float(((right > 0) & (right < 1)).sum())
    by_chance = float((1 - rate**counts - (1 - rate) ** counts).sum())
    return by_chance >= _LEAST_UNEQUAL and unequal <= by_chance / 10


# Words drawn from each text; texts that share a pair of them are held against each other, and
# belong together where half of all agree. Without that threshold chains of pairs join most texts.
_DRAWS, _AGREEING = 20, 10
# Of texts that differ in 1 to 4 of 12 words two of three to two of five of those that belong
# together have the same two rarest words; where hardly any have, the draws would find hardly more.
_LEAST_ALIKE, _IN_ONE = 0.001, np.int64(2**62)
_SEED, _MIXER = 7, np.uint64(0x9E3779B97F4A7C15)
# Numbers that stand for words or for several of them.
Keys: TypeAlias = npt.NDArray[np.uint64]


def near_equal_texts(words: Indices | Keys, start: Indices) -> Indices:
    """Return a number for each text; those that share most of their rare words have the same.

    Parameters
    ----------
    words
        A number for each word, text after text.
    start
        Where each text starts; none is empty.

    References
    ----------
    Ioffe (2010), 'Improved consistent sampling, weighted minhash and l1 sketching'.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.integers(0, 500, (50, 12))
    >>> again = np.vstack([texts, texts])
    >>> again[50:, 0] = 500
    >>> codes = near_equal_texts(again.ravel(), np.arange(100) * 12)
    >>> bool((codes[:50] == codes[50:]).mean() > 0.9)
    True
    """
    codes = key_codes(words.astype(np.uint64))
    if _alike_at_first(codes, start) < _LEAST_ALIKE * start.size:
        return np.arange(start.size)
    draws = _drawn_words(codes, start)
    # Two draws that stand beside each other are one key.
    bands = draws.view(np.uint64)
    left, right = [], []
    for number in range(bands.shape[1]):
        text, before = _same_key(bands[:, number])
        alike = (draws[text] == draws[before]).sum(axis=1) >= _AGREEING
        left.append(text[alike])
        right.append(before[alike])
    return _joined(np.concatenate(left), np.concatenate(right), start.size)


def _alike_at_first(words: Indices, start: Indices) -> int:
    """Return how many texts have the two rarest words of another one, of words in two or more."""
    times = np.bincount(words)
    rarity = np.where(times >= 2, (times << 32) + np.arange(times.size), _IN_ONE)
    rarities = rarity.take(words)
    first = np.minimum.reduceat(rarities, start)
    lengths = np.diff(np.append(start, words.size))
    rarities[rarities == np.repeat(first, lengths)] = _IN_ONE
    second = np.minimum.reduceat(rarities, start)
    keys = first.astype(np.uint64) * _MIXER + second.astype(np.uint64)
    return int((~_key_order(keys[first < _IN_ONE])[1]).sum())


def _drawn_words(words: Indices, start: Indices) -> npt.NDArray[np.int32]:
    """Return the words drawn from each text, a column per draw: rare ones are likelier.

    A draw gives all words an exponential number over their weight; a text gives its least. Hardly
    two words have the same number, so that it names the word.
    """
    times = np.bincount(words)
    rare = np.log(start.size / times) ** 2 + 1e-9
    # A word of one text alone tells it from all others and joins none.
    weight = np.where(times >= 2, rare, 1e-12).astype(np.float32)
    rng = np.random.default_rng(_SEED)
    # The draws of a text stand beside each other: texts are held against each other by them.
    draws = np.empty((start.size, _DRAWS), np.int32)
    for number in range(_DRAWS):
        # Positive floats are in the order of their bits, and the least of whole numbers is quicker.
        order = (rng.standard_exponential(times.size, np.float32) / weight).view(np.int32)
        draws[:, number] = np.minimum.reduceat(order.take(words, mode="clip"), start)
    return draws


def _same_key(keys: Keys) -> tuple[Indices, Indices]:
    """Return rows whose key another one has before them, and the first that has it."""
    order, new = _key_order(keys)
    first = order[np.maximum.accumulate(np.where(new, np.arange(keys.size), 0))]
    return order[~new], first[~new]


def key_codes(keys: Keys) -> Indices:
    """Return a code from 0 on for each key; equal keys have the same."""
    order, new = _key_order(keys)
    codes = np.empty(keys.size, np.intp)
    codes[order] = np.cumsum(new) - 1
    return codes


def _key_order(keys: Keys) -> tuple[Indices, Mask]:
    """Return rows by key, equal ones as they stand, and where a new key begins.

    Numbers that hold a key and its row are sorted: ordering rows by their keys takes five times
    as long. The key is mixed, and loses the bits that the row needs: of a million different
    words two are one in about 1 of 20 tables.
    """
    bits = np.uint64(int(keys.size).bit_length())
    packed = np.sort((keys * _MIXER >> bits << bits) | np.arange(keys.size, dtype=np.uint64))
    key = packed >> bits
    return (packed ^ (key << bits)).astype(np.intp), np.append(True, key[1:] != key[:-1])


def _joined(left: Indices, right: Indices, count: int) -> Indices:
    """Return the components of a graph with edges between two lists of texts."""
    # Each text takes the least number that its neighbours have, until none changes: loading a
    # library of graphs takes longer than most tables.
    least = np.arange(count)
    while True:
        low = np.minimum(least[left], least[right])
        before = least.copy()
        np.minimum.at(least, left, low)
        np.minimum.at(least, right, low)
        least = least[least]
        if np.array_equal(least, before):
            return np.unique(least, return_inverse=True)[1].astype(np.intp)
