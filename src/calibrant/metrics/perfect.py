"""What perfect calibration would show: Spiegelhalter's z and a test by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError, RngLike, as_generator
from calibrant.metrics.binned import NORMS, placement
from calibrant.metrics.inputs import Checked, check, check_choice, undefined
from calibrant.stats.binning import PIECE, FloatArray

__all__ = ["CalibrationTest", "calibration_test", "spiegelhalter_z"]

# Confidences closer than this share a cell when outcomes are simulated; the variance that
# their difference would add is below a millionth of the outcomes' own.
CELLS = 512


def spiegelhalter_z(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
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
        A weight of 2 counts as two equal rows.

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
        variance += float((tilt * tilt * c * (1 - c) * w).sum())
    if variance <= 0:
        return undefined("spiegelhalter_z", "every confidence is 0, 0.5 or 1")
    return score / math.sqrt(variance)


@dataclass(frozen=True, slots=True)
class CalibrationTest:
    """Outcome of a test of perfect calibration.

    `statistic` is the observed ECE; `expected` and `high` are the mean and the 95 % quantile
    that a perfectly calibrated model with the same confidences would show at this n; `p_value`
    is the share of simulations at least as large as the observed.
    """

    statistic: float
    expected: float
    high: float
    p_value: float
    n: int
    simulations: int


def calibration_test(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    weights: ArrayLike | None = None,
    simulations: int = 1000,
    rng: RngLike = 0,
) -> CalibrationTest:
    """Test whether the data are compatible with perfect calibration, by simulation.

    Outcomes are drawn with the confidences as probabilities, in the same bins, and the ECE of
    each draw is compared with the observed one. `expected` answers what a perfect model would
    show at this n: an ECE below it is no evidence of miscalibration.

    Parameters
    ----------
    confidence, bins, norm, weights
        As for `ece`. Weights that are not whole numbers are taken as importance weights.
    correct
        Outcomes 0 or 1, shape (n,).
    strategy
        ``width`` or ``mass``.
    simulations, rng
        Number of draws and their seed.

    References
    ----------
    Broecker, Smith (2007), 'Increasing the reliability of reliability diagrams'; Vaicenavicius
    et al. (2019), 'Evaluating model calibration in classification'.

    Examples
    --------
    >>> import numpy as np
    >>> test = calibration_test(np.full(100, 0.7), np.arange(100) < 30)
    >>> test.p_value < 0.01, round(test.statistic, 3), round(test.expected, 2)
    (True, 0.4, 0.04)
    """
    check_choice("strategy", strategy, ("width", "mass"))
    check_choice("norm", norm, NORMS)
    if simulations < 20:
        raise InputError(f"simulations is at least 20, got {simulations!r}")
    data = check(confidence, correct, weights, binary=True).present()
    place, edges = placement(data, bins, strategy)
    bin_of = np.empty(data.rows, np.intp)
    place(data.confidence, bin_of, np.empty(data.rows))
    np.minimum(bin_of, len(edges) - 2, out=bin_of)
    sums = _simulated_gaps(data, bin_of, len(edges) - 1, simulations, as_generator(rng))
    heavy = np.ones(data.rows) if data.weights is None else data.weights
    mass: FloatArray = np.bincount(bin_of, heavy, len(edges) - 1).astype(np.float64)
    observed: FloatArray = np.bincount(
        bin_of, heavy * np.subtract(data.confidence, data.correct, dtype=np.float64), len(edges) - 1
    ).astype(np.float64)
    held = mass > 0
    statistic = float(_norm_of(observed[held], mass[held], norm))
    null = _norm_of(sums[:, held], mass[held], norm)
    # Rounding may make equal values differ in the last digit; they count as equal.
    reached = int((null >= statistic - 1e-12).sum())
    return CalibrationTest(
        statistic=statistic,
        expected=float(null.mean()),
        high=float(np.quantile(null, 0.95)),
        p_value=(1 + reached) / (1 + simulations),
        n=data.rows,
        simulations=simulations,
    )


def _norm_of(gaps: FloatArray, mass: FloatArray, norm: str) -> FloatArray:
    if norm == "l1":
        return np.asarray(np.abs(gaps).sum(axis=-1) / mass.sum())
    if norm == "l2":
        return np.asarray(np.sqrt((gaps**2 / mass).sum(axis=-1) / mass.sum()))
    return np.asarray((np.abs(gaps) / mass).max(axis=-1))


def _simulated_gaps(
    data: Checked, bin_of: np.ndarray, bins: int, simulations: int, rng: np.random.Generator
) -> FloatArray:
    """Return summed residuals per bin for outcomes drawn with the confidences, one row each."""
    c = data.confidence.astype(np.float64, copy=False)
    cell = bin_of * (CELLS + 1) + (c * CELLS).astype(np.intp)
    used, cell = np.unique(cell, return_inverse=True)
    home = used // (CELLS + 1)
    weights = data.weights
    whole = weights is None or bool((weights == np.floor(weights)).all())
    heavy = np.ones(data.rows) if weights is None else weights.astype(np.float64, copy=False)
    mass = np.bincount(cell, heavy)
    mean = np.bincount(cell, heavy * c) / mass
    size = (used.size, simulations)
    if whole:
        # Cell by cell: the generator prepares a binomial law once for all of its draws.
        trials = np.rint(mass).astype(np.int64)[:, None]
        drawn = trials * mean[:, None] - rng.binomial(trials, mean[:, None], size=size)
    else:
        spread = np.sqrt(np.bincount(cell, heavy**2 * c * (1 - c)))
        drawn = spread[:, None] * rng.standard_normal(size)
    edges = np.flatnonzero(np.diff(home, prepend=-1))
    out = np.zeros((simulations, bins))
    out[:, home[edges]] = np.add.reduceat(drawn, edges, axis=0).T
    return out
