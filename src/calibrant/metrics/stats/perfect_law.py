"""Tests of perfect calibration: outcomes drawn with the stated confidences as their chances."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from calibrant.core.arrays import Floats
from calibrant.metrics.stats.cells import CellTable, ValueSums

_STEPS = 60
# Closer to 0 than this part of a standard error the saddlepoint loses its digits.
_NEAR = 0.3
# Draws of the law of the cells: a few first, and more where the sum seen is rare among them.
_FEW_DRAWS, _MORE_DRAWS, _RARE = 499, 9_999, 10
_SEED = 38
_LARGEST_P = 0.99
# Of more chances than this the law is worked out over so many stretches of the scale.
_MANY, _STRETCHES = 20_000, 4_096
_TILTS, _EVERY = np.geomspace(0.1, 40.0, 200), 10


def sum_p_value(
    factor: Floats, chance: Floats, seen: float, times: Floats, step: float = 0.0
) -> float:
    """Return the two-sided p-value of sum factor (y - chance) = seen, y being right by chance.

    Parameters
    ----------
    factor, chance
        What each row counts, and its chance of being right.
    seen
        The sum that was seen.
    times
        How many rows have this factor and chance.
    step
        Distance of the values that the sum can take: half of it is taken off.

    Returns
    -------
    float
        NaN where the sum cannot vary and is 0.

    References
    ----------
    Lugannani and Rice (1980), Advances in Applied Probability 12.

    Examples
    --------
    >>> one = np.array([1.0])
    >>> round(sum_p_value(one, np.array([0.9]), -10.0, np.array([100.0]), step=1.0), 4)
    0.0041
    """
    # Rows that are certain cannot vary: they are in the sum alone.
    varies = (chance > 0) & (chance < 1)
    if not varies.all():
        factor, chance, times = factor[varies], chance[varies], times[varies]
    sd = math.sqrt(float((times * factor * factor * chance * (1 - chance)).sum()))
    if sd < 1e-12:
        return math.nan if abs(seen) < 1e-9 else 0.0
    seen = math.copysign(max(abs(seen) - step / 2, 0.0), seen)
    if abs(seen) < _NEAR * sd:
        return 1.0 if seen == 0 else 2 * float(ndtr(-abs(seen) / sd))
    if seen < 0:
        factor, seen = -factor, -seen
    return min(1.0, 2 * _tail(factor, chance, seen, times, sd))


def joined_neighbours(chance: Floats, seen: Floats, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sums over narrow stretches of the scale where very many chances are stated.

    The law of a sum over all rows is then nearly the same, and takes a hundredth of the time.
    """
    if chance.size <= _MANY:
        return chance, seen, times
    place = (chance * _STRETCHES).astype(np.intp)
    parts = (times * chance, seen, times)
    confidence, deviation, rows = (np.bincount(place, part).astype(np.float64) for part in parts)
    subset = rows > 0
    return confidence[subset] / rows[subset], deviation[subset], rows[subset]


def _tail(factor: Floats, chance: Floats, observed: float, times: Floats, sd: float) -> float:
    most = float((times * np.where(factor > 0, factor * (1 - chance), -factor * chance)).sum())
    if observed >= most * (1 - 1e-9):
        single = np.where(factor > 0, np.log(chance), np.where(factor < 0, np.log1p(-chance), 0.0))
        return float(np.exp((times * single).sum()))
    tilt = _saddlepoint(factor, chance, observed, times, sd)
    growth, q = _tilted(factor, chance, tilt)
    level = float((times * (np.log1p(chance * (growth - 1)) - tilt * factor * chance)).sum())
    second = float((times * factor * factor * q * (1 - q)).sum())
    w = math.sqrt(max(2 * (tilt * observed - level), 1e-300))
    u = tilt * math.sqrt(max(second, 1e-300))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return min(max(float(ndtr(-w)) + density * (1 / u - 1 / w), 1e-300), 1.0)


def _tilted(factor: Floats, chance: Floats, tilt: float) -> tuple[Floats, Floats]:
    """Return what right answers weigh under a tilt, and their chance."""
    growth = np.exp(np.minimum(np.maximum(tilt * factor, -500), 500))
    right = chance * growth
    return growth, right / (1 - chance + right)


def _saddlepoint(
    factor: Floats, chance: Floats, observed: float, times: Floats, sd: float
) -> float:
    """Return the tilt under which the sum is `seen` on average, by Newton inside a bracket."""
    tilt, low, high = observed / sd**2, 0.0, math.inf
    once = times * factor
    squared = once * factor
    for _ in range(_STEPS):
        _, q = _tilted(factor, chance, tilt)
        deviation = float((once * (q - chance)).sum()) - observed
        slope = float((squared * q * (1 - q)).sum())
        low, high = (low, tilt) if deviation > 0 else (tilt, high)
        new = tilt - deviation / max(slope, 1e-300)
        if math.isfinite(high) and not low < new < high:
            new = (low + high) / 2
        elif not math.isfinite(high) and (new > 2 * tilt + 1 or new <= low):
            new = 2 * tilt + 1e-9
        if abs(new - tilt) < 1e-10 * (1 + abs(tilt)):
            return new
        tilt = new
    return tilt


def cells_p_value(sums: ValueSums, table: CellTable) -> float:
    """Return the p-value of the summed sizes of all gaps, from draws of the law of each cell.

    Cells of one value draw binomial counts, slices rounded normal ones. The draws are the same
    for the same cells, whoever asks.
    """
    rng = np.random.default_rng(_SEED)
    observed = float(np.abs(np.bincount(table.place, sums.weight * sums.value - sums.right)).sum())
    variance = sums.squares * sums.value * (1 - sums.value)
    bound = _largest_tail(observed, np.sqrt(np.bincount(table.place, variance, table.count)))
    if bound * (_MORE_DRAWS + 1) <= 1:
        # Rarer than draws could show.
        return bound
    draws, beyond = 0, 0
    for draws in (_FEW_DRAWS, _MORE_DRAWS):
        beyond = int((_drawn_sizes(sums, table, draws, rng) >= observed - 1e-9).sum())
        if beyond >= _RARE:
            return (1 + beyond) / (draws + 1)
    return min((1 + beyond) / (draws + 1), bound)


def _largest_tail(observed: float, spread: Floats) -> float:
    """Return a bound of the chance that sizes of normal gaps add up to so much (Chernoff).

    Draws alone cannot show how rare something is among very many models.
    """
    scale = float(np.sqrt((spread**2).sum()))
    if scale == 0:
        return 0.0

    def logs(tilts: Floats) -> Floats:
        tilt = tilts[:, None] * (spread / scale)
        log = (tilt**2 / 2 + np.log(2 * ndtr(tilt))).sum(axis=1)
        return np.asarray(log - tilts * observed / scale)

    # Cumulants are convex: the least lies beside the least of every few.
    near = _EVERY * int(logs(_TILTS[::_EVERY]).argmin())
    least = float(logs(_TILTS[max(near - _EVERY, 0) : near + _EVERY + 1]).min())
    return math.exp(min(max(least, -700.0), 0.0))


def _drawn_sizes(sums: ValueSums, table: CellTable, draws: int, rng: np.random.Generator) -> Floats:
    """Return the sum over cells of the sizes of drawn gaps, times the rows, draw by draw."""
    by_cell = [np.bincount(table.place, part, table.count) for part in (sums.rows, sums.weight)]
    confidence = np.bincount(table.place, sums.weight * sums.value, table.count)
    plain = sums.squares is sums.weight or bool(np.array_equal(sums.squares, sums.weight))
    single = table.single if plain else np.zeros(table.count, np.bool_)
    sizes = np.zeros(draws)
    if single.any():
        rows = by_cell[0][single].astype(np.int64)[:, None]
        chance = np.clip(confidence / by_cell[1], 0, 1)[single][:, None]
        counts = rng.binomial(rows, chance, (rows.size, draws))
        sizes += np.abs(counts - confidence[single][:, None]).sum(axis=0)
    if not single.all():
        spread = sums.squares * sums.value * (1 - sums.value)
        sd = np.sqrt(np.bincount(table.place, spread, table.count)[~single])[:, None]
        mean = confidence[~single][:, None]
        sample = mean + sd * rng.standard_normal((sd.size, draws))
        # Sums of outcomes are whole numbers.
        sizes += np.abs((np.rint(sample) if plain else sample) - mean).sum(axis=0)
    return sizes


def combined_p_value(p_values: Sequence[float]) -> float:
    """Return the Cauchy mean of p-values that may depend on each other.

    A p-value of 1 would hide all others: they are cut at 0.99. Undefined ones are left out.

    Examples
    --------
    >>> round(combined_p_value([0.01, 0.5, float("nan")]), 3)
    0.02
    """
    finite = np.array([p for p in p_values if math.isfinite(p)])
    if finite.size == 0:
        return math.nan
    cut = np.clip(finite, 1e-15, _LARGEST_P)
    return 0.5 - math.atan(float(np.tan((0.5 - cut) * math.pi).mean())) / math.pi


def rank_p_value(rows: Floats, right: Floats, area: float) -> float:
    """Return the p-value of 'confidence says nothing of the outcome': Mann and Whitney, with ties.

    Parameters
    ----------
    rows, right
        Rows and right answers by stated value.
    area
        Area under the ROC curve.

    Examples
    --------
    >>> round(rank_p_value(np.array([50.0, 50.0]), np.array([20.0, 30.0]), 0.6), 3)
    0.047
    """
    n, hits = float(rows.sum()), float(right.sum())
    misses = n - hits
    if min(hits, misses) < 2:
        return 1.0
    tie = float((rows**3 - rows).sum()) / (n * (n - 1))
    if tie >= n + 1 - 1e-9:
        return 1.0
    sd = math.sqrt(max((n + 1 - tie) / (12 * hits * misses), 1e-18))
    deviation = max(abs(area - 0.5) - 0.5 / (hits * misses), 0.0)
    return 2 * float(ndtr(-deviation / sd))


def mean_p_value(said: float, reach: float, right: int, rows: int) -> float:
    """Return the p-value of 'mean confidence is the accuracy', whatever the chances of the rows.

    Among chances with one mean the binomial has the heaviest tails (Hoeffding 1956). The mean
    confidence itself varies: it is moved towards the accuracy by its reach at 99.5 %.

    Parameters
    ----------
    said, reach
        Mean confidence, and how far it may be off; 0 where all rows say the same.
    right, rows
        Right answers and rows.

    Examples
    --------
    >>> mean_p_value(0.95, 0.0, 0, 30) < 1e-9, round(mean_p_value(0.9, 0.0, 30, 30), 3)
    (True, 0.085)
    """
    # Loaded here, for few audits: scipy takes long to load.
    from scipy import special

    share = right / rows
    if said > share:
        tail = float(special.bdtr(right, rows, min(max(said - reach, share), 1.0)))
    else:
        place = max(min(said + reach, share), 0.0)
        tail = 1.0 if right == 0 else float(special.bdtrc(right - 1, rows, place))
    return min(1.0, 2 * tail + (0.005 if reach > 0 else 0.0))


_SKEWED = 1e-3


def pearson_tail(total: float, variance: float, third: float) -> float:
    """Return the chance of a sum as large, from its variance and third moment (Pearson III).

    Examples
    --------
    >>> round(pearson_tail(1.645, 1.0, 0.0), 3), round(pearson_tail(1.645, 1.0, 1.0), 3)
    (0.05, 0.068)
    """
    # Loaded here: few small tables have columns to search, and scipy takes long to load.
    from scipy import special

    if variance <= 0:
        return 1.0
    z, skewness = total / math.sqrt(variance), third / variance**1.5
    if abs(skewness) < _SKEWED:
        return float(special.ndtr(-z))
    degrees = 8 / skewness**2
    place = degrees + math.sqrt(2 * degrees) * z
    return float(special.chdtrc(degrees, place)) if place > 0 else 1.0
