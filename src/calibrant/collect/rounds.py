"""Asking in rounds: more draws only where the mode is open, and what is held after a cap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import msgspec

from calibrant.clients.asks import Ask, Outcome
from calibrant.clients.dispatch.dispatcher import Dispatcher
from calibrant.collect.config import SamplingConfig
from calibrant.collect.plan import Extract, Tag, plain_answer
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


class Rounds:
    """The samples of one model, asked for until each question's mode is settled.

    Parameters
    ----------
    sampling
        Most and fewest draws, and how sure the mode must be.
    extract
        Finds the answer in a response; responses without one are a class of their own.
    """

    def __init__(self, sampling: SamplingConfig, extract: Extract) -> None:
        self._extract = extract
        self._rule = StopRule(
            most=sampling.draws,
            least=min(sampling.least_draws, sampling.draws),
            step=sampling.least_draws,
            chance=sampling.settle_chance,
        )
        self.saved = 0
        self._open: list[Ask] = []

    def first(self, ask: Ask) -> Ask:
        """Return the ask with as many draws as are made of every question."""
        return msgspec.structs.replace(ask, draws=self._rule.next_size(()))

    def settle(self, outcome: Outcome) -> bool:
        """Return whether the outcome is final; otherwise its question is in the next round."""
        have, problem = len(outcome.draws), outcome.problem
        wanted = have if problem is not None else self._rule.next_size(self._classes(outcome))
        if wanted > have:
            self._open.append(msgspec.structs.replace(outcome.ask, draws=wanted))
            return False
        self.saved += self._rule.most - have if problem is None else 0
        return True

    def next_round(self) -> list[Ask]:
        """Return the asks of the next round, none where all are settled."""
        asks, self._open = self._open, []
        return asks

    def _classes(self, outcome: Outcome) -> list[str | None]:
        tag = Tag.of(outcome.ask)
        answers = (self._extract(tag.question, draw.completion.text) for draw in outcome.draws)
        return [None if answer is None else plain_answer(answer) for answer in answers]


def held_asks(dispatcher: Dispatcher, asks: Sequence[Ask]) -> list[Ask]:
    """Return the asks with as many draws as the ledger holds of each, without those it lacks.

    They need no budget: after a cap is reached everything paid for still comes home.
    """
    ids = dispatcher.ledger.find([dispatcher.prepare(ask)[1] for ask in asks])
    held = dispatcher.ledger.held_by_id([id_ for id_ in ids if id_ is not None])
    found = []
    for ask, id_ in zip(asks, ids, strict=True):
        have = held.get(id_, set()) if id_ is not None else set()
        whole = next((draw for draw in range(ask.draws) if draw not in have), ask.draws)
        if whole:
            found.append(msgspec.structs.replace(ask, draws=whole))
    return found
