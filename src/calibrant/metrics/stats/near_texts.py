"""Texts that are nearly equal, by the rare words that they share (weighted MinHash)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Indices

# Words drawn from each text; texts that share a pair of them are held against each other, and
# belong together where half of all agree. Without that threshold chains of pairs join most texts.
_DRAWS, _AGREEING = 20, 10
_SEED = 7


def near_equal_texts(words: Indices, start: Indices) -> Indices:
    """Return a number for each text; those that share most of their rare words have the same.

    Parameters
    ----------
    words
        Number of each word, from 0 on, text after text.
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
    draws = _drawn_words(words, start)
    distinct = np.int64(words.max()) + 1
    left, right = [], []
    for number in range(0, _DRAWS, 2):
        text, before = _same_key(draws[:, number] * distinct + draws[:, number + 1])
        alike = (draws[text] == draws[before]).sum(axis=1) >= _AGREEING
        left.append(text[alike])
        right.append(before[alike])
    return _joined(np.concatenate(left), np.concatenate(right), start.size)


def _drawn_words(words: Indices, start: Indices) -> npt.NDArray[np.int32]:
    """Return the words drawn from each text, a column per draw: rare ones are likelier.

    A draw orders all words by an exponential number over their weight; a text gives its first.
    """
    times = np.bincount(words)
    rare = np.log(start.size / np.maximum(times, 1)) ** 2 + 1e-9
    # A word of one text alone tells it from all others and joins none.
    weight = np.where(times >= 2, rare, 1e-12)
    rng = np.random.default_rng(_SEED)
    # The draws of a text stand beside each other: texts are held against each other by them.
    draws = np.empty((start.size, _DRAWS), np.int32)
    rank = np.empty(times.size, np.int32)
    for number in range(_DRAWS):
        rank[np.argsort(rng.exponential(size=times.size) / weight)] = np.arange(times.size)
        draws[:, number] = np.minimum.reduceat(rank[words], start)
    return draws


def _same_key(key: npt.NDArray[np.int64]) -> tuple[Indices, Indices]:
    """Return texts whose key another one has before them, and that one."""
    order = np.argsort(key)
    ordered = key[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    first = order[np.maximum.accumulate(np.where(new, np.arange(key.size), 0))]
    return order[~new], first[~new]


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
