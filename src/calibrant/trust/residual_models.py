"""Models of the residual beyond one tree, and the parts of the rows that they are fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.arrays import Floats, Ints, named_stream
from calibrant.core.document import Stored
from calibrant.core.errors import InputError, require_known
from calibrant.data.features import FeatureEncoder, as_frame
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.recalibration.calibrators import CALIBRATORS, PlattCalibrator
from calibrant.trust.honest_trees import HonestTree, PartitionLoss
from calibrant.trust.policy import Row
from calibrant.trust.trees import Growth, Tree, boosted_trees

SHARES = (0.1, 0.4, 0.5)
CALIBRATION, FITTING, EVALUATION = range(3)

# Recalibration has two parameters to learn, so it needs some rows of either outcome.
_MIN_PER_OUTCOME = 2


def split_rows(
    correct: Floats, shares: Sequence[float], rng: np.random.Generator, *, units: Ints | None = None
) -> npt.NDArray[np.int8]:
    """Return the part of each row, drawn within each outcome so that the rates stay equal.

    Rows of one unit (question) always fall into one part; units are not stratified.

    Examples
    --------
    >>> part = split_rows(np.array([0.0, 1.0] * 10), (0.1, 0.4, 0.5), np.random.default_rng(0))
    >>> np.bincount(part).tolist()
    [2, 8, 10]
    """
    total = float(sum(shares))
    if min(shares) <= 0 or abs(total - 1.0) > 1e-9:
        raise InputError(f"the shares of a split must be positive and add up to 1, got {shares}")
    if units is not None:
        count = int(units.max()) + 1
        return _deal(count, shares, rng)[units]
    part = np.empty(len(correct), dtype=np.int8)
    for outcome in np.unique(correct):
        rows = np.flatnonzero(correct == outcome)
        part[rows] = _deal(len(rows), shares, rng)
    return part


def _deal(count: int, shares: Sequence[float], rng: np.random.Generator) -> npt.NDArray[np.int8]:
    edges = np.round(np.cumsum(shares) * count).astype(np.int64)
    dealt = np.searchsorted(edges[:-1], np.arange(count), side="right").astype(np.int8)
    return rng.permutation(dealt)


def three_parts(
    correct: Floats,
    rng: np.random.Generator,
    *,
    shares: Sequence[float] = SHARES,
    min_samples_leaf: int = 15,
    units: Ints | None = None,
) -> tuple[Ints, Ints, Ints]:
    """Return the rows of the calibration, fitting and evaluation part; refuse too few rows."""
    if len(shares) != 3:
        raise InputError(f"the split has three parts, got {len(shares)} shares")
    labels_needed = int(np.ceil(2 * min_samples_leaf / shares[FITTING]))
    if len(correct) < labels_needed:
        raise InputError(
            f"groups need at least {labels_needed} labelled questions; there are {len(correct)}",
            hint="label more rows, or lower min_samples_leaf",
        )
    part = split_rows(correct, shares, rng, units=units)
    calibration = correct[part == CALIBRATION]
    rarest = min(int((calibration == outcome).sum()) for outcome in (0.0, 1.0))
    if rarest < _MIN_PER_OUTCOME:
        raise InputError(
            f"the calibration part has {len(calibration)} rows with {rarest} of the rarer outcome, "
            f"recalibration needs {_MIN_PER_OUTCOME}",
            hint="label more rows, or raise the calibration share",
        )
    return tuple(np.flatnonzero(part == code) for code in range(3))  # type: ignore[return-value]


def fit_recalibrator(method: str, confidence: Floats, correct: Floats) -> Calibrator:
    """Return the recalibration map `method`, fitted; Platt scaling works on logits.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = fit_recalibrator("platt", np.array([0.9, 0.8, 0.3]), np.array([1.0, 0.0, 0.0]))
    >>> fitted.scale_
    'logit'
    """
    require_known([method], CALIBRATORS, "there is no recalibration {}")
    calibrator = PlattCalibrator(scale="logit") if method == "platt" else CALIBRATORS[method]()
    return calibrator.fit(confidence, correct)


def linear_bound(prediction: Floats, residual: Floats) -> PartitionLoss:
    """Return the lower bound E[2 g R - g^2] of E[r^2] for any fixed prediction g of r.

    It follows from E[(r - g)^2] >= 0, is an average over independent rows, and is tight where
    g = r. Used for models that are no partition.

    Examples
    --------
    >>> linear_bound(np.array([0.5, -0.5]), np.array([0.5, -0.5])).value
    0.25
    """
    terms = prediction * (2 * residual - prediction)
    n = len(terms)
    variance = float(np.var(terms, ddof=1) / n) if n > 1 else float("nan")
    return PartitionLoss(float(np.mean(terms)), variance, n, 0, 0, 0)


@dataclass(kw_only=True, eq=False, repr=False)
class _SumOfTrees(Stored):
    """Trees on one encoder, added up from a constant."""

    stored = ("encoder_", "start_", "weight_", "trees_")

    unseen: str = "error"
    seed: int = 0
    start_: float = field(init=False, default=0.0)
    weight_: float = field(init=False, default=1.0)
    loss_: PartitionLoss = field(init=False)
    encoder_: FeatureEncoder = field(init=False)
    trees_: list[Tree] = field(init=False)

    def fit(self, features: Any, target: npt.ArrayLike) -> Self:
        """Learn from all rows."""
        frame, values = as_frame(features), np.asarray(target, dtype=np.float64)
        self.encoder_ = FeatureEncoder(unseen=self.unseen).fit(frame, values)
        self._learn(self.encoder_.transform(frame), values)
        return self

    def _learn(self, matrix: Floats, target: Floats) -> None:
        raise NotImplementedError

    def fit_parts(self, shape: Any, shape_target: Floats, fill: Any, fill_target: Floats) -> Self:
        """Learn from the first part and measure the bound on the second."""
        self.fit(shape, shape_target)
        rule, self.encoder_.unseen = self.encoder_.unseen, "calibration"
        self.loss_ = linear_bound(self.predict(fill), fill_target)
        self.encoder_.unseen = rule
        return self

    def predict(self, features: Any) -> Floats:
        """Return the residual per row; 0 for an unseen category where that is allowed."""
        matrix = self.encoder_.transform(features)
        total = np.full(len(matrix), self.start_)
        for tree in self.trees_:
            leaves = tree.apply(matrix)
            total += self.weight_ * np.where(leaves >= 0, tree.leaf_values()[leaves], 0.0)
        return np.where(np.isnan(matrix).any(axis=1), 0.0, total)

    def predict_one(self, query: Row) -> float:
        """Return the residual of one query."""
        row = self.encoder_.transform_one(query)
        if any(value != value for value in row):
            return 0.0
        total = self.start_
        for tree, values in zip(self.trees_, self._leaf_values, strict=True):
            total += self.weight_ * values[tree.apply_one(row)]
        return total

    @cached_property
    def _leaf_values(self) -> list[list[float]]:
        return [tree.leaf_values().tolist() for tree in self.trees_]


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedResiduals(_SumOfTrees):
    """Boosted trees on residuals: stronger than one tree, not readable.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = BoostedResiduals(iterations=20, learning_rate=0.3).fit(x, np.sign(x[:, 0]))
    >>> bool(model.predict(np.array([[2.0]]))[0] > 0.9)
    True
    """

    stored_as = "boosting"
    iterations: int = 30
    learning_rate: float = 0.15
    depth: int = 4
    min_samples_leaf: int = 15

    def _learn(self, matrix: Floats, target: Floats) -> None:
        growth = Growth(self.depth, self.min_samples_leaf)
        self.trees_ = boosted_trees(matrix, target, growth, self.iterations, self.learning_rate)
        self.start_ = float(target.mean())


@dataclass(kw_only=True, eq=False, repr=False)
class HonestForest(_SumOfTrees):
    """Honest trees on random halves of the rows, averaged.

    Each tree draws its regions on one random half of the rows and fills them from the other,
    and sees a random subset of the features.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(900, 1))
    >>> model = HonestForest(trees=20).fit(x, np.sign(x[:, 0]))
    >>> bool(model.predict(np.array([[2.0]]))[0] > 0.9)
    True
    """

    stored_as = "forest"
    trees: int = 50
    feature_share: float = 0.7
    min_samples_leaf: int = 15

    def _learn(self, matrix: Floats, target: Floats) -> None:
        self.trees_ = [self._grow(matrix, target, number) for number in range(self.trees)]
        self.weight_ = 1.0 / self.trees

    def _grow(self, matrix: Floats, target: Floats, number: int) -> Tree:
        rng = named_stream(self.seed, "honest forest", number)
        order = rng.permutation(len(target))
        shape, fill = order[: len(order) // 2], order[len(order) // 2 :]
        width = matrix.shape[1]
        choice = np.sort(rng.permutation(width)[: math.ceil(self.feature_share * width)])
        part = pl.DataFrame({str(column): matrix[:, column] for column in choice})
        honest = HonestTree(min_samples_leaf=self.min_samples_leaf, seed=self.seed).fit_parts(
            part[shape], target[shape], part[fill], target[fill]
        )
        tree = honest.tree_
        inner = tree.feature >= 0
        feature = np.where(inner, choice[np.where(inner, tree.feature, 0)], -1).astype(np.int32)
        value = tree.value.copy()
        value[~inner] = honest.values_
        return Tree(feature, tree.threshold, tree.left, tree.right, value)


ResidualModel = HonestTree | _SumOfTrees
_KINDS = {kind.stored_as: kind for kind in (HonestTree, HonestForest, BoostedResiduals)}


def residual_model(
    kind: str,
    *,
    min_samples_leaf: int = 15,
    max_depth: int | None = None,
    unseen: str = "error",
    seed: int = 0,
) -> ResidualModel:
    """Return an unfitted model of the residual by name."""
    if kind not in ("shrunk", *_KINDS):
        kinds = ", ".join(("shrunk", *_KINDS))
        raise InputError(f"the residual model must be one of {kinds}, got {kind!r}")
    model = partial(_KINDS.get(kind, HonestTree), min_samples_leaf=min_samples_leaf)
    if kind in ("tree", "shrunk"):
        model = partial(model, shrink=kind == "shrunk", max_depth=max_depth)
    return model(unseen=unseen, seed=seed)


def residual_model_from_dict(data: Mapping[str, Any]) -> ResidualModel:
    """Return the fitted model that its `to_dict` described."""
    if data.get("kind") not in _KINDS:
        raise InputError(f"unknown kind of residual model {data.get('kind')!r} in the policy")
    return _KINDS[data["kind"]].from_dict(data)
