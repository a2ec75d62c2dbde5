"""One block of an audit: a model, a method, perhaps a group."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from calibrant.core.errors import UndefinedMetricWarning
from calibrant.core.estimate import Estimate
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
from calibrant.verbs.significance import gap_p_value, tests_of_rows
from calibrant.verbs.verdict import audit_verdict

__all__ = ["audit_block", "block_tests"]

_RANKING_METRICS = ("auroc", "auprc", "aurc", "e_aurc", "accuracy")
_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20
_REPEATED = (
    "rows of one question depend on each other: perfect calibration is not tested, the mean gap is"
)


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
            entry |= block_tests(block, entry["metrics"]["confidence_gap"], bins)
            entry["reliability"] = _reliability(block, bins=bins, level=level, rng=stream)
            entry["verification"] = verification_block(
                block.confidence, block.correct, rng=stream, **shared
            )
    entry["notes"] = sorted({str(warning.message) for warning in caught})
    if probability and block.units is not None:
        entry["notes"].append(_REPEATED)
    entry["verdict"] = audit_verdict(entry)
    return entry


def block_tests(block: Block, gap: Estimate, bins: int) -> dict[str, Any]:
    """Return the tests of perfect calibration and of the mean gap."""
    # A grade between 0 and 1 is a mean over splits: 'perfectly calibrated' says nothing about it.
    # Nor are rows of one question the independent draws that the test takes them for.
    graded = bool(((block.correct > 0) & (block.correct < 1)).any())
    if graded or block.units is not None:
        nothing = {"expected_ece": None, "high_ece": None, "p_value": None, "simulations": 0}
        shown = {"calibration": None, "gap": {"p_value": gap_p_value(gap)}}
        return {"calibration_test": nothing, "significance": shown}
    data = (block.confidence, block.correct)
    test = calibration_test(*data, bins=bins, weights=block.weights)
    mean = calibration_test(*data, bins=1, weights=block.weights)
    return tests_of_rows(test, mean, gap)


def _reliability(
    block: Block, *, bins: int, level: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Return what a reliability diagram shows."""
    data = (block.confidence, block.correct)
    shared: dict[str, Any] = {"weights": block.weights, "level": level}
    counts, _ = np.histogram(block.confidence, bins=_HISTOGRAM_BINS, range=(0, 1))
    return {
        "bins": reliability_bins(*data, bins=bins, **shared).to_dict(),
        "curve": reliability_curve(*data, points=_CURVE_POINTS, rng=rng, **shared).to_dict(),
        "histogram": counts.tolist(),
    }
