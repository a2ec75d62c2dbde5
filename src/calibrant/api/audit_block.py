"""One block of an audit: a model, a method, perhaps a group."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from calibrant.api.verdict import audit_verdict
from calibrant.core.errors import UndefinedMetricWarning
from calibrant.core.rng import named_stream
from calibrant.metrics import (
    calibration_test,
    confidence_gap,
    metric_estimates,
    reliability_bins,
    reliability_curve,
)
from calibrant.planning import verification_block
from calibrant.records import Block

__all__ = ["audit_block"]

_RANKING_METRICS = ("auroc", "auprc", "aurc", "e_aurc", "accuracy")
_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20


def audit_block(
    block: Block, *, probability: bool, bins: int, level: float, resamples: int, seed: int
) -> dict[str, Any]:
    """Return the metrics, the evidence, the verification and the verdict of one block."""
    stream = named_stream(seed, *block.keys.items())
    group = {name: key for name, key in block.keys.items() if name not in ("model", "method")}
    units = block.confidence.size if block.units is None else int(block.units.max()) + 1
    entry: dict[str, Any] = {
        "model": block.keys["model"],
        "method": block.keys["method"],
        "group": group or None,
        "n": block.confidence.size,
        "questions": units,
        "probability": probability,
    }
    shared: dict[str, Any] = {"weights": block.weights, "units": block.units}
    names = {} if probability else {"names": _RANKING_METRICS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedMetricWarning)
        entry["metrics"] = metric_estimates(
            block.confidence,
            block.correct,
            bins=bins,
            level=level,
            resamples=resamples,
            rng=stream,
            **names,
            **shared,
        )
        if probability:
            entry["metrics"]["confidence_gap"] = confidence_gap(
                block.confidence, block.correct, level=level, **shared
            )
            entry |= _calibration_evidence(block, bins=bins, level=level, rng=stream)
            entry["verification"] = verification_block(
                block.confidence, block.correct, rng=stream, **shared
            )
    entry["notes"] = sorted({str(warning.message) for warning in caught})
    entry["verdict"] = audit_verdict(entry)
    return entry


def _calibration_evidence(
    block: Block, *, bins: int, level: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the test against perfect calibration and what a reliability diagram shows."""
    data: dict[str, Any] = {"weights": block.weights}
    # A grade between 0 and 1 is a mean over splits: 'perfectly calibrated' says nothing about it.
    graded = bool(((block.correct > 0) & (block.correct < 1)).any())
    test = (
        None
        if graded
        else calibration_test(block.confidence, block.correct, bins=bins, rng=rng, **data)
    )
    diagram = reliability_bins(block.confidence, block.correct, bins=bins, level=level, **data)
    curve = reliability_curve(
        block.confidence, block.correct, points=_CURVE_POINTS, level=level, rng=rng, **data
    )
    counts, _ = np.histogram(block.confidence, bins=_HISTOGRAM_BINS, range=(0, 1))
    return {
        "calibration_test": {
            "expected_ece": None if test is None else test.expected,
            "high_ece": None if test is None else test.high,
            "p_value": None if test is None else test.p_value,
            "simulations": 0 if test is None else test.simulations,
        },
        "reliability": {
            "bins": diagram.to_dict(),
            "curve": curve.to_dict(),
            "histogram": counts.tolist(),
        },
    }
