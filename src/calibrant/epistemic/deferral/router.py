"""Predictive routing: choose one model from what is known before any is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError, require_choice
from calibrant.epistemic.deferral.answers import VECTOR, Answers, gather_answers
from calibrant.epistemic.deferral.stage import Aim
from calibrant.epistemic.saved import SCHEMA, Row, Said, SavedPolicy, Step
from calibrant.epistemic.trees.tree import Tree, grow_tree
from calibrant.records.features import FeatureEncoder, as_frame

ROUTERS = ("tree", "knn")
_CHUNK = 2_048


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
    aim: Aim = field(init=False)
    price_: Floats = field(init=False)
    whole_: bool = field(init=False)

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, ROUTERS)
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
        self.whole_ = self.kind == "knn" and answers.vectors is not None
        if answers.vectors is not None and self.whole_:
            self._fit_points(answers.vectors, hits)
        elif self.kind == "knn":
            self._fit_neighbours(answers.features, hits)
        else:
            self._fit_trees(answers.features, hits)
        return self

    def _fit_trees(self, frame: pl.DataFrame, hits: Floats) -> None:
        self.encoder_ = FeatureEncoder(unseen=self.unseen).fit(frame, hits.mean(axis=1))
        matrix = self.encoder_.transform(frame)
        self.trees_ = [
            grow_tree(
                matrix,
                hits[:, position],
                min_samples_leaf=self.min_samples_leaf,
                seed=self.seed,
            )
            for position in range(len(self.models))
        ]
        self.leaf_rates_ = [tree.leaf_values() for tree in self.trees_]
        self.overall_ = hits.mean(axis=0)

    def _fit_neighbours(self, frame: pl.DataFrame, hits: Floats) -> None:
        columns = [column.name for column in frame.get_columns() if column.dtype.is_numeric()]
        if not columns:
            raise InputError(
                "nearest neighbours need numeric features", hint="give the embedding as columns"
            )
        self.encoder_ = FeatureEncoder(unseen=self.unseen).fit(
            frame.select(columns), hits.mean(axis=1)
        )
        self._fit_points(self.encoder_.transform(frame), hits)

    def _fit_points(self, matrix: Floats, hits: Floats) -> None:
        if len(hits) < self.k:
            raise InputError(f"{len(hits)} rows are fewer than the {self.k} neighbours asked for")
        # So many digits are enough for a cosine, and the saved file stays small.
        self.points_ = _directions(matrix).round(6)
        self.hits_ = hits

    def accuracy_of(self, answers: Answers) -> Floats:
        """Return the expected accuracy of each model for aligned answers, before any is asked."""
        if self.whole_ and answers.vectors is not None:
            return self._neighbours(answers.vectors)
        return self.accuracy(answers.features)

    def accuracy(self, features: Any) -> Floats:
        """Return the expected accuracy of each model, shape (queries, models)."""
        if self.whole_:
            return self._neighbours(
                np.array(as_frame(features)[VECTOR].to_list(), dtype=np.float64)
            )
        matrix = self.encoder_.transform(features)
        if self.kind == "knn":
            return self._neighbours(matrix)
        columns = []
        for tree, rates, overall in zip(self.trees_, self.leaf_rates_, self.overall_, strict=True):
            leaves = tree.apply(matrix)
            columns.append(np.where(leaves >= 0, rates[leaves], overall))
        return np.stack(columns, axis=1)

    def _neighbours(self, matrix: Floats) -> Floats:
        points = _directions(matrix)
        result = np.empty((len(points), len(self.models)))
        for start in range(0, len(points), _CHUNK):
            part = points[start : start + _CHUNK]
            distance = -part @ self.points_.T
            nearest = np.argpartition(distance, self.k - 1, axis=1)[:, : self.k]
            result[start : start + _CHUNK] = self.hits_[nearest].mean(axis=1)
        return result

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
        row = self._row(features)
        if self.kind == "knn":
            accuracy = self._neighbours(np.array([row]))[0]
        else:
            leaves = [tree.apply_one(row) for tree in self.trees_]
            accuracy = np.array(
                [
                    rates[leaf] if leaf >= 0 else overall
                    for rates, leaf, overall in zip(
                        self.leaf_rates_, leaves, self.overall_, strict=True
                    )
                ]
            )
        return Step("ask", self.models[int(np.argmax(self.willingness * accuracy - self.price_))])

    def _row(self, features: Row) -> Any:
        if not self.whole_:
            return self.encoder_.transform_one(features)
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
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": self.stored_as,
            "router": self.kind,
            "models": self.models,
            "willingness": self.willingness,
            "price": self.price_,
            "aim": self.aim.to_dict(),
            "encoder": None if self.whole_ else self.encoder_.to_dict(),
        }
        if self.kind == "knn":
            return data | {
                "k": self.k,
                "points": self.points_,
                "hits": self.hits_,
            }
        return data | {
            "overall": self.overall_,
            "trees": [tree.to_dict() for tree in self.trees_],
            "rates": self.leaf_rates_,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Router:
        """Return a router that decides as the one that `to_dict` described."""
        router = cls(data["models"], kind=data["router"], willingness=data["willingness"])
        router.aim = Aim.from_dict(data["aim"])
        router.whole_ = data["encoder"] is None
        if not router.whole_:
            router.encoder_ = FeatureEncoder.from_dict(data["encoder"])
        router.price_ = np.asarray(data["price"], dtype=np.float64)
        if router.kind == "knn":
            router.k = int(data["k"])
            for name in ("points", "hits"):
                setattr(router, f"{name}_", np.asarray(data[name], dtype=np.float64))
            return router
        router.overall_ = np.asarray(data["overall"], dtype=np.float64)
        router.trees_ = [Tree.from_dict(tree) for tree in data["trees"]]
        router.leaf_rates_ = [np.asarray(rates, dtype=np.float64) for rates in data["rates"]]
        return router


def _directions(matrix: Floats) -> Floats:
    """Return rows of length 1: their products are cosines."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(norms > 0, norms, 1.0)
