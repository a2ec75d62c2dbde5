"""What perfect calibration would show: Spiegelhalter's z and the law of the binned error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike
from scipy.special import erfc

from calibrant.core.arrays import Floats, MaybeArray
from calibrant.metrics.binned import bins_of
from calibrant.metrics.inputs import Checked, check, undefined
from calibrant.metrics.stats.binning import PIECE

# What is left out of a law beyond its last value; rounding in the transforms is larger.
NEGLIGIBLE = 1e-18
# Tilts tried for the bound on a sum, in units of one over its standard deviation.
TILTS = np.geomspace(0.5, 40.0, 12)


class Atoms(NamedTuple):
    """A discrete law: values of at least 0 and their probabilities."""

    value: Floats
    probability: Floats


class Lattice(NamedTuple):
    """A law on the multiples of `step`: `probability[i]` belongs to ``i * step``."""

    step: float
    probability: Floats

    def at_least(self, place: int) -> float:
        """Return the probability of `place` and everything above it."""
        return float(self.probability[max(place, 0) :].sum())


def count_law(trials: Floats, chance: Floats) -> tuple[int, Floats]:
    """Return the law of a sum of binomial counts: its first value and the probabilities.

    Values that together have a probability below 1e-18 (Bernstein's bound) are left out, so a
    million trials need some thousand numbers.

    Parameters
    ----------
    trials, chance
        Trials and chance of success of each binomial, shape (k,).

    Examples
    --------
    >>> import numpy as np
    >>> first, law = count_law(np.array([2.0, 1.0]), np.array([0.5, 0.5]))
    >>> first, law.round(3).tolist()
    (0, [0.125, 0.375, 0.375, 0.125])
    """
    mean = float(trials @ chance)
    variance = float(trials @ (chance * (1 - chance)))
    # How far the sum strays with a probability of 1e-18 (Bernstein).
    depth = math.log(2 / NEGLIGIBLE)
    reach = depth / 3 + math.sqrt(depth**2 / 9 + 2 * depth * variance)
    first = max(math.floor(mean - reach), 0)
    last = min(math.ceil(mean + reach), round(float(trials.sum())))
    size = last - first + 1
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    dip = 2 * np.sin(angle / 2) ** 2
    # The characteristic function is at most exp(-variance * dip): the rest stays 0.
    observed = int((variance * dip < -math.log(NEGLIGIBLE)).sum())
    angle, dip = angle[:observed], dip[:observed]
    # Log and angle apart, each count centred at its mean: a power would lose n times more digits.
    n, p = trials[:, None], chance[:, None]
    # A chance of 1/2 leaves nothing at half a turn.
    with np.errstate(divide="ignore"):
        size_log = (n / 2 * np.log1p(-2 * p * (1 - p) * dip)).sum(axis=0)
    flipped = n * (np.arctan2(p * np.sin(angle), 1 - p * dip) - p * angle)
    phase = (mean - first) * angle + flipped.sum(axis=0)
    spectrum = np.zeros(size // 2 + 1, np.complex128)
    spectrum[:observed] = np.exp(size_log - 1j * phase)
    law = np.fft.irfft(spectrum, size) if size > 1 else np.ones(1)
    return first, np.maximum(law, 0.0)


def half_normal_atoms(spread: float) -> Atoms:
    """Return the law of the absolute value of a normal error, in fine steps up to 9 spreads.

    Examples
    --------
    >>> atoms = half_normal_atoms(2.0)
    >>> round(float(atoms.value @ atoms.probability), 3)
    1.596
    """
    if spread == 0:
        return Atoms(np.zeros(1), np.ones(1))
    value = np.linspace(0.0, 9.0, 4001)
    edges = np.concatenate([[0.0], (value[1:] + value[:-1]) / 2, [np.inf]])
    # From the upper tail, so that small probabilities keep their digits.
    beyond = erfc(edges / math.sqrt(2))
    return Atoms(value * spread, -np.diff(beyond))


def sum_law(parts: Sequence[Atoms], points: int) -> Lattice:
    """Return the law of a sum of independent parts, each rounded to the lattice.

    Parameters
    ----------
    parts
        The laws of the parts.
    points
        Lattice points, a power of two. The step is chosen so that the sum stays below the last
        point but for a probability of 1e-16 (Chernoff's bound).

    Examples
    --------
    >>> import numpy as np
    >>> coin = Atoms(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> law = sum_law([coin, coin], 1024)
    >>> round(law.at_least(round(1.9 / law.step)), 3)
    0.25
    """
    value, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Rounding may add half a step to each part.
    step = _most(value, probability, [part.value.size for part in parts]) / (
        points - 1 - len(parts)
    )
    product = np.ones(points // 2 + 1, np.complex128)
    for value, probability in parts:
        place = np.minimum(np.rint(value / step).astype(np.intp), points - 1)
        product *= np.fft.rfft(np.bincount(place, probability, points))
    return Lattice(step, np.maximum(np.fft.irfft(product, points), 0.0))


def _most(value: Floats, probability: Floats, sizes: Sequence[int]) -> float:
    """Return a value that the sum exceeds with a probability of at most 1e-16.

    Parameters
    ----------
    value, probability
        The laws of the parts, one after the other.
    sizes
        How many values each part has.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    whole = float(np.maximum.reduceat(value, starts).sum())
    squares = float(value**2 @ probability)
    if squares <= 0:
        return whole if whole > 0 else 1.0
    tilts = TILTS[:, None] / math.sqrt(squares)
    # A probability of 0 has the logarithm -inf and adds nothing.
    with np.errstate(divide="ignore"):
        exponent = tilts * value + np.log(probability)
    largest = np.maximum.reduceat(exponent, starts, axis=1)
    sums = np.add.reduceat(np.exp(exponent - np.repeat(largest, sizes, axis=1)), starts, axis=1)
    logs = (largest + np.log(sums)).sum(axis=1)
    return min(whole, float(((logs + math.log(1e16)) / tilts[:, 0]).min()))


# Confidences closer than 1/512 share a cell and take its mean. That overstates the variance of
# an outcome by less than 4e-7, which can only raise the p-value.
CELLS = 512
# Lattice points of a computed law.
POINTS = 32_768
# Below this a p-value is decided by rounding in the transforms.
LEAST_P = 1e-10


def spiegelhalter_z(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    r"""Return Spiegelhalter's z, any number; standard normal under perfect calibration.

    :math:`z = \sum (y - c)(1 - 2c) / \sqrt{\sum (1 - 2c)^2 c (1 - c)}`. Values beyond -+1.96
    speak against calibration at the 5 % level; positive values mean that the Brier score is
    worse than the confidences promise.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes 0 or 1, shape (n,).
    weights
        Importance of each row, which is one draw whatever its weight; only ratios matter.

    Returns
    -------
    float
        NaN with `UndefinedMetricWarning` where every confidence is 0, 0.5 or 1.

    References
    ----------
    Spiegelhalter (1986), 'Probabilistic prediction in patient management and clinical trials'.

    Examples
    --------
    >>> round(spiegelhalter_z([0.8, 0.8, 0.8, 0.8], [1, 1, 0, 0]), 3)
    1.5
    """
    data = check(confidence, correct, weights, binary=True)
    score, variance = 0.0, 0.0
    for start in range(0, data.rows, PIECE):
        piece = slice(start, start + PIECE)
        c = data.confidence[piece].astype(np.float64, copy=False)
        w = np.ones(1) if data.weights is None else data.weights[piece]
        tilt = 1 - 2 * c
        score += float(((data.correct[piece] - c) * tilt * w).sum())
        variance += float((tilt * tilt * c * (1 - c) * w * w).sum())
    if variance <= 0:
        return undefined("spiegelhalter_z", "every confidence is 0, 0.5 or 1")
    return score / math.sqrt(variance)


class CalibrationTest(Struct, frozen=True):
    """Outcome of a test of perfect calibration.

    `statistic` is the observed ECE; `expected` and `high` are the mean and the 95 % quantile
    that a perfectly calibrated model with the same confidences would show at this n; `p_value`
    is the probability that such a model shows at least the observed ECE.

    `p_low` and `p_high` enclose the exact p-value. Where it was computed (`simulations` is 0)
    they are apart by rounding alone, and `p_value` is the upper one; where it was simulated they
    are the ends of the exact binomial 95 % interval.
    """

    statistic: float
    expected: float
    high: float
    p_value: float
    p_low: float
    p_high: float
    n: int
    simulations: int


class _Bins(NamedTuple):
    """The bins that hold rows, and the cells of nearly equal confidences inside them.

    `variance` is None where trials are numbers of rows: counts have a law of their own.
    """

    home: np.ndarray
    trials: Floats
    chance: Floats
    variance: Floats | None
    mass: Floats
    gap: Floats


def calibration_test(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    weights: MaybeArray = None,
    counted: bool = False,
) -> CalibrationTest:
    """Test whether the data are compatible with perfect calibration.

    With the confidences as probabilities, the number of right answers in each bin has a known
    law, and so has the ECE. `expected` answers what a perfect model would show at this n: an ECE
    below it does not speak against calibration. The p-value is computed from that law, so it has
    no Monte-Carlo error, and small ones are told apart down to 1e-10, the least value given:
    many tests may be corrected for each other. Rows are taken as independent.

    Parameters
    ----------
    confidence, bins, weights
        As for `ece`. A row is one draw whatever its weight, so only the ratios of weights
        matter; errors are normal where weights differ.
    counted
        Whether weights are numbers of equal rows instead, as of a table summed over cells.
    correct
        Outcomes 0 or 1, shape (n,).

    References
    ----------
    Broecker, Smith (2007), 'Increasing the reliability of reliability diagrams'; Vaicenavicius
    et al. (2019), 'Evaluating model calibration in classification'; Hong (2013), 'On computing
    the distribution function for the Poisson binomial distribution'.

    Examples
    --------
    >>> import numpy as np
    >>> test = calibration_test(np.full(100, 0.7), np.arange(100) < 55)
    >>> round(test.p_value, 5), round(test.statistic, 3), round(test.expected, 3)
    (0.00149, 0.15, 0.036)
    """
    data = check(confidence, correct, weights, binary=True).present()
    if not counted and data.weights is not None and data.weights.min() == data.weights.max():
        data = data._replace(weights=None)
    binned = _held_bins(data, bins, counted=counted)
    return _computed(binned, data.rows, sum_law(_parts(binned), POINTS))


def _held_bins(data: Checked, bins: int, *, counted: bool) -> _Bins:
    """Return the rows summed over bins and cells."""
    bin_of = bins_of(data, bins)
    c = data.confidence.astype(np.float64, copy=False)
    # Bin and cell both rise with the confidence, so their sum tells every pair apart.
    pair = bin_of + (c * CELLS).astype(np.intp)
    weights = data.weights
    heavy = np.ones(data.rows) if weights is None else weights.astype(np.float64, copy=False)
    whole = weights is None or counted
    trials = _sums(pair, heavy)
    used = np.flatnonzero(trials)
    of_pair = np.zeros(trials.size, np.intp)
    of_pair[pair] = bin_of
    _, home = np.unique(of_pair[used], return_inverse=True)
    trials, right = trials[used], _sums(pair, heavy * data.correct)[used]
    # Rounding of a mean of ones must not make a chance above 1.
    chance = np.minimum(_sums(pair, heavy * c)[used] / trials, 1.0)
    variance = None if whole else _sums(pair, heavy**2 * c * (1 - c))[used]
    gap = _sums(home, trials * chance - right)
    return _Bins(home, trials, chance, variance, _sums(home, trials), gap)


def _sums(place: np.ndarray, values: Floats) -> Floats:
    return np.bincount(place, values).astype(np.float64, copy=False)


def _computed(bins: _Bins, rows: int, law: Lattice) -> CalibrationTest:
    """Return the test from the law of the error under perfect calibration.

    Values are rounded to the lattice, so the p-value counts what may have been as large, and
    `p_low` what was larger for certain.
    """
    gap, mass = float(np.abs(bins.gap).sum()), float(bins.mass.sum())
    steps, slack = gap / law.step, bins.mass.size / 2
    # The sums themselves are rounded in their last digits.
    high = law.at_least(math.ceil(steps * (1 - 1e-12) - slack))
    low = law.at_least(math.ceil(steps + slack))
    place = law.step * np.arange(law.probability.size, dtype=np.float64) / mass
    # A product of long vectors is shared among threads, and its last digit by who is free.
    expected = float((place * law.probability).sum())
    usual = float(np.interp(0.95, np.cumsum(law.probability), place))
    p_low, p_high = low if low > LEAST_P else 0.0, min(max(high, LEAST_P), 1.0)
    return CalibrationTest(gap / mass, expected, usual, p_high, p_low, p_high, rows, simulations=0)


def _parts(bins: _Bins) -> list[Atoms]:
    """Return the law of each bin's summed error; cells are in the order of their bins."""
    ends = [0, *(np.flatnonzero(np.diff(bins.home)) + 1).tolist(), bins.home.size]
    mine = [slice(*pair) for pair in pairwise(ends)]
    if bins.variance is not None:
        spreads = (math.sqrt(float(bins.variance[cells].sum())) for cells in mine)
        return [half_normal_atoms(spread) for spread in spreads]
    laws = [count_law(np.rint(bins.trials[cells]), bins.chance[cells]) for cells in mine]
    means = np.add.reduceat(np.rint(bins.trials) * bins.chance, ends[:-1]).tolist()
    return [
        Atoms(np.abs(mean - first - np.arange(len(chances))), chances)
        for mean, (first, chances) in zip(means, laws, strict=True)
    ]
