"""Honest trees: one part of the rows draws the regions, another fills them; what they catch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from calibrant.core.arrays import Floats, Mask, named_stream
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.data.features import FeatureEncoder, as_frame
from calibrant.trust.policy import Row
from calibrant.trust.trees import Tree, grow_tree

Ints = npt.NDArray[np.integer]


class RegionMoments(Struct, frozen=True):
    """Count, mean and unbiased variance (NaN below two rows) of residuals per region."""

    n: npt.NDArray[np.int64]
    mean: Floats
    variance: Floats


class PartitionLoss(Struct, frozen=True):
    """The loss that a partition captures.

    Parameters
    ----------
    value
        sum_j p_j (r_j^2 - v_j / n_j); unbiased, so it can be slightly negative.
    variance
        Sampling variance of `value`, given the partition.
    n
        Rows of the evaluation part.
    regions, empty, pooled
        Regions with at least two rows; regions without a row; rows that were alone in their
        region and were pooled.
    """

    value: float
    variance: float
    n: int
    regions: int
    empty: int
    pooled: int


def regions(region: Ints, residual: Floats, count: int) -> RegionMoments:
    """Return the moments of `residual` in each of `count` regions.

    Examples
    --------
    >>> regions(np.array([0, 0, 1]), np.array([0.0, 1.0, 0.5]), 3).mean.tolist()
    [0.5, 0.5, nan]
    """
    n = np.bincount(region, minlength=count)
    total = np.bincount(region, weights=residual, minlength=count)
    mean = np.divide(total, n, out=np.full(count, np.nan), where=n > 0)
    squares = np.bincount(region, weights=(residual - mean[region]) ** 2, minlength=count)
    variance = np.divide(squares, n - 1, out=np.full(count, np.nan), where=n > 1)
    return RegionMoments(n, mean, variance)


def pool_single_rows(region: Ints, count: int) -> tuple[Ints, int]:
    """Put all rows that are alone in their region into one common region, numbered `count`.

    A union of regions is a region, and who is pooled depends on the features alone: the
    estimate stays unbiased for the pooled partition, which still bounds the loss from below.
    """
    n = np.bincount(region, minlength=count)
    alone = n[region] == 1
    return np.where(alone, count, region), int(alone.sum())


def partition_loss(region: Ints, residual: Floats, count: int) -> PartitionLoss:
    """Return the debiased loss sum_j p_j (r_j^2 - v_j / n_j) with its sampling variance.

    The variance is that of a sum of U-statistics: 4 mu^2 s^2 per region in first order, the
    spread of mu^2 between regions, and 2 s^4 / (n (n - 1)) in second order, which is all that
    is left where there is nothing to find. Squares of means are debiased in it as well.

    Parameters
    ----------
    region
        Region of each row, 0 to `count` - 1; found without looking at these residuals.
    residual
        Outcome minus recalibrated confidence.
    count
        Number of regions.

    Notes
    -----
    A row that is alone in its region has no variance: such rows are pooled into one region.
    A single row that remains alone after that contributes 0, which lowers the bound.

    References
    ----------
    Melo, Varoquaux and Le Morvan, Epistemic uncertainty quantification to improve decisions
    from black-box models, Proposition 3.

    Examples
    --------
    >>> loss = partition_loss(np.array([0, 0, 1, 1]), np.array([0.5, 0.5, -0.5, -0.5]), 2)
    >>> loss.value, loss.regions
    (0.25, 2)
    """
    empty = int((np.bincount(region, minlength=count) == 0).sum())
    pooled_region, pooled = pool_single_rows(region, count)
    moments = regions(pooled_region, residual, count + 1)
    used = moments.n > 1
    n_j, mean, variance = moments.n[used], moments.mean[used], moments.variance[used]
    n = len(residual)
    if n == 0 or not used.any():
        return PartitionLoss(float("nan"), float("nan"), n, 0, empty, pooled)
    share = n_j / n
    square = mean**2 - variance / n_j
    value = float(share @ square)
    mixed, fourth, noise = _products(pooled_region, residual, used, square, variance)
    first = 4 * float(share @ mixed) + float(share @ fourth) - value**2
    second = 2 * float(np.sum(noise * n_j / (n_j - 1))) / n**2
    return PartitionLoss(value, max(first, 0.0) / n + second, n, int(used.sum()), empty, pooled)


def _products(
    region: Ints, residual: Floats, used: Mask, square: Floats, variance: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return unbiased estimates of mu^2 s^2, mu^4 and s^4 per region.

    They are averages of products over different rows, written with power sums. Plug-in products
    will not do: the variance of a 0/1 outcome is a function of its mean, so the two are tied.
    Regions with fewer than four rows have no such average and take the plug-in.
    """
    count = len(used)
    s1, s2, s3, s4 = (
        np.bincount(region, residual**power, minlength=count)[used] for power in (1, 2, 3, 4)
    )
    n = np.bincount(region, minlength=count)[used].astype(np.float64)
    few = n < 4
    m = np.where(few, 4.0, n)
    squares = (s2**2 - s4) / (m * (m - 1))
    triples = (s1**2 * s2 - s2**2 - 2 * s1 * s3 + 2 * s4) / (m * (m - 1) * (m - 2))
    fours = (s1**4 - 6 * s1**2 * s2 + 3 * s2**2 + 8 * s1 * s3 - 6 * s4) / (
        m * (m - 1) * (m - 2) * (m - 3)
    )
    return (
        np.where(few, np.maximum(square, 0.0) * variance, triples - fours),
        np.where(few, np.maximum(square, 0.0) ** 2, fours),
        np.where(few, variance**2, squares - 2 * triples + fours),
    )


def leave_one_out_products(region: Ints, residual: Floats, count: int) -> Floats:
    """Return, per row, 2 R_i m_i - q_i: its pull on the loss, estimated from the other rows.

    m_i is the mean of the other rows of the region and q_i their debiased squared mean (0 where
    there are fewer than two others). Used for the covariance with other averages.
    """
    n = np.bincount(region, minlength=count)[region]
    total = np.bincount(region, weights=residual, minlength=count)[region]
    squares = np.bincount(region, weights=residual**2, minlength=count)[region]
    others = total - residual
    mean = np.divide(others, n - 1, out=np.zeros_like(residual), where=n > 1)
    pairs = others**2 - (squares - residual**2)
    square = np.divide(pairs, (n - 1.0) * (n - 2.0), out=np.zeros_like(residual), where=n > 2)
    return np.asarray(2 * residual * mean - square)


@dataclass(kw_only=True, eq=False, repr=False)
class HonestTree(Stored):
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

    stored_as = "tree"
    stored = ("encoder_", "tree_", "values_")

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
        leaves, count = self._evaluation_leaves(fill), self.tree_.n_leaves
        in_leaf = leaves >= 0
        self.leaf_ = regions(leaves[in_leaf], fill_target[in_leaf], count)
        self.loss_ = partition_loss(np.where(in_leaf, leaves, count), fill_target, count + 1)
        self.values_ = self.leaf_.mean.copy()
        if (self.leaf_.n < 2).any():
            self._borrow_from_ancestors(leaves[in_leaf], fill_target[in_leaf])
        if self.shrink:
            self.values_ *= self.shrinkage()
        return self

    def _evaluation_leaves(self, fill: Any) -> npt.NDArray[np.int32]:
        """Return the leaf of each evaluation row; a category that only this part holds is known.

        Such rows are not new queries: they are rows of the same table, too rare to have been
        dealt into the fitting part, and they take no part in the regions.
        """
        rule, self.encoder_.unseen = self.encoder_.unseen, "calibration"
        leaves = self.tree_.apply(self.encoder_.transform(fill))
        self.encoder_.unseen = rule
        return leaves

    def shrinkage(self) -> Floats:
        """Return the factor per leaf that its mean deserves; 0 where nothing is found at all."""
        signal = max(self.loss_.value, 0.0)
        observed = self.leaf_.n > 1
        if signal == 0.0 or not observed.any():
            return np.zeros(len(self.leaf_.n))
        noise = float(np.average(self.leaf_.variance[observed], weights=self.leaf_.n[observed]))
        return signal / (signal + noise / np.maximum(self.leaf_.n, 2))

    def _borrow_from_ancestors(self, leaves: npt.NDArray[np.int32], target: Floats) -> None:
        tree = self.tree_
        inner, parent = np.flatnonzero(tree.feature >= 0), np.full(len(tree.feature), -1)
        parent[tree.left[inner]] = parent[tree.right[inner]] = inner
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

    def apply(self, features: Any) -> npt.NDArray[np.int32]:
        """Return the leaf of each row, -1 for an unseen category where that is allowed."""
        return self.tree_.apply(self.encoder_.transform(features))

    def predict(self, features: Any) -> Floats:
        """Return the mean of each row's leaf; 0 for an unseen category where that is allowed."""
        leaves = self.apply(features)
        return np.where(leaves >= 0, self.values_[leaves], 0.0)

    def predict_one(self, query: Row) -> float:
        """Return the mean of one query's leaf, without the overhead of tables."""
        leaf = self.tree_.apply_one(self.encoder_.transform_one(query))
        return float(self.values_[leaf]) if leaf >= 0 else 0.0
