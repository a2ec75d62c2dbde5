"""When a question needs no more draws: its most frequent answer is settled, whenever one looks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from calibrant.core.errors import InputError


def mode_settled(draws: Sequence[Hashable], *, chance: float = 0.05) -> bool:
    """Return whether the most frequent answer is the model's most likely one, with certainty.

    Looked at after every draw and stopped at the first yes, the answer named is not the most
    likely one with probability at most `chance`, however many answers there are.

    Parameters
    ----------
    draws
        Class of each draw, in order.
    chance
        The most that the probability of a wrong name may be.

    Notes
    -----
    For the leader and each rival, the ratio of a flat prior's density at 1/2 to the posterior's
    is a martingale where the two are equally likely, so it exceeds 1 / c with probability at most
    c (Ville). A wrong name needs the true mode as beaten rival: the chance is shared among
    possible leaders by their order of appearance, 1/2, 1/6, 1/12 and so on, which sums to 1
    whatever their number. A rival that was never drawn counts with 0 draws.

    References
    ----------
    Jain et al., PAC mode estimation using PPR martingale confidence sequences (2022).

    Examples
    --------
    >>> mode_settled(["Paris"] * 8), mode_settled(["Paris"] * 9)
    (False, True)
    >>> mode_settled(["Paris"] * 6 + ["Lyon"] * 5)
    False
    """
    if not 0 < chance < 1:
        raise InputError(f"chance lies between 0 and 1, got {chance}")
    if not draws:
        return False
    counts = Counter(draws)
    order = {name: place for place, name in enumerate(counts, start=1)}
    ranked = counts.most_common(2)
    leader, most = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0
    place = order[leader]
    needed = math.log(place * (place + 1) / chance)
    return most > second and _log_ratio(most, second) >= needed


def _log_ratio(a: int, b: int) -> float:
    """Return log of 1 / density of Beta(a + 1, b + 1) at 1/2."""
    n = a + b
    log_density = math.lgamma(n + 2) - math.lgamma(a + 1) - math.lgamma(b + 1) - n * math.log(2)
    return -log_density


@dataclass(frozen=True, slots=True)
class StopRule:
    """How far to go with one question.

    Parameters
    ----------
    most
        Draws that are never exceeded.
    least
        Draws that are always made.
    step
        Draws made between two looks.
    chance
        See `mode_settled`.

    Examples
    --------
    >>> rule = StopRule(most=20, least=5, step=5)
    >>> rule.next_size(["Paris"] * 5), rule.next_size(["Paris"] * 10)
    (10, 10)
    """

    most: int
    least: int = 5
    step: int = 5
    chance: float = 0.05

    def next_size(self, draws: Sequence[Hashable]) -> int:
        """Return how many draws the question should have; as many as there are ends it."""
        have = len(draws)
        if have < self.least:
            return min(self.least, self.most)
        if have >= self.most or mode_settled(draws, chance=self.chance):
            return have
        return min(have + self.step, self.most)
