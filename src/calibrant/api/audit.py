"""`audit`: is this confidence calibrated, and how sure can we be?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import calibrant
from calibrant.api.result import Result
from calibrant.api.verdict import audit_verdict
from calibrant.confidence import methods
from calibrant.core.errors import InputError, UndefinedMetricWarning
from calibrant.core.rng import named_stream
from calibrant.metrics import (
    CALIBRATORS,
    calibration_test,
    confidence_gap,
    cross_fitted,
    metric_estimates,
    reliability_bins,
    reliability_curve,
)
from calibrant.planning import require_labels, verification_block
from calibrant.records import Block, Scores, Study, load_scores, scan_table, source_name

__all__ = ["audit"]

_RANKING_METRICS = ("auroc", "auprc", "aurc", "e_aurc", "accuracy")
_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20


def audit(
    data: Any,
    correct: Any = None,
    *,
    confidence: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    weights: str | None = None,
    by: Sequence[str] = (),
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    recalibrate: str | None = None,
    on_invalid: str = "error",
    graded: bool = False,
    scale: str = "fraction",
    repeats: bool = False,
    seed: int = 0,
) -> Result:
    """Audit confidences against outcomes.

    Parameters
    ----------
    data
        An array of confidences (then `correct` is the array of outcomes), a scores table (path
        or dataframe) or a study folder.
    correct
        Array of outcomes, or the name of their column.
    confidence, model, method, question, answer, weights
        Column names where they differ from the scores schema.
    by
        Columns that split each (model, method) into groups with blocks of their own.
    bins
        Equal-width bins of the binned calibration error.
    level
        Coverage of the intervals.
    resamples
        Bootstrap resamples behind them.
    recalibrate
        Recalibrate each (model, method) first, cross-fitted: temperature, platt, isotonic, beta
        or histogram. Needed for scores that are not probabilities.
    on_invalid, graded, scale, repeats
        Rules for the rows, see `calibrant.records.load_scores`.
    seed
        The same seed gives the same bytes.

    Returns
    -------
    Result
        Document ``calibrant.audit/1``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 500)
    >>> correct = rng.random(500) < confidence - 0.2
    >>> block = audit(confidence, correct)["results"][0]
    >>> block["n"], round(block["metrics"]["brier"]["value"], 2)
    (500, 0.24)
    """
    ranking = frozenset(entry["name"] for entry in methods() if not entry["probability"])
    scores = _load(
        data,
        correct,
        confidence=confidence,
        model=model,
        method=method,
        question=question,
        answer=answer,
        weights=weights,
        on_invalid=on_invalid,
        graded=graded,
        scale=scale,
        repeats=repeats,
        ranking=ranking,
        features=list(by),
    )
    if recalibrate is not None:
        scores = _recalibrated(scores, recalibrate, seed)
        ranking = frozenset()
    blocks = [
        _audit_block(
            block,
            probability=block.keys["method"] not in ranking,
            bins=bins,
            level=level,
            resamples=resamples,
            seed=seed,
        )
        for block in scores.blocks(by=by)
    ]
    return Result(
        {
            "schema": "calibrant.audit/1",
            "version": calibrant.__version__,
            "source": scores.source,
            "seed": seed,
            "level": level,
            "bins": bins,
            "resamples": resamples,
            "recalibrated": recalibrate,
            "dropped": dict(scores.dropped),
            "dropped_rows": dict(scores.dropped_rows),
            "results": blocks,
        }
    )


def _load(data: Any, correct: Any, **options: Any) -> Scores:
    if isinstance(data, str | Path) and Study.is_study(data):
        data = Study(data).read("scores")
    if correct is not None and not isinstance(correct, str):
        arrays = {"confidence": np.asarray(data), "correct": np.asarray(correct)}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes["confidence"] != shapes["correct"] or arrays["correct"].ndim != 1:
            raise InputError(
                "confidence and correct must be one-dimensional and of equal length, got "
                f"{shapes['confidence']} and {shapes['correct']}"
            )
        return load_scores(arrays, **options)
    if isinstance(data, list | tuple | np.ndarray):
        raise InputError(
            "an array of confidences needs an array of outcomes: audit(confidence, correct)"
        )
    _refuse_without_labels(data, correct)
    return load_scores(data, correct=correct, **options)


def _refuse_without_labels(data: Any, correct: str | None) -> None:
    """Say why a table without a single label cannot be audited, before its rows are read."""
    for source in data if isinstance(data, list | tuple) else [data]:
        table = scan_table(source)
        column = correct or "correct"
        if column in table.collect_schema().names():
            known = table.select(pl.col(column).is_not_null().any()).collect().item()
            require_labels([1.0] if known else [], source=source_name(source))
        elif correct is None:
            require_labels(None, source=source_name(source))


def _recalibrated(scores: Scores, name: str, seed: int) -> Scores:
    """Replace each (model, method)'s score by its cross-fitted probability."""
    calibrator = CALIBRATORS[name]
    parts = []
    for block in scores.blocks():
        fitted = cross_fitted(
            calibrator(),
            block.confidence,
            block.correct,
            units=block.units,
            rng=named_stream(seed, "recalibrate", *block.keys.values()),
        )
        parts.append(block.frame.with_columns(confidence=pl.Series(fitted)))
    return replace(scores, frame=pl.concat(parts))


def _audit_block(
    block: Block, *, probability: bool, bins: int, level: float, resamples: int, seed: int
) -> dict[str, Any]:
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
    test = calibration_test(block.confidence, block.correct, bins=bins, rng=rng, **data)
    diagram = reliability_bins(block.confidence, block.correct, bins=bins, level=level, **data)
    curve = reliability_curve(
        block.confidence, block.correct, points=_CURVE_POINTS, level=level, rng=rng, **data
    )
    counts, _ = np.histogram(block.confidence, bins=_HISTOGRAM_BINS, range=(0, 1))
    return {
        "calibration_test": {
            "expected_ece": test.expected,
            "high_ece": test.high,
            "p_value": test.p_value,
            "simulations": test.simulations,
        },
        "reliability": {
            "bins": diagram.to_dict(),
            "curve": curve.to_dict(),
            "histogram": counts.tolist(),
        },
    }
