"""Confidence minus accuracy, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.estimate import Estimate
from calibrant.metrics.block import MetricBlock


def confidence_gap(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    units: ArrayLike | None = None,
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
    return MetricBlock(
        confidence,
        correct,
        weights,
        units,
        probability=True,
        bins=1,
        level=level,
        resamples=0,
        # Nothing here is drawn.
        rng=np.random.default_rng(0),
    ).mean_gap
