"""Recalibration as the first step: chosen by name, fitted on its own part."""

from __future__ import annotations

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.metrics.recalibration import CALIBRATORS, Calibrator, PlattCalibrator


def fit_recalibrator(method: str, confidence: Floats, correct: Floats) -> Calibrator:
    """Return the recalibration map `method`, fitted; Platt scaling works on logits.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = fit_recalibrator("platt", np.array([0.9, 0.8, 0.3]), np.array([1.0, 0.0, 0.0]))
    >>> fitted.scale_
    'logit'
    """
    if method not in CALIBRATORS:
        raise InputError(
            f"there is no recalibration {method!r}", hint=did_you_mean(method, list(CALIBRATORS))
        )
    made = PlattCalibrator(scale="logit") if method == "platt" else CALIBRATORS[method]()
    return made.fit(confidence, correct)
