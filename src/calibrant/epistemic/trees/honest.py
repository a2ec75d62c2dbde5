"""Honest trees: one part of the rows draws the regions, another fills them with means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.epistemic.features import FeatureEncoder, as_frame
from calibrant.epistemic.trees.partition import (
    PartitionLoss,
    RegionMoments,
    partition_loss,
    regions,
)
from calibrant.epistemic.trees.tree import Tree, grow_tree


@dataclass(kw_only=True, eq=False, repr=False)
class HonestTree:
    """A regression tree whose leaf means come from rows that did not shape it.

    Parameters
    ----------
    min_samples_leaf, max_leaf_nodes, max_depth
        Limits of the growth, counted in rows of the fitting part; None means no limit.
    fit_share
        Share of the rows that `fit` uses for the shape; the rest gives the means.
    shrink
        Multiply each leaf mean by T / (T + v / n), where T is the debiased loss of all leaves
        (the variance of the true leaf means) and v / n the variance of this mean: the posterior
        mean for normal leaves. Noise of small leaves then costs less in decisions.
    unseen
        ``"error"``, or ``"calibration"``: rows with an unseen category are predicted 0.
    seed
        Seed of the split and of ties.

    Attributes
    ----------
    tree_ : Tree
        The regions.
    leaf_ : RegionMoments
        Count, mean and variance per leaf, from the evaluation part only.
    values_ : ndarray
        What is predicted per leaf. A leaf with fewer than two evaluation rows takes the mean of
        its nearest ancestor that has two.

    References
    ----------
    Wager and Athey, Estimation and inference of heterogeneous treatment effects using random
    forests (honesty); Melo, Varoquaux and Le Morvan, Algorithm 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> tree = HonestTree(max_leaf_nodes=4).fit(x, (x[:, 0] > 0) - 0.5)
    >>> tree.predict(np.array([[-2.0, 0.0], [2.0, 0.0]])).round(1).tolist()
    [-0.5, 0.5]
    """

    min_samples_leaf: int = 15
    max_leaf_nodes: int | None = None
    max_depth: int | None = None
    fit_share: float = 4 / 9
    shrink: bool = False
    unseen: str = "error"
    seed: int = 0
    encoder_: FeatureEncoder = field(init=False)
    tree_: Tree = field(init=False)
    leaf_: RegionMoments = field(init=False)
    values_: Floats = field(init=False)

    def fit(self, features: Any, target: npt.ArrayLike) -> HonestTree:
        """Split the rows, draw the regions on one part and fill them from the other."""
        frame = as_frame(features)
        values = np.asarray(target, dtype=np.float64)
        if len(values) * self.fit_share < 2 * self.min_samples_leaf:
            raise InputError(
                f"{len(values)} rows are fewer than two leaves of {self.min_samples_leaf} rows need"
                f" on {self.fit_share:.0%} of the rows",
                hint="label more rows, or lower min_samples_leaf",
            )
        order = named_stream(self.seed, "honest tree").permutation(len(values))
        cut = round(len(values) * self.fit_share)
        shape, fill = np.sort(order[:cut]), np.sort(order[cut:])
        return self.fit_parts(frame[shape], values[shape], frame[fill], values[fill])

    def fit_parts(
        self, shape: Any, shape_target: Floats, fill: Any, fill_target: Floats
    ) -> HonestTree:
        """Draw the regions on the first part and fill them from the second."""
        frame = as_frame(shape)
        self.encoder_ = FeatureEncoder(unseen=self.unseen).fit(frame, shape_target)
        self.tree_ = grow_tree(
            self.encoder_.transform(frame),
            shape_target,
            min_samples_leaf=self.min_samples_leaf,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            seed=self.seed,
        )
        return self._fill(self._evaluation_leaves(fill), fill_target)

    def _evaluation_leaves(self, fill: Any) -> npt.NDArray[np.int32]:
        """Return the leaf of each evaluation row; a category that only this part holds is known.

        Such rows are not new queries: they are rows of the same table, too rare to have been
        dealt into the fitting part, and they take no part in the regions.
        """
        rule, self.encoder_.unseen = self.encoder_.unseen, "calibration"
        leaves = self.tree_.apply(self.encoder_.transform(fill))
        self.encoder_.unseen = rule
        return leaves

    def _fill(self, leaves: npt.NDArray[np.int32], target: Floats) -> HonestTree:
        known = leaves >= 0
        count = self.tree_.n_leaves
        self.leaf_ = regions(leaves[known], target[known], count)
        self.loss_ = partition_loss(np.where(known, leaves, count), target, count + 1)
        self.values_ = self.leaf_.mean.copy()
        if (self.leaf_.n < 2).any():
            self._borrow_from_ancestors(leaves[known], target[known])
        if self.shrink:
            self.values_ *= self.shrinkage()
        return self

    def shrinkage(self) -> Floats:
        """Return the factor per leaf that its mean deserves; 0 where nothing is found at all."""
        signal = max(self.loss_.value, 0.0)
        seen = self.leaf_.n > 1
        if signal == 0.0 or not seen.any():
            return np.zeros(len(self.leaf_.n))
        noise = float(np.average(self.leaf_.variance[seen], weights=self.leaf_.n[seen]))
        return signal / (signal + noise / np.maximum(self.leaf_.n, 2))

    def _borrow_from_ancestors(self, leaves: npt.NDArray[np.int32], target: Floats) -> None:
        tree, parent = self.tree_, self.tree_.parents()
        nodes = np.flatnonzero(tree.feature < 0)
        n = np.zeros(len(tree.feature))
        total = np.zeros(len(tree.feature))
        n[nodes] = self.leaf_.n
        total[nodes] = np.bincount(leaves, weights=target, minlength=len(nodes))
        for node in range(len(parent) - 1, 0, -1):
            n[parent[node]] += n[node]
            total[parent[node]] += total[node]
        for leaf in np.flatnonzero(self.leaf_.n < 2):
            node = nodes[leaf]
            while n[node] < 2 and parent[node] >= 0:
                node = parent[node]
            self.values_[leaf] = total[node] / n[node] if n[node] else 0.0

    @property
    def loss(self) -> PartitionLoss:
        """The debiased squared mean over the leaves, on the evaluation part."""
        return self.loss_

    def apply(self, features: Any) -> npt.NDArray[np.int32]:
        """Return the leaf of each row, -1 for an unseen category where that is allowed."""
        return self.tree_.apply(self.encoder_.transform(features))

    def predict(self, features: Any) -> Floats:
        """Return the mean of each row's leaf; 0 for an unseen category where that is allowed."""
        leaves = self.apply(features)
        return np.where(leaves >= 0, self.values_[leaves], 0.0)

    def predict_one(self, query: Mapping[str, Any]) -> float:
        """Return the mean of one query's leaf, without the overhead of tables."""
        leaf = self.tree_.apply_one(self.encoder_.transform_one(query))
        return float(self.values_[leaf]) if leaf >= 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return what prediction needs as plain data."""
        return {
            "kind": "tree",
            "encoder": self.encoder_.to_dict(),
            "tree": self.tree_.to_dict(),
            "values": self.values_.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HonestTree:
        """Return a tree that predicts as the one that `to_dict` described, bit for bit."""
        model = cls(unseen=data["encoder"]["unseen"])
        model.encoder_ = FeatureEncoder.from_dict(data["encoder"])
        model.tree_ = Tree.from_dict(data["tree"])
        model.values_ = np.asarray(data["values"], dtype=np.float64)
        return model
