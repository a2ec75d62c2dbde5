"""Predictive routing: choose one model from what is known before any is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import polars.selectors as cs

from calibrant.core.arrays import Floats, Ints
from calibrant.core.document import Stored
from calibrant.core.errors import InputError, require_choice
from calibrant.data.features import FeatureEncoder, as_frame
from calibrant.trust.deferral.answers import VECTOR, Aim, Answers, gather_answers
from calibrant.trust.near_confidence import directions
from calibrant.trust.policy import SCHEMA, Row, Said, SavedPolicy, Step
from calibrant.trust.trees import Tree, grow_tree

_CHUNK = 2_048


@dataclass(frozen=True, slots=True)
class Trees(Stored):
    """A regression tree of being right per model; `overall` is for categories not seen."""

    encoder: FeatureEncoder
    overall: Floats
    trees: list[Tree]
    rates: list[Floats]

    def accuracy(self, matrix: Floats) -> Floats:
        """Return the expected accuracy of each model, shape (queries, models)."""
        columns = []
        for tree, rates, overall in zip(self.trees, self.rates, self.overall, strict=True):
            leaves = tree.apply(matrix)
            columns.append(np.where(leaves >= 0, rates[leaves], overall))
        return np.stack(columns, axis=1)


@dataclass(frozen=True, slots=True)
class Neighbours(Stored):
    """The share of the `k` nearest queries that each model got right; `points` have length 1."""

    encoder: FeatureEncoder | None
    k: int
    points: Floats
    hits: Floats

    def accuracy(self, matrix: Floats) -> Floats:
        """Return the expected accuracy of each model, shape (queries, models)."""
        points = directions(matrix)
        result = np.empty((len(points), self.hits.shape[1]))
        for start in range(0, len(points), _CHUNK):
            distance = -points[start : start + _CHUNK] @ self.points.T
            nearest = np.argpartition(distance, self.k - 1, axis=1)[:, : self.k]
            result[start : start + _CHUNK] = self.hits[nearest].mean(axis=1)
        return result


_LEARNED: dict[str, type[Trees | Neighbours]] = {"tree": Trees, "knn": Neighbours}


@dataclass(eq=False, repr=False)
class Router(SavedPolicy):
    """Choose the model with the best balance of expected accuracy and price.

    The choice is argmax over models of willingness x accuracy - price, before any is asked.

    Parameters
    ----------
    models
        Names, cheapest first.
    kind
        ``"tree"``: a regression tree of being right per model; ``"knn"``: the share of the `k`
        nearest queries that the model got right, by the cosine of their embeddings, or of their
        numeric features where there are none.
    willingness
        What a right answer is worth, in the unit of the price.
    k
        Neighbours of ``"knn"``.
    min_samples_leaf, unseen, seed
        Options of the trees, as in `HonestTree`.
    decision, costs, threshold
        As in `Cascade`.

    References
    ----------
    Shnitzer et al. 2023, Large language model routing with benchmark datasets; Hu et al. 2024
    (k = 40 neighbours).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.integers(0, 2, size=2000)
    >>> right = {"small": rng.random(2000) < 0.9 - 0.6 * hard, "large": rng.random(2000) < 0.9}
    >>> router = Router(["small", "large"], willingness=30.0)
    >>> router = router.fit({"hard": hard}, right, price={"small": 1, "large": 10})
    >>> router.route({"hard": 0}).model, router.route({"hard": 1}).model
    ('small', 'large')
    """

    stored_as = "router"

    models: Sequence[str]
    _: KW_ONLY
    kind: str = "tree"
    willingness: float = 1.0
    k: int = 40
    min_samples_leaf: int = 15
    decision: str = "answer"
    costs: Any = None
    threshold: float | None = None
    unseen: str = "error"
    seed: int = 0

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, _LEARNED)
        self.models, self.aim = list(self.models), Aim.of(self)

    def fit(self, features: Any, correct: Any, *, price: Any, confidence: Any = None) -> Router:
        """Learn each model's accuracy; `confidence` is needed for the decision ``"class"``."""
        frame = as_frame(features)
        if confidence is None:
            if self.aim.decision == "class":
                raise InputError("the decision 'class' is taken by the confidence: give it")
            confidence = np.full((frame.height, len(self.models)), np.nan)
        return self.fit_answers(gather_answers(self.models, frame, confidence, correct, price))

    def fit_answers(self, answers: Answers) -> Router:
        """Learn each model's accuracy from aligned answers."""
        hits = self.aim.worth(answers.confidence, answers.correct)
        self.price_ = answers.cost.mean(axis=0)
        fit = self._fit_trees if self.kind == "tree" else self._fit_neighbours
        self.learned_ = fit(answers, hits)
        return self

    def _fit_trees(self, answers: Answers, hits: Floats) -> Trees | Neighbours:
        encoder = FeatureEncoder(unseen=self.unseen).fit(answers.features, hits.mean(axis=1))
        matrix, least = encoder.transform(answers.features), self.min_samples_leaf
        trees = [grow_tree(matrix, hit, min_samples_leaf=least, seed=self.seed) for hit in hits.T]
        return Trees(encoder, hits.mean(axis=0), trees, [tree.leaf_values() for tree in trees])

    def _fit_neighbours(self, answers: Answers, hits: Floats) -> Trees | Neighbours:
        encoder, matrix = None, answers.vectors
        if matrix is None:
            numbers = answers.features.select(cs.numeric())
            if not numbers.width:
                raise InputError(
                    "nearest neighbours need numeric features", hint="give the embedding as columns"
                )
            encoder = FeatureEncoder(unseen=self.unseen).fit(numbers, hits.mean(axis=1))
            matrix = encoder.transform(answers.features)
        if len(hits) < self.k:
            raise InputError(f"{len(hits)} rows are fewer than the {self.k} neighbours asked for")
        # So many digits are enough for a cosine, and the saved file stays small.
        return Neighbours(encoder, self.k, directions(matrix).round(6), hits)

    def accuracy_of(self, answers: Answers) -> Floats:
        """Return the expected accuracy of each model for aligned answers, before any is asked."""
        if self.learned_.encoder is None and answers.vectors is not None:
            return self.learned_.accuracy(answers.vectors)
        return self.accuracy(answers.features)

    def accuracy(self, features: Any) -> Floats:
        """Return the expected accuracy of each model, shape (queries, models)."""
        encoder = self.learned_.encoder
        if encoder is not None:
            return self.learned_.accuracy(encoder.transform(features))
        return self.learned_.accuracy(np.array(as_frame(features)[VECTOR].to_list(), np.float64))

    def choose(self, features: Any, *, willingness: float | None = None) -> Ints:
        """Return the position of the model that each query goes to."""
        worth = self.willingness if willingness is None else willingness
        balance = worth * self.accuracy(features) - self.price_
        return np.asarray(np.argmax(balance, axis=1))

    def route(
        self, features: Row, answers_so_far: Mapping[str, Said] = MappingProxyType({})
    ) -> Step:
        """Return which model to ask, or to answer with it once it was asked."""
        if answers_so_far:
            return Step("answer", next(iter(answers_so_far)))
        accuracy = self.learned_.accuracy(np.array([self._row(features)]))[0]
        return Step("ask", self.models[int(np.argmax(self.willingness * accuracy - self.price_))])

    def _row(self, features: Row) -> Any:
        if self.learned_.encoder is not None:
            return self.learned_.encoder.transform_one(features)
        if features.get(VECTOR) is None:
            raise InputError(f"the question has no {VECTOR!r}: the vector of its text")
        return np.asarray(features[VECTOR], dtype=np.float64)

    def with_dial(self, dial: Any) -> Router:
        """Return the fitted policy with another willingness to pay."""
        router = copy(self)
        router.willingness = float(dial)
        return router

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        return {
            "schema": SCHEMA,
            "kind": self.stored_as,
            "router": self.kind,
            "models": self.models,
            "willingness": self.willingness,
            "price": self.price_,
            "aim": self.aim.to_dict(),
            **self.learned_.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Router:
        """Return a router that decides as the one that `to_dict` described."""
        router = cls(data["models"], kind=data["router"], willingness=data["willingness"])
        router.aim = Aim.from_dict(data["aim"])
        router.price_ = np.asarray(data["price"], dtype=np.float64)
        router.learned_ = _LEARNED[router.kind].from_dict(data)
        return router
