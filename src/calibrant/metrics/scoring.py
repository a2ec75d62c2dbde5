"""Proper scores, plain means and discrimination: Brier, log loss, accuracy, AUROC, AUPRC."""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike
from scipy.special import xlogy

from calibrant.core.arrays import Array, MaybeArray
from calibrant.metrics.binned import placement, products
from calibrant.metrics.inputs import Checked, check, is_graded, undefined
from calibrant.metrics.stats import binning, ranking
from calibrant.metrics.stats.binning import PIECE


def _mean_of(data: Checked, rows_of: Any) -> float:
    """Return the weighted mean of a per-row quantity, computed piece by piece."""
    total = 0.0
    for start in range(0, data.rows, PIECE):
        piece = slice(start, start + PIECE)
        values = rows_of(data.confidence[piece], data.correct[piece])
        total += float(values.sum() if data.weights is None else values @ data.weights[piece])
    return total / data.total


def brier(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the Brier score, the mean squared difference, in [0, 1]; 0 is best.

    A proper score: its expectation is least for the true probabilities. It mixes calibration
    with discrimination; `brier_decomposition` and `corp` take them apart.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Brier (1950), 'Verification of forecasts expressed in terms of probability'.

    Examples
    --------
    >>> brier([0.9, 0.2], [1, 0])
    0.025...
    """
    return _mean_of(
        check(confidence, correct, weights),
        lambda c, y: np.square(np.subtract(c, y, dtype=np.float64)),
    )


def log_loss_rows(confidence: Array, correct: Array) -> Array:
    """Return -y log c - (1 - y) log(1 - c) per row; infinite where certainty was wrong."""
    c = confidence.astype(np.float64, copy=False)
    y = correct.astype(np.float64, copy=False)
    # xlogy is 0 where y is 0, also at log 0, so certainty that was right costs nothing.
    loss: Array = xlogy(y, c)
    loss += xlogy(1 - y, 1 - c)
    return np.abs(loss, out=loss)


def log_loss(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the mean logarithmic loss in nats, in [0, inf]; 0 is best.

    A single confidence of exactly 0 or 1 with the wrong outcome makes it infinite. That is the
    score's verdict and it is reported as such: nothing is clipped.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Good (1952), 'Rational decisions'.

    Examples
    --------
    >>> round(log_loss([0.5, 0.5], [1, 0]), 4)
    0.6931
    >>> log_loss([1.0, 0.5], [0, 1])
    inf
    """
    data = check(confidence, correct, weights)
    # A row of weight 0 is absent: 0 times its infinite loss must not become NaN.
    return _mean_of(data.present(), log_loss_rows)


def accuracy(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the mean outcome, in [0, 1]; 1 is best. Confidences are checked, not used.

    Examples
    --------
    >>> accuracy([0.9, 0.2], [1, 0])
    0.5
    """
    data = check(confidence, correct, weights, probability=False)
    return _mean_of(data, lambda c, y: y.astype(np.float64, copy=False))  # noqa: ARG005


def mean_confidence(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    """Return the mean confidence, in [0, 1]. Outcomes are checked, not used.

    Examples
    --------
    >>> mean_confidence([0.75, 0.25], [1, 0])
    0.5
    """
    data = check(confidence, correct, weights)
    if data.weights is None:
        return float(data.confidence.mean(dtype=np.float64))
    return float(data.confidence.astype(np.float64, copy=False) @ data.weights) / data.total


class BrierParts(Struct, frozen=True):
    """Parts of the Brier score over bins.

    ``brier = reliability - resolution + uncertainty + within`` holds exactly; `within` is the
    variance of confidences inside bins minus twice their covariance with outcomes there.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_decomposition(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    weights: MaybeArray = None,
) -> BrierParts:
    r"""Return the three parts of the Brier score over bins, and what lies within the bins.

    Reliability :math:`\sum_b p_b (c_b - r_b)^2` (0 is best), resolution
    :math:`\sum_b p_b (r_b - r)^2` (more is better), uncertainty, the variance of outcomes.
    Confidences that differ inside a bin leave the remainder `within`
    (Stephenson, Coelho, Jolliffe 2008), so that the parts always sum to the score.

    Parameters
    ----------
    confidence, correct, bins, strategy, weights
        As for `ece`.

    References
    ----------
    Murphy (1973), 'A new vector partition of the probability score'; Stephenson, Coelho,
    Jolliffe (2008), 'Two extra components in the Brier score decomposition'.

    Examples
    --------
    >>> parts = brier_decomposition([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0], bins=10)
    >>> round(parts.reliability, 3), round(parts.resolution, 4), round(parts.uncertainty, 4)
    (0.085, 0.0625, 0.1875)
    """
    data = check(confidence, correct, weights)
    place, edges = placement(data, bins, strategy)
    columns = products(
        data,
        lambda c, _: np.ones(c.size),
        lambda c, _: c,
        lambda _, y: y,
        lambda c, _: c * c,
        lambda c, y: c * y,
        lambda _, y: y * y,
    )
    sums = binning.sum_by_bin(place, len(edges) - 1, data.confidence, columns)
    mass, sc, sy, scc, scy, syy = (column[sums[0] > 0] for column in sums)
    total = mass.sum()
    p, mean_c, mean_y = mass / total, sc / mass, sy / mass
    base = sy.sum() / total
    spread = scc / mass - mean_c**2 - 2 * (scy / mass - mean_c * mean_y)
    return BrierParts(
        brier=float((scc.sum() - 2 * scy.sum() + syy.sum()) / total),
        reliability=float(p @ (mean_c - mean_y) ** 2),
        resolution=float(p @ (mean_y - base) ** 2),
        uncertainty=float(max(syy.sum() / total - base**2, 0.0)),
        within=float(p @ spread),
    )


def auroc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the area under the ROC curve, in [0, 1]; 1 is best, 0.5 is chance.

    The probability that a right answer has the higher confidence than a wrong one; ties count
    one half. Any finite score will do, it need not be a probability.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, shape (n,). A grade between 0 and 1 counts as that share of a right answer and
        the rest of a wrong one.
    weights
        A weight of 2 counts as two equal rows.

    Returns
    -------
    float
        NaN with `UndefinedMetricWarning` where all outcomes are equal.

    References
    ----------
    Hanley, McNeil (1982), 'The meaning and use of the area under a ROC curve'.

    Examples
    --------
    >>> auroc([0.9, 0.8, 0.3, 0.3], [1, 0, 1, 0])
    0.625
    """
    data = check(confidence, correct, weights, probability=False).present()
    if data.correct.min() == data.correct.max():
        return undefined("auroc", "it needs right and wrong answers, all are the same")
    if data.weights is None and not is_graded(data.correct):
        positive = data.correct.astype(np.bool_, copy=False)
        return ranking.area_by_merge(data.confidence, positive)
    return ranking.Ranked.of(*data).measured("auroc")[0]


def auprc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the average precision of right answers, in [0, 1]; 1 is best, accuracy is chance.

    The mean, over right answers, of the precision among all answers at least as confident.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, shape (n,). A grade between 0 and 1 counts as that share of a right answer and
        the rest of a wrong one.
    weights
        A weight of 2 counts as two equal rows.

    Returns
    -------
    float
        NaN with `UndefinedMetricWarning` where no answer is right.

    Examples
    --------
    >>> auprc([0.9, 0.8, 0.3], [1, 0, 1])
    0.833...
    """
    data = check(confidence, correct, weights, probability=False).present()
    if not data.correct.any():
        return undefined("auprc", "no answer is right")
    return ranking.Ranked.of(*data).measured("auprc")[0]
