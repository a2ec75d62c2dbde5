"""Intervals in closed form."""

import math
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from scipy.special import expit, ndtri, stdtr, stdtrit

from calibrant.core.arrays import Estimate, EstimateEntry, Floats, Indices

# Steps of candidate areas.
_CANDIDATES = 4000


# Both ends of an interval.
Bounds: TypeAlias = tuple[float, float]


@lru_cache(maxsize=64)
def normal_quantile(level: float) -> float:
    """Return the two-sided normal quantile: 1.96 for 0.95."""
    return float(ndtri((1 + level) / 2))


def wilson_interval(rate: Any, n: Any, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a rate from `n` (effective) rows; never of zero width.

    Examples
    --------
    >>> low, high = wilson_interval(1.0, 20)
    >>> round(float(low), 3), float(high)
    (0.839, 1.0)
    """
    rate, n = np.asarray(rate, np.float64), np.asarray(n, np.float64)
    z2 = normal_quantile(level) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    # At rates of exactly 0 and 1 the bound equals the rate; rounding must not miss it.
    low = np.where(rate <= 0, 0.0, np.clip(centre - reach, 0.0, 1.0))
    high = np.where(rate >= 1, 1.0, np.clip(centre + reach, 0.0, 1.0))
    return low, high


def wilson_ends(rate: float, n: float, level: float) -> Bounds:
    """Return the ends of `wilson_interval` for one rate.

    Examples
    --------
    >>> low, high = wilson_ends(1.0, 20, 0.95)
    >>> round(low, 3), high
    (0.839, 1.0)
    """
    low, high = wilson_interval(rate, n, level)
    return float(low), float(high)


def wilson_estimate(rate: float, n: int, level: float = 0.95) -> Estimate:
    """Return a rate with Wilson's interval."""
    return Estimate(rate, *wilson_ends(rate, n, level), n=n, level=level, interval="wilson")


def mean_estimate(values: Floats, cluster: Indices | None = None) -> Estimate:
    """Return the mean of values with its normal interval of 95 %; rows of a cluster hang together.

    Examples
    --------
    >>> alike = mean_estimate(np.repeat([1.0, 2.0, 4.0], 5), np.repeat([0, 1, 2], 5))
    >>> round(alike.high - alike.value, 3), round(mean_estimate(np.array([1.0, 2, 4])).high, 3)
    (1.729, 4.062)
    """
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    if cluster is not None:
        sums = np.bincount(np.unique(cluster, return_inverse=True)[1], values - mean)
        error = float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1))) / len(values)
    half = 1.959964 * error
    return Estimate(mean, mean - half, mean + half, n=len(values), interval="normal")


def wald_interval(value: float, error: float, level: float, *, units: float = math.inf) -> Bounds:
    """Return value -+ quantile * error, with Student's quantile for `units` - 1 degrees."""
    quantile = student_quantile(level, units)
    return value - quantile * error, value + quantile * error


@lru_cache(maxsize=1024)
def student_quantile(level: float, units: float) -> float:
    """Return Student's two-sided quantile for `units` - 1 degrees of freedom.

    Examples
    --------
    >>> round(student_quantile(0.95, 6), 2), round(student_quantile(0.95, 1e9), 2)
    (2.57, 1.96)
    """
    if 1 < units < 1e6:
        return float(stdtrit(units - 1, (1 + level) / 2))
    return normal_quantile(level)


class MeanError(Struct, frozen=True):
    """A mean, or a difference of means, with its standard error, degrees of freedom and labels."""

    value: float
    error: float
    df: float
    n: int | None = None

    def estimate(self, *, left: float = 1.0) -> EstimateEntry:
        """Return it with its 95 % interval, where a share `left` of the items has no rating."""
        reach = float(stdtrit(self.df, 0.975)) * self.error * max(left, 0.0) ** 0.5
        low, high = self.value - reach, self.value + reach
        return EstimateEntry(value=self.value, low=low, high=high, n=self.n)

    @property
    def p_value(self) -> float:
        """Of a value of 0."""
        return float(2 * stdtr(self.df, -abs(self.value) / self.error)) if self.error > 0 else 1.0


def student_share(level: float, units: float) -> float:
    """Return what share of `units` rows a normal interval may count to be as wide as Student's.

    Examples
    --------
    >>> round(student_share(0.95, 10), 2), round(student_share(0.95, 1_000_000), 2)
    (0.75, 1.0)
    """
    return (normal_quantile(level) / student_quantile(level, max(units, 2.0))) ** 2


def skewed_interval(
    value: float, error: float, lean: float, level: float, *, units: float
) -> Bounds:
    """Return Student's interval of a mean, moved for the skewness of what is averaged.

    Where few large losses make the mean, a sample that happens to lack them shows both a low
    mean and a small error, and the plain interval ends too low. The first term of the Edgeworth
    series of Student's ratio moves both ends by lean * (2 t^2 + 1) / 6 (Johnson 1978). The width
    grows with the move as in a score interval, so that the value stays inside.

    Parameters
    ----------
    lean
        Third moment of the units over their variance and their number (`UnitInfluence.lean`).

    References
    ----------
    Johnson (1978), 'Modified t tests and confidence intervals for asymmetrical populations'.

    Examples
    --------
    >>> low, high = skewed_interval(0.03, 0.012, 0.005, 0.95, units=200)
    >>> round(low, 3), round(high, 3)
    (0.013, 0.062)
    """
    quantile = student_quantile(level, units)
    move = lean * (2 * quantile**2 + 1) / 6
    reach = math.hypot(quantile * error, move)
    return value + move - reach, value + move + reach


def joined_reach(first: float, second: float, common: float) -> float:
    """Return how far the end of a difference reaches, from the reaches of its two sides.

    Each end of the difference takes the distances to the ends of both sides, less what they have
    in common (Newcombe 1998; Zou and Donner 2008). A side whose rows are all alike shows no spread,
    but its interval has a width, and so has that of the difference.

    Parameters
    ----------
    first, second
        Distances from the values to those ends that lead away from each other.
    common
        Correlation of the two sides.

    References
    ----------
    Newcombe (1998), 'Improved confidence intervals for the difference between binomial
    proportions based on paired data'. Zou and Donner (2008), 'Construction of confidence limits
    about effect measures: a general approach'.

    Examples
    --------
    >>> joined_reach(0.3, 0.4, 0.0), round(joined_reach(0.3, 0.4, 0.5), 3)
    (0.5, 0.361)
    """
    return math.sqrt(max(first**2 + second**2 - 2 * common * first * second, 0.0))


def logit_interval(value: float, error: float, level: float, *, units: float = math.inf) -> Bounds:
    """Return the interval made on the logit scale and carried back: it stays inside (0, 1).

    Examples
    --------
    >>> low, high = logit_interval(0.9, 0.05, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.752, 0.964)
    """
    if not 0 < value < 1:
        return value, value
    centre = math.log(value / (1 - value))
    low, high = wald_interval(centre, error / (value * (1 - value)), level, units=units)
    return float(expit(low)), float(expit(high))


def unseen_share(units: int, level: float) -> float:
    """Return the share of a kind that may exist although none of `units` draws was of it.

    The exact binomial bound at the two-sided level, about 3.7/n for 95 %.

    Examples
    --------
    >>> round(unseen_share(100, 0.95), 3)
    0.036
    """
    return float(1 - ((1 - level) / 2) ** (1 / units))


# Below so many answers of the rarer outcome their spread is not known from themselves.
FEW_OUTCOMES = 20


# Few answers have few areas: many models share theirs.
@lru_cache(maxsize=4096)
def area_score_interval(area: float, right: float, wrong: float, level: float) -> Bounds:
    """Return the score interval of an area under the ROC curve that shows no variance.

    The variance at each candidate is that of exponential scores (Hanley, McNeil 1982), so an
    observed area of 1 still has a lower end below 1.

    Examples
    --------
    >>> low, high = area_score_interval(1.0, 20, 20, 0.95)
    >>> round(low, 2), high
    (0.9, 1.0)
    """
    square = normal_quantile(level) ** 2
    place, single, of_right, of_wrong = _area_candidates()
    variance = (single + (right - 1) * of_right + (wrong - 1) * of_wrong) / (right * wrong)
    inside = place[(place - area) ** 2 <= square * np.maximum(variance, 0.0) + 1e-15]
    return float(np.min(inside, initial=area)), float(np.max(inside, initial=area))


@cache
def _area_candidates() -> tuple[Floats, ...]:
    """Return candidate areas and the three parts of their variance."""
    place = np.linspace(0.0, 1.0, _CANDIDATES + 1)
    return (
        place,
        place * (1 - place),
        place / (2 - place) - place**2,
        2 * place**2 / (1 + place) - place**2,
    )


def area_interval(
    area: float,
    error: float,
    right: float,
    wrong: float,
    level: float,
    *,
    units: float = math.inf,
) -> tuple[float, float, str]:
    """Return the interval of an area under the ROC curve, and how it was made.

    Few answers of one outcome may share their scores by chance and hide the spread. The law of
    continuous scores does not depend on that: the interval then holds what it gives, too.

    Parameters
    ----------
    area, error
        The area with DeLong's standard error.
    right, wrong
        How many answers are right and wrong; of unequal weights, as many equal ones.
    level
        Coverage.
    units
        Independent units that the error was estimated from, where these are fewer.

    Examples
    --------
    >>> low, high, how = area_interval(0.8, 0.01, 98, 2, 0.95)
    >>> round(low, 2), round(high, 2), how
    (0.38, 0.92, 'score and delong')
    >>> area_interval(0.8, 0.05, 50, 50, 0.95)[2]
    'delong-logit'
    """
    rarer = max(min(right, wrong), 2.0)
    flat = error == 0 or not 0 < area < 1
    if not flat and rarer >= FEW_OUTCOMES:
        known_values = max(min(rarer, units), 2.0)
        return *logit_interval(area, error, level, units=known_values), "delong-logit"
    low, high = area_score_interval(area, right, wrong, level)
    if flat:
        return low, high, "score"
    near, far = logit_interval(area, error, level, units=max(min(rarer, units), 2.0))
    return min(low, near), max(high, far), "score and delong"
