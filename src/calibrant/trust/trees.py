"""Regression trees as plain arrays, and boosted trees: what the features say beyond the confidence.

Single trees are grown by scikit-learn, and walked and stored by ourselves. Boosted trees of all
folds grow side by side, one histogram for all of them: with few rows a general library spends its
time between the trees, not in them. scikit-learn's histogram boosting takes 3.5 times as long with
300 rows and 2.1 times with 1,000; it is quicker from 10,000 on, but no public class of it says
where its trees split, and a policy that is saved has to know.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.document import Stored
from calibrant.data.features import FeatureEncoder

Int32s = npt.NDArray[np.int32]

# Beyond this many rows features are cut into bins first: many equal values are quick to sort.
_EXACT_UP_TO = 10_000
_MOST_QUANTILES = 256


@dataclass(frozen=True, slots=True)
class Tree(Stored):
    """A binary tree: a row goes left where its feature is at most the threshold.

    Parameters
    ----------
    feature
        Index of the feature per node, -1 at leaves.
    threshold
        Threshold per node (0 at leaves).
    left, right
        Children per node; a parent always comes before its children.
    value
        Mean target per node, in the rows the tree was grown on.
    """

    feature: Int32s
    threshold: Floats
    left: Int32s
    right: Int32s
    value: Floats
    leaf: Int32s = field(init=False)
    _walk: tuple[list[int], list[float], list[int], list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        is_leaf = self.feature < 0
        leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)
        object.__setattr__(self, "leaf", leaf)
        walk = tuple(a.tolist() for a in (self.feature, self.threshold, self.left, self.right))
        object.__setattr__(self, "_walk", walk)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int((self.feature < 0).sum())

    def apply(self, matrix: Floats) -> Int32s:
        """Return the leaf number of each row; -1 where a feature is NaN (unseen category)."""
        rows = np.arange(len(matrix))
        node = np.zeros(len(matrix), dtype=np.intp)
        while rows.size:
            rows = rows[self.feature[node[rows]] >= 0]
            here = node[rows]
            goes_left = matrix[rows, self.feature[here]] <= self.threshold[here]
            node[rows] = np.where(goes_left, self.left[here], self.right[here])
        leaves = self.leaf[node]
        leaves[np.isnan(matrix).any(axis=1)] = -1
        return leaves

    def apply_one(self, row: list[float]) -> int:
        """Return the leaf number of one row, without the overhead of arrays."""
        feature, threshold, left, right = self._walk
        if any(value != value for value in row):
            return -1
        node = 0
        while (position := feature[node]) >= 0:
            node = left[node] if row[position] <= threshold[node] else right[node]
        return int(self.leaf[node])

    def leaf_values(self) -> Floats:
        """Return the value of each leaf, in the order of leaf numbers."""
        return self.value[self.feature < 0]


def grow_tree(
    matrix: Floats,
    target: Floats,
    *,
    min_samples_leaf: int = 15,
    max_leaf_nodes: int | None = None,
    max_depth: int | None = None,
    seed: int = 0,
) -> Tree:
    """Grow a regression tree for squared error.

    Up to 10,000 rows a threshold is looked for among all values, else among 255 quantiles of each
    feature, which is nearly twice as quick.

    Parameters
    ----------
    matrix, target
        Rows of finite features and their target.
    min_samples_leaf, max_leaf_nodes, max_depth
        Limits of the growth; None means no limit.
    seed
        Breaks ties between equally good splits.

    Examples
    --------
    >>> x = np.arange(100.0).reshape(-1, 1)
    >>> tree = grow_tree(x, (x[:, 0] > 49).astype(float), min_samples_leaf=15)
    >>> tree.n_leaves, tree.apply(np.array([[3.0], [80.0]])).tolist()
    (2, [0, 1])
    """
    from sklearn.tree import DecisionTreeRegressor

    edges: list[Floats] = []
    if len(target) > _EXACT_UP_TO:
        edges = [bin_edges(column, _MOST_QUANTILES) for column in matrix.T]
        matrix = np.column_stack(list(map(np.searchsorted, edges, matrix.T)))
    limits = {"max_leaf_nodes": max_leaf_nodes, "max_depth": max_depth, "random_state": seed}
    grower = DecisionTreeRegressor(min_samples_leaf=min_samples_leaf, **limits)
    nodes = grower.fit(matrix, target).tree_
    inner = nodes.children_left >= 0
    threshold = nodes.threshold.copy()
    for feature, ends in enumerate(edges):
        splits = nodes.feature == feature
        threshold[splits] = ends[threshold[splits].astype(np.intp)]
    return Tree(
        np.where(inner, nodes.feature, -1).astype(np.int32),
        np.where(inner, threshold, 0.0),
        np.where(inner, nodes.children_left, -1).astype(np.int32),
        np.where(inner, nodes.children_right, -1).astype(np.int32),
        nodes.value[:, 0, 0].copy(),
    )


def bin_edges(values: Floats, most: int) -> Floats:
    """Return where a number is cut into bins: between its values, or at most `most` of equal size.

    Examples
    --------
    >>> bin_edges(np.array([1.0, 3.0, 3.0, 4.0]), 32).tolist()
    [2.0, 3.5]
    """
    distinct = np.unique(values)
    if len(distinct) <= most:
        return (distinct[1:] + distinct[:-1]) / 2
    return np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:-1]))


FOLDS = 5
_MOST_CATEGORIES = 250
_MOST_BINS = 32
_TREES = 20
_RATE = 0.15
_LEAST_GAIN = 1e-9
# The threshold of a node that has no split: every number is below it, and it can be saved.
_NO_SPLIT = float(np.finfo(np.float64).max)
# Categories are ordered by their mean residual; rare ones are drawn towards 0 by this many rows.
_SMOOTH = 10.0
# Entries of one histogram pass; more features are looked at in turns.
_ENTRIES = 300_000


class Growth(Struct, frozen=True):
    """How far a tree grows, and by how many rows its leaves are drawn towards 0."""

    depth: int = 3
    least_leaf: int = 40
    ridge: float = 5.0


class Encoded(Struct, frozen=True):
    """Features as codes of bins, shape (features, rows), with a mark at those of categories."""

    codes: Ints
    categorical: Mask

    def beside(self, confidence: Floats) -> Encoded:
        """Return the features with the confidence as a further number."""
        return Encoded(
            np.vstack([self.codes, _bins(confidence)]), np.append(self.categorical, False)
        )


def encode(frame: pl.DataFrame) -> Encoded:
    """Return numbers in bins and categories as codes; rare ones beyond 250 share a code.

    No outcome enters, so nothing can leak from the rows that are judged.

    Examples
    --------
    >>> encode(pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})).categorical.tolist()
    [False, True]
    """
    encoder = FeatureEncoder(unseen="calibration", most=_MOST_CATEGORIES).fit(frame)
    rows = []
    for feature, values in zip(encoder.features_, encoder.transform(frame).T, strict=True):
        rare = np.nan_to_num(values, nan=len(feature.levels or ())).astype(np.int64)
        rows.append(_bins(values) if feature.levels is None else rare)
    return Encoded(np.array(rows), np.array([f.levels is not None for f in encoder.features_]))


def _bins(values: Floats) -> Ints:
    return np.searchsorted(bin_edges(values, _MOST_BINS), values).astype(np.int64)


def boosted_residuals(features: Encoded, targets: Floats, fold: Ints) -> Floats:
    """Fit small boosted trees without each fold and return their prediction for all rows.

    Parameters
    ----------
    features
        The features.
    targets
        What is predicted, shape (folds, rows): each fold has its own.
    fold
        Fold of each row; its rows do not enter the trees of that fold.

    Returns
    -------
    ndarray
        Shape (folds, rows).

    Examples
    --------
    >>> x = np.repeat([0.0, 1.0], 500)
    >>> encoded = Encoded(np.empty((0, 1000), dtype=int), np.empty(0, dtype=bool)).beside(x)
    >>> targets = np.tile(np.where(x > 0, 0.3, -0.3), (FOLDS, 1))
    >>> found = boosted_residuals(encoded, targets, np.arange(1000) % FOLDS)
    >>> found[0, [0, -1]].round(2).tolist()
    [-0.29, 0.29]
    """
    folds, n = targets.shape
    number, row = np.nonzero(fold[None, :] != np.arange(folds)[:, None])
    learned = number * n + row
    trees = _Trees(features, number, learned, folds, Growth())
    target = targets.ravel()
    counts = np.bincount(number, minlength=folds)
    start = np.bincount(number, weights=target[learned], minlength=folds) / counts
    predicted = np.repeat(start, n)
    for _ in range(_TREES):
        predicted += _RATE * trees.grown((target - predicted)[learned]).fitted
    return predicted.reshape(folds, n)


def boosted_trees(
    matrix: Floats, target: Floats, growth: Growth, iterations: int, rate: float
) -> list[Tree]:
    """Fit boosted trees to numbers and return them, to be added up from the mean of the target.

    Examples
    --------
    >>> x = np.arange(100.0)[:, None]
    >>> (tree,) = boosted_trees(x, np.sign(x[:, 0] - 49.5), Growth(1, 15, 0.0), 1, 0.5)
    >>> float(tree.threshold[0]), tree.leaf_values().tolist()
    (49.5, [-0.5, 0.5])
    """
    cuts = [bin_edges(column, _MOST_BINS) for column in matrix.T]
    codes = np.array(list(map(np.searchsorted, cuts, matrix.T)))
    rows = np.arange(len(target))
    features = Encoded(codes, np.zeros(len(cuts), dtype=bool))
    trees = _Trees(features, np.zeros_like(rows), rows, 1, growth)
    edges = np.full((len(cuts), trees.width), _NO_SPLIT)
    for place, cut in enumerate(cuts):
        edges[place, : len(cut)] = cut
    left, boosted = target - target.mean(), []
    for _ in range(iterations):
        grown = trees.grown(left)
        left = left - rate * grown.fitted
        boosted.append(grown.tree(edges, rate))
    return boosted


class _Grown(Struct, frozen=True):
    """Trees level by level: the feature of each node, and which of its bins go right.

    `value` is that of each leaf, `fitted` that of each row.
    """

    features: list[Ints]
    right: list[Ints]
    value: Floats
    fitted: Floats

    def tree(self, edges: Floats, rate: float) -> Tree:
        """Return a single tree on numbers as arrays: the children of node i are 2i + 1, 2i + 2."""
        feature = np.concatenate(self.features)
        last = edges.shape[1] - 1 - np.concatenate(self.right).sum(axis=1)
        leaves = np.zeros(len(self.value))
        remaining = np.concatenate([2 * np.arange(len(feature)) + 1, leaves - 1])
        return Tree(
            np.concatenate([feature, leaves - 1]).astype(np.int32),
            np.concatenate([edges[feature, last], leaves]),
            remaining.astype(np.int32),
            np.where(remaining < 0, -1, remaining + 1).astype(np.int32),
            np.concatenate([np.zeros(len(feature)), rate * self.value]),
        )


class _Trees:
    """Trees of all folds at once: node numbers run over folds, then over the nodes of a tree."""

    def __init__(
        self, features: Encoded, number: Ints, learned: Ints, folds: int, growth: Growth
    ) -> None:
        count, n = features.codes.shape
        self.growth = growth
        self.folds, self.width = folds, int(features.codes.max(initial=0)) + 1
        self.codes, self.categorical = features.codes.ravel(), features.categorical
        self.n, self.number, self.learned = n, number, learned
        self.fold, self.row = np.repeat(np.arange(folds), n), np.tile(np.arange(n), folds)
        per_turn = max(1, _ENTRIES // max(len(learned), 1))
        self.turns = [
            slice(place, min(place + per_turn, count)) for place in range(0, count, per_turn)
        ]
        bins = np.ascontiguousarray(features.codes[:, learned % n])
        self.bins = [bins[t] + np.arange(len(bins[t]))[:, None] * self.width for t in self.turns]

    def grown(self, residual: Floats) -> _Grown:
        """Grow one tree per fold on the residuals."""
        depth = self.growth.depth
        node = np.zeros(self.folds * self.n, dtype=np.int64)
        features, sides = [], []
        for level in range(depth):
            place = (self.number << level) + node.take(self.learned)
            feature, right = self._splits(residual, place, self.folds << level)
            position = (self.fold << level) + node
            code = self.codes.take(feature.take(position) * self.n + self.row)
            node = 2 * node + right.take(position * self.width + code)
            features.append(feature)
            sides.append(right)
        place = (self.number << depth) + node.take(self.learned)
        total = np.bincount(place, weights=residual, minlength=self.folds << depth)
        rows = np.bincount(place, minlength=self.folds << depth)
        value = total / np.maximum(rows + self.growth.ridge, 1.0)
        return _Grown(features, sides, value, value.take((self.fold << depth) + node))

    def _splits(self, residual: Floats, place: Ints, nodes: int) -> tuple[Ints, Ints]:
        """Return per node the feature to split and, per bin of it, whether it goes right."""
        best = np.full(nodes, _LEAST_GAIN)
        feature, right = np.zeros(nodes, dtype=np.int64), np.zeros((nodes, self.width), np.int64)
        every, ridge, least = np.arange(nodes), max(self.growth.ridge, 1e-9), self.growth.least_leaf
        for turn, bins in zip(self.turns, self.bins, strict=True):
            total, count = self._histograms(residual, place, nodes, bins)
            order = self._sorted_categories(total, count, turn)
            # The largest gain of a cut, and the last bin on its left, per node and feature.
            left, rows = total.cumsum(axis=2), count.cumsum(axis=2)
            whole, others = left[:, :, -1:], rows[:, :, -1:] - rows
            gains = left**2 / (rows + ridge) + (whole - left) ** 2 / (others + ridge)
            gains -= whole**2 / (rows[:, :, -1:] + ridge)
            gains[(rows < least) | (others < least)] = -np.inf
            last = gains.argmax(axis=2)
            gain = np.take_along_axis(gains, last[:, :, None], 2)[:, :, 0]
            choice = gain.argmax(axis=1)
            better = np.flatnonzero(gain[every, choice] > best)
            choice = choice[better]
            best[better], feature[better] = gain[better, choice], choice + turn.start
            beyond = np.arange(self.width) > last[better, choice][:, None]
            if order is None:
                right[better] = beyond
            else:
                sides = np.zeros(beyond.shape, dtype=np.int64)
                np.put_along_axis(sides, order[better, choice], beyond, 1)
                right[better] = sides
        return feature, right

    def _histograms(
        self, residual: Floats, place: Ints, nodes: int, bins: Ints
    ) -> tuple[Floats, Floats]:
        shape = (nodes, len(bins), self.width)
        key = (bins + place * (len(bins) * self.width)).ravel()
        size = int(np.prod(shape))
        weights = np.broadcast_to(residual, bins.shape).ravel() if len(bins) > 1 else residual
        total = np.asarray(np.bincount(key, weights, minlength=size), dtype=np.float64)
        count = np.bincount(key, minlength=size).astype(np.float64)
        return total.reshape(shape), count.reshape(shape)

    def _sorted_categories(self, total: Floats, count: Floats, turn: slice) -> Ints | None:
        """Sort the bins of categories by their mean, in place, and return the order of all."""
        marked = np.flatnonzero(self.categorical[turn])
        if not len(marked):
            return None
        order = np.broadcast_to(np.arange(self.width), total.shape).copy()
        mean = total[:, marked] / (count[:, marked] + _SMOOTH)
        order[:, marked] = sort = np.argsort(mean, axis=2, kind="stable")
        for values in (total, count):
            values[:, marked] = np.take_along_axis(values[:, marked], sort, 2)
        return order
