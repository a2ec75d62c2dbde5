"""Hit a budget or an accuracy: two neighbouring settings, and a share of questions for each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Floats


@dataclass(frozen=True, slots=True)
class Mix:
    """Settings `first` and `second`; `share` of the questions go to the second.

    `cost` and `accuracy` are those of the rows that chose it.
    """

    first: int
    second: int
    share: float
    cost: float
    accuracy: float


def hash_share(question: str, salt: str = "") -> float:
    """Return a number in [0, 1) that belongs to the question: the same today and tomorrow.

    Examples
    --------
    >>> hash_share("q1") == hash_share("q1"), 0 <= hash_share("q1") < 1
    (True, True)
    """
    digest = hashlib.blake2b(f"{salt}\x00{question}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _front(cost: Floats, accuracy: Floats) -> list[int]:
    """Return the corners of the upper hull: what mixtures of two settings can reach."""
    order = np.lexsort((-accuracy, cost))
    hull: list[int] = []
    for at in order:
        if hull and accuracy[at] <= accuracy[hull[-1]]:
            continue
        while len(hull) >= 2 and _below(hull[-2], hull[-1], int(at), cost, accuracy):
            hull.pop()
        hull.append(int(at))
    return hull


def _below(a: int, b: int, c: int, cost: Floats, accuracy: Floats) -> bool:
    """Return whether b lies below the line from a to c."""
    left = (accuracy[b] - accuracy[a]) * (cost[c] - cost[a])
    return bool(left <= (accuracy[c] - accuracy[a]) * (cost[b] - cost[a]))


def at_budget(cost: Floats, accuracy: Floats, budget: float) -> Mix | None:
    """Return the most accurate mix of mean cost at most `budget`; None where all cost more.

    Examples
    --------
    >>> at_budget(np.array([1.0, 3.0]), np.array([0.5, 0.7]), 2.0)
    Mix(first=0, second=1, share=0.5, cost=2.0, accuracy=0.6)
    """
    front = _front(cost, accuracy)
    inside = [at for at in front if cost[at] <= budget]
    if not inside:
        return None
    beyond = [at for at in front if cost[at] > budget]
    first = inside[-1]
    if not beyond:
        return Mix(first, first, 0.0, float(cost[first]), float(accuracy[first]))
    second = beyond[0]
    share = (budget - cost[first]) / (cost[second] - cost[first])
    return mixed(first, second, float(share), cost, accuracy)


def at_accuracy(cost: Floats, accuracy: Floats, target: float) -> Mix | None:
    """Return the cheapest mix that is at least as accurate as `target`; None where none is."""
    front = _front(cost, accuracy)
    enough = [at for at in front if accuracy[at] >= target]
    if not enough:
        return None
    second = enough[0]
    below = [at for at in front if accuracy[at] < target]
    if not below:
        return Mix(second, second, 0.0, float(cost[second]), float(accuracy[second]))
    first = below[-1]
    share = (target - accuracy[first]) / (accuracy[second] - accuracy[first])
    return mixed(first, second, float(share), cost, accuracy)


def mixed(first: int, second: int, share: float, cost: Floats, accuracy: Floats) -> Mix:
    """Return the mix of two settings."""

    def between(values: Floats) -> float:
        return float(round((1 - share) * values[first] + share * values[second], 12))

    return Mix(first, second, share, between(cost), between(accuracy))
