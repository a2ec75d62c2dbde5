"""Special functions of a few numbers, without the quarter of a second that scipy's take to load.

More numbers, and degrees of freedom that a small table cannot have, are left to `scipy.special`,
whose names these functions bear; a test holds them against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from statistics import NormalDist
from typing import Any

import numpy as np

FEW = 1000
"""So many numbers, or degrees of freedom, are worked on here."""
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_NORMAL = NormalDist()
_ROOT = math.sqrt(2)


def _for_few(function: Callable[..., float]) -> Callable[..., Any]:
    """Work on numbers one by one, or have scipy work on many or large ones."""

    @wraps(function)
    def of(*given: Any) -> Any:
        last = given[-1]
        alone = isinstance(last, float) or np.ndim(last) == 0
        if (not alone and np.size(last) > FEW) or (len(given) > 1 and given[0] > FEW):
            # Loaded here: a table of so many rows takes longer than this.
            from scipy import special

            return getattr(special, function.__name__)(*given)
        if alone:
            return function(*map(float, given))
        numbers = np.asarray(last, dtype=np.float64)
        values = [function(*given[:-1], number) for number in numbers.ravel().tolist()]
        return np.array(values).reshape(numbers.shape)

    return of


@_for_few
def ndtr(z: float) -> float:
    """Return the share of a normal law below z."""
    return 0.5 * math.erfc(-z / _ROOT)


@_for_few
def erf(z: float) -> float:
    """Return the error function."""
    return math.erf(z)


@_for_few
def ndtri(share: float) -> float:
    """Return below what this share of a normal law lies."""
    if 0 < share < 1:
        return _NORMAL.inv_cdf(share)
    return {0.0: -math.inf, 1.0: math.inf}.get(share, math.nan)


@_for_few
def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function, of positive numbers."""
    passed = 0.0
    while x < 12:
        passed, x = passed + 1 / x, x + 1
    rest = sum(part / x ** (2 * k) for k, part in enumerate(_SERIES, start=1))
    return math.log(x) - 1 / (2 * x) - rest - passed


@_for_few
def stdtr(degrees: float, t: float) -> float:
    """Return the share of Student's law below t."""
    if math.isnan(t) or not degrees > 0:
        return math.nan
    whole = degrees + t * t
    above = t * t / whole if whole < math.inf else 1.0
    tail = 0.5 * _beta_share(degrees / 2, 0.5, degrees / whole, above)
    return tail if t < 0 else 1 - tail


# Many models of a table have equally many rows.
@_for_few
@lru_cache(maxsize=1000)
def stdtrit(degrees: float, share: float) -> float:
    """Return below what this share of Student's law lies."""
    outside = min(share, 1 - share)
    if not 0 < outside < 0.5 or not degrees > 0:
        return {0.0: -math.inf, 0.5: 0.0, 1.0: math.inf}.get(share, math.nan)
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale -= math.log(degrees * math.pi) / 2
    # Newton's steps on the logarithms of t and of the tail, which are nearly on a line: from the
    # second step on they come from one side.
    t = -_NORMAL.inv_cdf(outside)
    for _ in range(60):
        tail = stdtr(degrees, -t)
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = math.log(tail / outside) * tail / (t * density)
        t *= math.exp(step)
        if abs(step) < 1e-14:
            break
    return t if share > 0.5 else -t


def betainc(a: float, b: float, x: float) -> float:
    """Return the share of a beta law below x; of large laws scipy knows it better."""
    if max(a, b) > FEW:
        from scipy import special

        return float(special.betainc(a, b, x))
    x = min(max(x, 0.0), 1.0)
    return _beta_share(a, b, x, 1 - x)


def _beta_share(a: float, b: float, x: float, rest: float) -> float:
    """Return the share of a beta law below x by its continued fraction (Lentz's algorithm).

    `rest` is 1 - x: whoever knows it better than the difference gives it.
    """
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(b, a, rest, x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log(rest)) / a
    upper, lower = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = lower
    for m in range(1, 10 * FEW):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            lower, upper = 1 / (1 + part * lower), 1 + part / upper
            fraction *= lower * upper
        if abs(lower * upper - 1) < 1e-16:
            break
    return front * fraction


def expit(x: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def logit(share: Any) -> Any:
    """Return the log-odds of a probability inside (0, 1)."""
    return np.log(share) - np.log1p(-share)


def xlogy(x: Any, y: Any) -> Any:
    """Return x log y, which is 0 where x is."""
    if np.size(x) > FEW:
        from scipy import special

        return special.xlogy(x, y)
    with np.errstate(divide="ignore"):
        return np.where(x == 0, 0.0, x * np.log(np.where(x == 0, 1.0, y)))
