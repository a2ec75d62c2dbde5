"""Rows dealt into a calibration, a fitting and an evaluation part; the first one recalibrates."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError, require_known
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.recalibration.calibrators import PlattCalibrator
from calibrant.metrics.recalibration.cross_fit import CALIBRATORS

SHARES = (0.1, 0.4, 0.5)
CALIBRATION, FITTING, EVALUATION = range(3)

# Recalibration has two parameters to learn, so it needs some rows of either outcome.
_MIN_PER_OUTCOME = 2


def split_rows(
    correct: Floats, shares: Sequence[float], rng: np.random.Generator, *, units: Ints | None = None
) -> npt.NDArray[np.int8]:
    """Return the part of each row, drawn within each outcome so that the rates stay equal.

    Rows of one unit (question) always fall into one part; units are not stratified.

    Examples
    --------
    >>> part = split_rows(np.array([0.0, 1.0] * 10), (0.1, 0.4, 0.5), np.random.default_rng(0))
    >>> np.bincount(part).tolist()
    [2, 8, 10]
    """
    total = float(sum(shares))
    if min(shares) <= 0 or abs(total - 1.0) > 1e-9:
        raise InputError(f"the shares of a split must be positive and add up to 1, got {shares}")
    if units is not None:
        count = int(units.max()) + 1
        return _deal(count, shares, rng)[units]
    part = np.empty(len(correct), dtype=np.int8)
    for outcome in np.unique(correct):
        rows = np.flatnonzero(correct == outcome)
        part[rows] = _deal(len(rows), shares, rng)
    return part


def _deal(count: int, shares: Sequence[float], rng: np.random.Generator) -> npt.NDArray[np.int8]:
    edges = np.round(np.cumsum(shares) * count).astype(np.int64)
    dealt = np.searchsorted(edges[:-1], np.arange(count), side="right").astype(np.int8)
    return rng.permutation(dealt)


def three_parts(
    correct: Floats,
    rng: np.random.Generator,
    *,
    shares: Sequence[float] = SHARES,
    min_samples_leaf: int = 15,
    units: Ints | None = None,
) -> tuple[Ints, Ints, Ints]:
    """Return the rows of the calibration, fitting and evaluation part; refuse too few rows."""
    if len(shares) != 3:
        raise InputError(f"the split has three parts, got {len(shares)} shares")
    labels_needed = int(np.ceil(2 * min_samples_leaf / shares[FITTING]))
    if len(correct) < labels_needed:
        raise InputError(
            f"groups need at least {labels_needed} labelled questions; there are {len(correct)}",
            hint="label more rows, or lower min_samples_leaf",
        )
    part = split_rows(correct, shares, rng, units=units)
    calibration = correct[part == CALIBRATION]
    rarest = min(int((calibration == outcome).sum()) for outcome in (0.0, 1.0))
    if rarest < _MIN_PER_OUTCOME:
        raise InputError(
            f"the calibration part has {len(calibration)} rows with {rarest} of the rarer outcome, "
            f"recalibration needs {_MIN_PER_OUTCOME}",
            hint="label more rows, or raise the calibration share",
        )
    return tuple(np.flatnonzero(part == code) for code in range(3))  # type: ignore[return-value]


def fit_recalibrator(method: str, confidence: Floats, correct: Floats) -> Calibrator:
    """Return the recalibration map `method`, fitted; Platt scaling works on logits.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = fit_recalibrator("platt", np.array([0.9, 0.8, 0.3]), np.array([1.0, 0.0, 0.0]))
    >>> fitted.scale_
    'logit'
    """
    require_known([method], CALIBRATORS, "there is no recalibration {}")
    calibrator = PlattCalibrator(scale="logit") if method == "platt" else CALIBRATORS[method]()
    return calibrator.fit(confidence, correct)
