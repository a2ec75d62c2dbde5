"""Recalibration by name, from plain data, and cross-fitted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError, RngLike, as_generator
from calibrant.core.arrays import Floats, MaybeArray
from calibrant.core.errors import require_known
from calibrant.metrics.inputs import check
from calibrant.metrics.recalibration import calibrators
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.stats.units import unit_codes

CALIBRATORS: dict[str, type[Calibrator]] = {
    kind.name: kind
    for kind in (
        calibrators.TemperatureCalibrator,
        calibrators.PlattCalibrator,
        calibrators.BetaCalibrator,
        calibrators.IsotonicCalibrator,
        calibrators.HistogramCalibrator,
        calibrators.MendCalibrator,
    )
}


def calibrator_from_dict(data: dict[str, Any]) -> Calibrator:
    """Return the calibrator that any `to_dict` described.

    Examples
    --------
    >>> fitted = calibrators.TemperatureCalibrator().fit([0.9, 0.6, 0.2], [1, 0, 0])
    >>> calibrator_from_dict(fitted.to_dict()).temperature_ == fitted.temperature_
    True
    """
    name = str(data.get("calibrator"))
    require_known([name], CALIBRATORS, "there is no calibrator {}")
    return CALIBRATORS[name].from_dict(data)


def cross_fitted(
    calibrator: Calibrator | str,
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    folds: int = 5,
    units: MaybeArray = None,
    weights: MaybeArray = None,
    rng: RngLike = 0,
) -> Floats:
    """Return recalibrated probabilities, each from a map that never saw its own unit.

    Recalibrating and evaluating on the same rows flatters; here the units (questions) are
    dealt into folds, and every fold is mapped by a calibrator fitted on the others.

    Parameters
    ----------
    calibrator
        An unfitted calibrator or its name.
    confidence, correct, weights
        As for the calibrator.
    folds
        Number of folds; at most one per unit.
    units
        Question of each row; rows of a question stay together.
    rng
        Seed of the deal.

    Examples
    --------
    >>> c = np.linspace(0.05, 0.95, 40)
    >>> cross_fitted("isotonic", c, c > 0.5, folds=4).shape
    (40,)
    """
    if isinstance(calibrator, str):
        calibrator = calibrator_from_dict({"calibrator": calibrator})
    data = check(confidence, correct, weights, probability=False)
    sampled = unit_codes(units, data.rows)
    if not 2 <= folds <= sampled.count:
        raise InputError(
            f"folds is from 2 to the number of units, {sampled.count}; got {folds!r}",
            hint="recalibration that is evaluated on the same data needs at least two units",
        )
    dealt = as_generator(rng).permutation(sampled.count) % folds
    fold = dealt if sampled.codes is None else dealt[sampled.codes]
    out = np.empty(data.rows)
    for number in range(folds):
        inside = fold == number
        remainder = ~inside
        heavy = None if data.weights is None else data.weights[remainder]
        fitted = calibrator.fresh().fit(
            data.confidence[remainder], data.correct[remainder], weights=heavy
        )
        out[inside] = fitted.predict(data.confidence[inside])
    return out
