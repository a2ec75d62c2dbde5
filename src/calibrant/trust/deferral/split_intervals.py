"""Means over random splits of the same queries, with intervals that keep to what is possible."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from calibrant.core.estimate import Estimate


@dataclass(frozen=True, slots=True)
class SplitMeans:
    """Means over splits: of a difference, of a share, of a cost.

    Splits of the same queries overlap, so their spread is multiplied by 1 / k + test / train
    instead of 1 / k.

    Parameters
    ----------
    n
        Queries in the test part of each split.
    test_share
        Share of all queries that is tested.
    level
        Coverage.

    References
    ----------
    Nadeau and Bengio, Inference for the generalization error, 2003.
    """

    n: int
    test_share: float
    level: float = 0.95

    def plain(self, values: npt.ArrayLike) -> Estimate:
        """Return the mean of what may take any sign: the corrected resampled t interval.

        Examples
        --------
        >>> print(SplitMeans(100, 0.5).plain(np.array([0.5, 0.6, 0.7])))
        0.600 [0.103, 1.097]
        """
        mean, error, quantile = self._parts(values)
        half = quantile * error
        return self._estimate(mean, mean - half, mean + half, "resampled-t")

    def share(self, values: npt.ArrayLike) -> Estimate:
        """Return the mean of something between 0 and 1, such as an accuracy.

        The score interval (Wilson) with the corrected error and Student's quantile. It counts at
        most as many queries as there are: splits that all agree do not make a rate certain.

        Examples
        --------
        >>> print(SplitMeans(20, 0.5).share(np.array([0.0, 0.0, 0.1, 0.05])))
        0.038 [0.002, 0.486]
        """
        mean, error, quantile = self._parts(values)
        if not math.isfinite(error):
            return self._estimate(mean, math.nan, math.nan, "resampled-score")
        queries = self.n / self.test_share
        spread = max(mean * (1 - mean), 0.0)
        observed = spread / error**2 if error > 0 and spread > 0 else math.inf
        size = quantile**2 / min(observed, queries)
        centre = (mean + size / 2) / (1 + size)
        reach = math.sqrt(size * spread + size**2 / 4) / (1 + size)
        # At exactly 0 and 1 the end equals the value; rounding must not miss it.
        low = min(max(centre - reach, 0.0), mean) if mean > 0 else 0.0
        high = max(min(centre + reach, 1.0), mean) if mean < 1 else 1.0
        return self._estimate(mean, low, high, "resampled-score")

    def positive(self, values: npt.ArrayLike) -> Estimate:
        """Return the mean of something above 0, by its logarithm."""
        mean, error, quantile = self._parts(values)
        if not mean > 0:
            return self._estimate(mean, mean, mean, "resampled-t")
        factor = math.exp(min(quantile * error / mean, 700.0))
        return self._estimate(mean, mean / factor, mean * factor, "resampled-t, logarithm")

    def between(self, values: npt.ArrayLike, least: npt.ArrayLike, most: npt.ArrayLike) -> Estimate:
        """Return the mean of a cost that lies between that of the cheapest and the dearest path.

        The share of the way between the two has a score interval; its ends are carried back to
        the ends of what both paths cost.

        Examples
        --------
        >>> costs = np.array([0.11, 0.15, 0.10, 0.12])
        >>> print(SplitMeans(20, 0.5).between(costs, np.full(4, 0.1), np.full(4, 1.1)))
        0.120 [0.101, 0.361]
        """
        cost, low, high = (np.asarray(part, np.float64) for part in (values, least, most))
        mean = self._parts(cost)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            mode = self.share(np.where(high > low, (cost - low) / (high - low), 0.0))
        cheap, dear = self.positive(low), self.positive(high)
        ends = (
            (1 - mode.low) * cheap.low + mode.low * dear.low,
            (1 - mode.high) * cheap.high + mode.high * dear.high,
        )
        return self._estimate(mean, min(ends[0], mean), max(ends[1], mean), "resampled-score")

    def _parts(self, values: npt.ArrayLike) -> tuple[float, float, float]:
        """Return the mean, its error corrected for the overlap, and Student's quantile."""
        given_values = np.asarray(values, np.float64)
        used = given_values[np.isfinite(given_values)]
        k = len(used)
        if k < 2:
            return float(used[0]) if k else math.nan, math.nan, math.nan
        factor = 1 / k + self.test_share / (1 - self.test_share)
        error = math.sqrt(factor * float(np.var(used, ddof=1)))
        return float(used.mean()), error, float(special.stdtrit(k - 1, 0.5 + self.level / 2))

    def _estimate(self, mean: float, low: float, high: float, kind: str) -> Estimate:
        return Estimate(mean, low, high, n=self.n, level=self.level, interval=kind)
