"""Intervals for sums of absolute values, by inverting a test along a line.

The binned calibration error is the sum of |d_b| over a vector d of mean residuals that is
nearly normal. Near d = 0 its plug-in is biased upwards and no bootstrap interval of the plug-in
covers. Here each candidate value is tested instead: the observed vector is scaled until its
absolute sum equals the candidate, noise of the variance that belongs to the candidate is added,
and the candidate is kept where the observed sum is not extreme among the simulated ones.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.arrays import Floats, Mask

# A search asks for a number at one place after the other, and ends with what it found.
Search: TypeAlias = Generator[Any, float, float]


def searched(search: Search, answer: Callable[[Any], float]) -> float:
    """Return what a search finds.

    Parameters
    ----------
    search
        A generator that yields a place and is sent the number there.
    answer
        Returns the number at a place.

    Examples
    --------
    >>> round(searched(halving(0.0, 1.0, 0.25, steps=20), lambda place: 1 - place), 3)
    0.75
    """
    try:
        place = next(search)
        while True:
            place = search.send(answer(place))
    except StopIteration as end:
        return float(end.value)


def share_of(held: Mask) -> float:
    """Return the share of draws for which something holds.

    Half a draw on either side keeps a share of exactly 0 or 1 from deciding too much.

    Examples
    --------
    >>> share_of(np.zeros(49, bool))
    0.01
    """
    return (int(np.count_nonzero(held)) + 0.5) / (held.size + 1)


def first_crossing(places: Floats, held: Mask, level: float) -> float:
    """Return the first place where a share reaches the tail, linearly between candidates.

    Parameters
    ----------
    places
        Rising candidates.
    held
        (places, draws) for which draws something holds there.
    level
        Two-sided level: the tail is half of what it leaves out.

    Examples
    --------
    >>> held = np.arange(99) < np.array([[0], [1], [4]])
    >>> round(first_crossing(np.array([0.0, 1.0, 2.0]), held, 0.95), 9)
    1.333333333
    """
    return searched(crossing(places, level), lambda place: share_of(held[place]))


def crossing(places: Sequence[float] | Floats, level: float) -> Search:
    """Look for the first place where a share reaches the tail, see `first_crossing`."""
    tail, before = (1 - level) / 2, 0.0
    for place in range(len(places)):
        value = yield place
        if value >= tail:
            if place == 0:
                return float(places[0])
            part = (tail - before) / (value - before)
            return float(places[place - 1] + part * (places[place] - places[place - 1]))
        before = value
    return float(places[-1])


def refusal(places: Sequence[float] | Floats, level: float) -> Search:
    """Look for where a share first falls below the tail, linearly between candidates.

    Parameters
    ----------
    places, level
        As for `first_crossing`.

    Examples
    --------
    >>> shares = [0.3, 0.04, 0.01]
    >>> round(searched(refusal([0.0, 1.0, 2.0], 0.95), shares.__getitem__), 9)
    1.5
    """
    tail, before = (1 - level) / 2, 0.0
    for place in range(len(places)):
        value = yield place
        if value < tail:
            if place == 0:
                return float(places[0])
            part = (tail - value) / (before - value)
            return float(places[place] - part * (places[place] - places[place - 1]))
        before = value
    return float(places[-1])


def halving(inside: float, outside: float, tail: float, steps: int = 7) -> Search:
    """Look for where a share falls from above `tail` (inside) to below it (outside), by halving.

    Linearly between the last two places.
    """
    at_inside = yield inside
    at_outside = yield outside
    if at_inside < tail:
        return inside
    if at_outside >= tail:
        return outside
    for _ in range(steps):
        middle = (inside + outside) / 2
        value = yield middle
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
