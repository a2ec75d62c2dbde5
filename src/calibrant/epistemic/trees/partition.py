"""The debiased squared mean of residuals over a fixed partition, with its variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats

Ints = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class RegionMoments:
    """Count, mean and unbiased variance (NaN below two rows) of residuals per region."""

    n: npt.NDArray[np.int64]
    mean: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class PartitionLoss:
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
    mixed, fourth, noise = _products(pooled_region, residual, count + 1, used, square, variance)
    first = 4 * float(share @ mixed) + float(share @ fourth) - value**2
    second = 2 * float(np.sum(noise * n_j / (n_j - 1))) / n**2
    return PartitionLoss(value, max(first, 0.0) / n + second, n, int(used.sum()), empty, pooled)


def _products(
    region: Ints,
    residual: Floats,
    count: int,
    used: npt.NDArray[np.bool_],
    square: Floats,
    variance: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return unbiased estimates of mu^2 s^2, mu^4 and s^4 per region.

    They are averages of products over different rows, written with power sums. Plug-in products
    will not do: the variance of a 0/1 outcome is a function of its mean, so the two are tied.
    Regions with fewer than four rows have no such average and take the plug-in.
    """
    s1, s2, s3, s4 = (
        np.bincount(region, weights=residual**power, minlength=count)[used]
        for power in (1, 2, 3, 4)
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
    products: Floats = 2 * residual * mean - square
    return products
