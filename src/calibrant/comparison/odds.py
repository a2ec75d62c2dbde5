"""The odds shift: what a model would say at another accuracy, as Bayes' rule moves it.

Weighting right answers by t/a and wrong ones by (1 - t)/(1 - a) brings a model of accuracy a to
accuracy t. A calibrated model stays calibrated only if its log-odds move by logit t - logit a. The
distribution-aligned view of the literature leaves the confidences where they are, and so makes
every calibrated model of another accuracy look miscalibrated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from calibrant.core.arrays import Floats

# Equal-mass bins on the confidences as stated, the same on every footing.
MASS_BINS = 10
# A confidence of exactly 0 or 1 has no finite odds; inside the shift alone it is moved this far.
CLIP = 0.005
# The same with 'almost certain' taken at its word; where the two differ, the verdict says so.
NEAR_CLIP = 1e-6
# Shifted confidences between the nodes are exact to about this.
_NODE_ERROR = 1e-10


def log_odds(share: npt.ArrayLike) -> Floats:
    """Return logit(share): minus infinity at 0, infinity at 1.

    Examples
    --------
    >>> log_odds([0.0, 0.5, 1.0]).tolist()
    [-inf, 0.0, inf]
    """
    return np.asarray(special.logit(np.asarray(share, dtype=np.float64)))


def shift_confidence(confidence: Floats, shift: npt.ArrayLike, *, clip: float = CLIP) -> Floats:
    """Return confidences whose log-odds are moved by `shift`; without a shift they are untouched.

    Examples
    --------
    >>> shift_confidence(np.array([0.5, 1.0]), float(log_odds(0.75))).round(3).tolist()
    [0.75, 0.998]
    """
    moved = special.expit(special.logit(np.clip(confidence, clip, 1 - clip)) + shift)
    return np.asarray(np.where(np.asarray(shift) == 0, confidence, moved))


@dataclass(frozen=True, slots=True)
class ShiftNodes:
    """Shifts at which confidences are summed, so that sums at many others follow.

    A sum of shifted confidences is a smooth function of the shift: a few nodes hold it for all
    partners of a model. `values` and `slopes` (shifts, nodes) turn sums at the nodes into sums at
    each shift, and into their derivatives.
    """

    shifts: Floats
    nodes: Floats
    values: Floats
    slopes: Floats


def shift_nodes(shifts: Floats) -> ShiftNodes:
    """Return the nodes (of Chebyshev) that serve these shifts.

    Examples
    --------
    >>> wanted = np.array([-1.0, 0.3, 2.0])
    >>> found = shift_nodes(wanted)
    >>> at_nodes = special.expit(0.7 + found.nodes)
    >>> bool(np.abs(found.values @ at_nodes - special.expit(0.7 + wanted)).max() < 1e-9)
    True
    """
    low, high = float(shifts.min()), float(shifts.max())
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-3)
    # The logistic curve has its nearest pole at a distance of pi from the real line.
    reach = math.pi / half
    rate = reach + math.sqrt(reach**2 + 1)
    count = max(math.ceil(-math.log(_NODE_ERROR) / math.log(rate)), 3)
    angles = (np.arange(count) + 0.5) * np.pi / count
    polynomials = np.polynomial.chebyshev
    inverse = np.linalg.inv(polynomials.chebvander(np.cos(angles), count - 1))
    place = (shifts - middle) / half
    steep = polynomials.chebder(np.eye(count), axis=0)
    slopes = polynomials.chebvander(place, count - 2) @ steep / half
    return ShiftNodes(
        shifts,
        middle + half * np.cos(angles),
        polynomials.chebvander(place, count - 1) @ inverse,
        slopes @ inverse,
    )
