"""Every metric with its interval, for one block of rows, at once."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from calibrant.core import Estimate, RngLike, as_generator
from calibrant.core.arrays import MaybeArray
from calibrant.core.errors import require_known
from calibrant.metrics.blocks.block import How, MetricBlock
from calibrant.metrics.registry import METRICS, audited


def metric_estimates(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> dict[str, Estimate]:
    """Return metrics with intervals; the data are sorted and binned once for all of them.

    Means (Brier, log loss, mean confidence) have intervals from the variance between units, the two
    losses moved for their skewness, accuracy and UNC Wilson's, AUROC DeLong's and the other ranking
    measures the same method (influence functions) on the logit scale. ECE, its debiased form, its
    halves, smooth ECE and MCB are biased near perfect calibration, where no bootstrap interval
    covers; theirs come from inverting a test, so that 0 is inside whenever perfect calibration is
    not contradicted. The interval of DSC lies around the value less its simulated bias.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,); any finite score where only ranking metrics and
        accuracy are asked for.
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,). With grades AUROC and AUPRC are left
        undefined.
    names
        Metrics to compute, of those that every audit has; all of them by default.
    weights
        A weight of 2 counts as two equal rows in the value; for the interval a row is one draw
        whatever its weight.
    units
        What was sampled, one value per row, for example the question; rows of one unit may
        depend on each other.
    bins
        Equal-width bins of the binned metrics.
    level
        Nominal coverage of the intervals.
    resamples
        Simulated draws behind the intervals of the biased metrics.
    rng
        Seed.

    Returns
    -------
    dict
        One `Estimate` per name. Undefined values are NaN, with `UndefinedMetricWarning`.

    Examples
    --------
    >>> import numpy as np
    >>> c = np.tile([0.6, 0.7, 0.8, 0.9], 50)
    >>> y = np.arange(200) % 10 < 7
    >>> found = metric_estimates(c, y, names=("brier", "accuracy"))
    >>> print(found["accuracy"])
    0.700 [0.633, 0.759]
    """
    require_known(names or (), audited(), "there is no metric {} here")
    choice = [METRICS[name] for name in names or audited()]
    probability, stream = any(metric.probability for metric in choice), as_generator(rng)
    how = How(probability=probability, bins=bins, level=level, resamples=resamples, rng=stream)
    block = MetricBlock(confidence, correct, weights, units, **how)
    return {metric.name: block.estimate(metric) for metric in choice}


def confidence_gap(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: MaybeArray = None,
    units: MaybeArray = None,
    level: float = 0.95,
) -> Estimate:
    """Return mean confidence minus accuracy, in [-1, 1]; above 0 is over-confidence.

    Unlike a calibration error it has a sign and no bias; unlike one it can be 0 although the
    confidence is wrong in places. The interval joins Wilson's of the accuracy and Student's of the
    mean confidence, both from the variance between units, so that outcomes which happen to be all
    alike do not take its width away.

    Examples
    --------
    >>> print(confidence_gap([0.9, 0.8, 0.9, 0.8], [1, 0, 1, 1]))
    0.100 [-0.106, 0.576]
    >>> print(confidence_gap([0.6] * 10, [0] * 10))
    0.600 [0.322, 0.600]
    """
    name = "confidence_gap"
    return metric_estimates(
        confidence, correct, names=(name,), weights=weights, units=units, level=level
    )[name]
