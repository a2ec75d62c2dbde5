"""The value of asking one more model: what it would add to the answer, less what it costs.

For every set of models that may have been asked, ridge regressions say how likely each model is to
be right and what asking it costs. The rule looks one step ahead: ask the model whose chance less
its price exceeds the chance of the best answer at hand; else that answer is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations

import numpy as np
from msgspec import Struct
from scipy.special import expit

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.data.learned_score import Columns
from calibrant.metrics.stats.regressions import intercept_free, ridge_logistic
from calibrant.trust.deferral.answers import Aim, Answers
from calibrant.trust.near_confidence import least_squares
from calibrant.trust.policy import Row

Asked = tuple[int, ...]

_RIDGE = 5.0
_EDGE = 1e-4
_FARTHEST = 4.0
_BEND = 0.7
# An expected cost is never taken to be less than this share of the model's mean cost.
_CHEAPEST = 0.1


class StateTable(Struct, frozen=True):
    """Rows with the chances and costs of every model in every state."""

    answers: Answers
    chance: dict[Asked, Floats]
    cost: dict[Asked, Floats]


@dataclass(frozen=True, slots=True)
class AskedState(Stored):
    """What is expected once a set of models was asked: coefficients per model.

    Of the chance of being right, and of the cost of asking.
    """

    asked: Asked
    chance: Floats
    cost: Floats


@dataclass(eq=False, repr=False)
class ValueModel(Stored):
    """Chances and costs of every model, given any set of models asked, as plain coefficients.

    Parameters
    ----------
    models
        Names, cheapest first.
    aim
        What counts as a right answer.
    """

    stored = ("models", "aim", "question_", "said_", "answers_", "price_", "states_")

    models: tuple[str, ...]
    aim: Aim
    question_: Columns = field(init=False)
    said_: list[tuple[float, float]] = field(init=False)
    answers_: dict[str, Columns] = field(init=False)
    price_: Floats = field(init=False)
    states_: list[AskedState] = field(init=False)

    def fit(self, answers: Answers) -> ValueModel:
        """Learn from questions that all models have answered."""
        self.question_ = Columns().fit(answers.features)
        self.said_ = [self._learn_said(answers, place) for place in range(len(self.models))]
        self.answers_ = {name: Columns().fit(t) for name, t in answers.answer_features.items()}
        self.price_ = answers.cost.mean(axis=0)
        worth = self.aim.worth(answers.confidence, answers.correct)
        self.states_ = []
        parts = self._parts(answers)
        places = range(len(self.models))
        # All sets of models that may have been asked, smallest first.
        sizes = range(len(places) + 1)
        for request in chain.from_iterable(combinations(places, size) for size in sizes):
            design = self._design(parts, request)
            gram, penalty = design.T @ design, intercept_free(design, _RIDGE)
            chance = [ridge_logistic(design, column, penalty, gram=gram) for column in worth.T]
            cost = least_squares(design, answers.cost, penalty).T
            self.states_.append(AskedState(request, np.stack(chance), cost))
        return self

    def _learn_said(self, answers: Answers, place: int) -> tuple[float, float]:
        z = _logit(1.0 - self.aim.doubt(answers.confidence[:, place]))
        z = z[np.isfinite(z)]
        return (float(z.mean()), float(z.std()) or 1.0) if len(z) else (0.0, 1.0)

    def _parts(self, answers: Answers) -> list[Floats]:
        """Return the columns of the question, then those of each model's answer."""
        numbers, categories = self.question_.parts(answers.features)
        first = [np.ones((len(answers), 1)), categories, numbers, numbers**2]
        parts = [np.concatenate(first, axis=1)]
        for place, name in enumerate(self.models):
            z = _logit(1.0 - self.aim.doubt(answers.confidence[:, place]))
            missing = ~np.isfinite(z)
            centre, spread = self.said_[place]
            z = np.where(missing, 0.0, np.clip((z - centre) / spread, -_FARTHEST, _FARTHEST))
            more = np.zeros((len(answers), 0))
            if name in self.answers_:
                more = self.answers_[name].parts(answers.answer_features[name])[0]
            columns = [z, z**2, np.maximum(z - _BEND, 0), missing.astype(np.float64)]
            columns += [*more.T, *(more**2).T, *(more * z[:, None]).T]
            parts.append(np.column_stack(columns))
        return parts

    def _design(self, parts: list[Floats], request: Asked) -> Floats:
        columns = [parts[0], *(parts[1 + place] for place in request)]
        for first, peer in combinations(request, 2):
            # All products of a column of one with a column of the other.
            a, b = self._raw(parts, first)[:, :, None], self._raw(parts, peer)[:, None, :]
            columns.append((a * b).reshape(len(a), -1))
        return np.concatenate(columns, axis=1)

    def _raw(self, parts: list[Floats], place: int) -> Floats:
        """Return z and the numbers of one answer, without squares and products."""
        return parts[1 + place][:, [0, *range(4, self._end(place))]]

    def _end(self, place: int) -> int:
        """Return where the numbers of one answer end among its columns."""
        extra = self.answers_.get(self.models[place])
        return 4 if extra is None else 4 + len(extra.numbers_)

    def prepare(self, answers: Answers) -> StateTable:
        """Compute chances and costs of all states once, for many settings of the price."""
        parts = self._parts(answers)
        chance, cost = {}, {}
        for state in self.states_:
            design = self._design(parts, state.asked)
            chance[state.asked], cost[state.asked] = self._expected(design, state)
        return StateTable(answers, chance, cost)

    def _expected(self, design: Floats, state: AskedState) -> tuple[Floats, Floats]:
        if design.shape[1] != state.chance.shape[1]:
            rule = f"a policy's columns make {design.shape[1]} numbers of a row"
            raise InputError(f"{rule}, and its coefficients are {state.chance.shape[1]}")
        chance = np.asarray(expit(design @ state.chance.T))
        return chance, np.maximum(design @ state.cost.T, _CHEAPEST * self.price_)

    def run(self, prepared: StateTable, money: Floats, *, direct: bool) -> tuple[Ints, Floats]:
        """Return who answers and what was spent, shape (prices, rows), for many prices at once.

        Parameters
        ----------
        prepared
            The rows.
        money
            How much of a chance of being right one unit of cost is worth, shape (prices,).
        direct
            Whether the first model is chosen by the question; else the cheapest is asked first.
        """
        n = len(prepared.answers)
        cost, answer = np.zeros((len(money), n)), np.full((len(money), n), -1)
        here: dict[Asked, Mask] = {(): np.ones((len(money), n), dtype=bool)}
        for request in prepared.chance:
            if request not in here:
                continue
            step = self._next(prepared, request, money, direct=direct)
            if request:
                best = prepared.chance[request][:, list(request)].argmax(axis=1)
                stops = here[request] & (step < 0)
                answer = np.where(stops, np.array(request)[best], answer)
            for j in range(max(request) + 1 if request else 0, len(self.models)):
                going = here[request] & (step == j)
                if going.any():
                    cost += np.where(going, prepared.answers.cost[:, j], 0.0)
                    state = (*request, j)
                    here[state] = here[state] | going if state in here else going
        return answer, cost

    def _next(self, prepared: StateTable, request: Asked, money: Floats, *, direct: bool) -> Ints:
        """Return the model to ask next, -1 where the best answer at hand is given."""
        n = len(prepared.answers)
        if not request and not direct:
            return np.zeros((len(money), n), dtype=np.int64)
        first = max(request) + 1 if request else 0
        if first >= len(self.models):
            return np.full((len(money), n), -1)
        chance, cost = prepared.chance[request], prepared.cost[request]
        best = np.full((len(money), n), first)
        value = chance[:, first] - money[:, None] * cost[:, first]
        for j in range(first + 1, len(self.models)):
            peer = chance[:, j] - money[:, None] * cost[:, j]
            best = np.where(peer > value, j, best)
            value = np.maximum(value, peer)
        at_hand = chance[:, list(request)].max(axis=1) if request else np.full(n, -np.inf)
        return np.where(value > at_hand, best, -1)

    @cached_property
    def _state(self) -> dict[Asked, AskedState]:
        return {state.asked: state for state in self.states_}

    def question_one(self, features: Row) -> Floats:
        """Return the columns of one question, shape (1, columns)."""
        numbers, codes = self.question_.parts_one(features)
        categories = np.zeros(self.question_.width)
        categories[list(codes)] = 1.0
        plain = np.array(numbers)
        return np.concatenate([[1.0], categories, plain, plain**2])[None]

    def answer_one(self, at: int, confidence: float | None, row: Row) -> Floats:
        """Return the columns of one model's answer to one question."""
        z = 0.0
        if confidence is not None:
            certain = 1.0 - float(self.aim.doubt(np.array([confidence]))[0])
            centre, spread = self.said_[at]
            z = (float(_logit(np.array([certain]))[0]) - centre) / spread
            z = min(max(z, -_FARTHEST), _FARTHEST)
        extra = self.answers_.get(self.models[at])
        more = [] if extra is None else extra.parts_one(row)[0]
        columns = [z, z * z, max(z - _BEND, 0.0), float(confidence is None), *more]
        columns += [*(value * value for value in more), *(value * z for value in more)]
        return np.array([columns])

    def expected_one(
        self, question: Floats, answers: Mapping[int, Floats]
    ) -> tuple[list[float], list[float]]:
        """Return chance and cost of every model, given the answers so far."""
        state = self._state[tuple(sorted(answers))]
        nothing = np.zeros((1, 0))
        parts = [question, *(answers.get(place, nothing) for place in range(len(self.models)))]
        chance, cost = self._expected(self._design(parts, state.asked), state)
        return chance[0].tolist(), cost[0].tolist()


def _logit(share: Floats) -> Floats:
    inside = np.clip(share, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(inside / (1 - inside)))
