"""Settings that hit a budget, an accuracy or a guarantee, what they cost, and means over splits."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from scipy import special

from calibrant.core.arrays import Estimate, Floats


class Mix(Struct, frozen=True):
    """Settings `first` and `second`; `share` of the questions go to the second.

    `cost` and `accuracy` are those of the rows that chose it.
    """

    first: int
    second: int
    share: float
    cost: float
    accuracy: float


def hash_share(question: str) -> float:
    """Return a number in [0, 1) that belongs to the question: the same today and tomorrow.

    Examples
    --------
    >>> hash_share("q1") == hash_share("q1"), 0 <= hash_share("q1") < 1
    (True, True)
    """
    digest = hashlib.blake2b(f"\x00{question}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _front(cost: Floats, accuracy: Floats) -> list[int]:
    """Return the corners of the upper hull: what mixtures of two settings can reach."""
    order = np.lexsort((-accuracy, cost))
    hull: list[int] = []
    for place in order:
        if hull and accuracy[place] <= accuracy[hull[-1]]:
            continue
        while len(hull) >= 2 and _below(hull[-2], hull[-1], int(place), cost, accuracy):
            hull.pop()
        hull.append(int(place))
    return hull


def _below(a: int, b: int, c: int, cost: Floats, accuracy: Floats) -> bool:
    """Return whether b lies below the line from a to c."""
    remaining = (accuracy[b] - accuracy[a]) * (cost[c] - cost[a])
    return bool(remaining <= (accuracy[c] - accuracy[a]) * (cost[b] - cost[a]))


def at_budget(cost: Floats, accuracy: Floats, budget: float) -> Mix | None:
    """Return the most accurate mix of mean cost at most `budget`; None where all cost more.

    Examples
    --------
    >>> at_budget(np.array([1.0, 3.0]), np.array([0.5, 0.7]), 2.0)
    Mix(first=0, second=1, share=0.5, cost=2.0, accuracy=0.6)
    """
    front = _front(cost, accuracy)
    inside = int((cost[front] <= budget).sum())
    if not inside:
        return None
    last = front[min(inside, len(front) - 1)]
    return _neighbours(front[inside - 1], last, cost, budget, cost, accuracy)


def at_accuracy(cost: Floats, accuracy: Floats, target: float) -> Mix | None:
    """Return the cheapest mix that is at least as accurate as `target`; None where none is."""
    front = _front(cost, accuracy)
    below = int((accuracy[front] < target).sum())
    if below == len(front):
        return None
    return _neighbours(front[max(below - 1, 0)], front[below], accuracy, target, cost, accuracy)


def _neighbours(
    first: int, second: int, values: Floats, target: float, cost: Floats, accuracy: Floats
) -> Mix:
    """Return the mix of two corners of the hull whose mean of `values` is what is wanted."""
    if first == second:
        return Mix(first, first, 0.0, float(cost[first]), float(accuracy[first]))
    share = (target - values[first]) / (values[second] - values[first])
    return mixed(first, second, float(share), cost, accuracy)


def mixed(first: int, second: int, share: float, cost: Floats, accuracy: Floats) -> Mix:
    """Return the mix of two settings."""

    def between(values: Floats) -> float:
        return float(round((1 - share) * values[first] + share * values[second], 12))

    return Mix(first, second, share, between(cost), between(accuracy))


# Measured on cascades of real models: what is called 95 % needs the quantile of 99 %.
_QUANTILE = 2.575829
# A few answers of some models run on for 300 times their usual length; with the quantile of 95 % a
# budget was exceeded by over 3 % in 7 % of 299 pools.
_ONE_SIDED = 2.326348
NEXT = 2000
"""Questions ahead for which an interval of the mean cost is meant."""


def cost_estimate(spent: Floats, following: int = NEXT) -> Estimate:
    """Return the mean cost with a 95 % interval for the mean of the next questions.

    A few dear questions make costs skewed, so the upper end lies further away than the lower.

    Examples
    --------
    >>> spent = np.repeat([1.0, 50.0], [95, 5])
    >>> found = cost_estimate(spent)
    >>> round(found.value - found.low, 1) < round(found.high - found.value, 1)
    True
    """
    n, mean = len(spent), float(spent.mean())
    spread = float(spent.std(ddof=1))
    if spread == 0.0:
        return Estimate(mean, mean, mean, n=n, interval="hall")
    skewness = float(((spent - mean) ** 3).mean()) / spread**3
    arm = spread / math.sqrt(n) * math.sqrt(1 + n / following)
    low = mean - arm * _unskewed(_QUANTILE, skewness, n)
    high = mean - arm * _unskewed(-_QUANTILE, skewness, n)
    return Estimate(mean, max(low, 0.0), high, n=n, interval="hall")


def _unskewed(quantile: float, skewness: float, n: int) -> float:
    root = math.sqrt(n)
    if abs(skewness) < 1e-6:
        return quantile
    inside = 1 + skewness * (quantile - skewness / (6 * root)) / root
    return 3 * root / skewness * (float(np.cbrt(inside)) - 1)


def careful_costs(
    spent: Floats, largest: Floats, budget: float, questions: int | None = None
) -> Floats:
    """Return the mean cost of each setting, raised to its upper end against the budget.

    The difference to the budget is taken question by question: a question that is dear for the
    policy is mostly dear for the largest model too.

    Parameters
    ----------
    spent
        What each setting costs, shape (settings, questions).
    largest
        What the largest model costs on the same questions.
    budget
        Share of the largest model's cost.
    questions
        Questions that make the choice, where these are a part of them.
    """
    over = spent - budget * largest
    error = over.std(axis=1, ddof=1) / math.sqrt(questions or spent.shape[1])
    return np.asarray(over.mean(axis=1) + _ONE_SIDED * error + budget * largest.mean())


_LARGEST_BET = 0.75


def betting_p(values: Floats, mean: float) -> float:
    """Return a p value of 'the mean of values in [0, 1] is at most `mean`', valid for any n.

    Examples
    --------
    >>> betting_p(np.full(100, 0.9), 0.5) < 0.001
    True
    >>> betting_p(np.full(100, 0.4), 0.5)
    1.0
    """
    n = len(values)
    step = np.arange(1, n + 1)
    centre = (0.5 + np.cumsum(values)) / (step + 1)
    spread = (0.25 + np.cumsum((values - centre) ** 2)) / (step + 1)
    # A bet may look at earlier values only.
    before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(_LARGEST_BET / max(mean, 1e-9), np.sqrt(2 * np.log(10) / (n * before)))
    wealth = np.cumsum(np.log1p(np.maximum(bet * (values - mean), -0.999)))
    return float(np.exp(-max(float(wealth.max()), 0.0)))


def certified_settings(
    right: Floats,
    spent: Floats,
    reference: Floats,
    order: Sequence[int],
    *,
    margin: float,
    delta: float,
    budget: float | None = None,
    dearest: float | None = None,
) -> list[int]:
    """Return the settings that pass, in the order of testing, up to the first failure.

    Parameters
    ----------
    right, spent
        Whether each setting's answer is right, and what it cost, shape (settings, questions), on
        questions that chose neither the settings nor their order.
    reference
        Whether the largest model is right.
    order
        Order of testing, most promising first, fixed on other questions.
    margin
        How much less accurate than the largest model is tolerated.
    delta
        Chance that the promise fails.
    budget, dearest
        Largest mean cost that is promised too, and the most that one question can cost.
    """
    passing = []
    for place in order:
        p = betting_p((right[place] - reference + 1) / 2, (1 - margin) / 2)
        if budget is not None and dearest is not None:
            cheap = np.clip(1 - spent[place] / dearest, 0.0, 1.0)
            p = max(p, betting_p(cheap, 1 - budget / dearest))
        if p > delta:
            break
        passing.append(place)
    return passing


class SplitMeans(Struct, frozen=True):
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
