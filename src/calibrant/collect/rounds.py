"""Asking in rounds: more draws only where the mode is open, and what is held after a cap."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from calibrant.clients.asks import Ask, Outcome
from calibrant.clients.dispatch.dispatcher import Dispatcher
from calibrant.collect.config import SamplingConfig
from calibrant.collect.plan import Tag
from calibrant.collect.settled import StopRule
from calibrant.collect.subjects import Extract, plain_answer


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
        tag = outcome.ask.tag
        assert isinstance(tag, Tag)
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
