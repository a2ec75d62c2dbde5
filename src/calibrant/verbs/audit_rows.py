"""An audit in memory: the whole table, with units, weights, grades and recalibration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from calibrant.confidence import methods
from calibrant.core.naming import naming
from calibrant.core.rng import named_stream
from calibrant.inputs.audit_input import (
    has_no_scores,
    is_array,
    is_study,
    load_rows,
    require_usable,
    rules_of,
)
from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.logs import foreign_tables
from calibrant.inputs.provenance import document_head
from calibrant.inputs.raw_scores import scores_outside
from calibrant.metrics import PlattCalibrator, calibrator_from_dict, cross_fitted
from calibrant.records import Scores
from calibrant.records.convert import ReadOptions
from calibrant.report.result import Result
from calibrant.verbs.audit_block import audit_block
from calibrant.verbs.semantic import draws_with_classes, question_texts, semantic_blocks
from calibrant.verbs.significance import correct_for_number
from calibrant.verbs.verdict import audit_verdict

__all__ = ["audit_rows"]

_ARRAYS = "arrays in memory"


def audit_rows(data: Any, outcomes: Any, options: AuditOptions) -> Result:
    """Audit confidences against outcomes.

    Parameters
    ----------
    data
        As for `audit`.
    outcomes
        Array of outcomes where `data` is an array of confidences, else None.
    options
        The options of `audit`.
    """
    if options.recalibrate is not None:
        calibrator_from_dict({"calibrator": options.recalibrate})
    log = None
    if not is_array(data):
        log = foreign_tables(data, options=ReadOptions(scale=options.scale), ranked=True)
    options = rules_of(data, log, options)
    meanings = [] if is_array(data) else _meanings(data if log is None else log, options)
    head = _head(data, options)
    if log is not None:
        require_usable(log)
    elif meanings and has_no_scores(data, options.columns["confidence"]):
        empty: dict[str, Any] = {"dropped": {}, "dropped_rows": {}, "results": []}
        return Result({**head, **empty, "sem_ece": meanings})
    raw = {} if log is not None or is_study(data) else _raw_scores(data, options)
    ranking = frozenset(entry["name"] for entry in methods() if not entry["probability"])
    ranking |= raw.keys() | (frozenset() if log is None else log.ranking)
    scores = load_rows(data if log is None else log, outcomes, options, ranking)
    if options.recalibrate is not None:
        with naming(head["source"]):
            scores = _recalibrated(scores, options.recalibrate, options.seed, raw)
        ranking = frozenset()
    notes = {
        name: f"{count:,} of the scores of {name} lie outside [0, 1]: they are taken as scores, "
        f"and {options.recalibrate} turns them into probabilities"
        for name, count in raw.items()
    }
    blocks = _blocks(scores, options, ranking, [] if log is None else log.notes, notes)
    multiplicity = correct_for_number(blocks)
    return Result(
        {
            **head,
            "multiplicity": multiplicity,
            "dropped": dict(scores.dropped),
            "dropped_rows": dict(scores.dropped_rows),
            "emptied_models": scores.emptied,
            "results": [{**entry, "verdict": audit_verdict(entry)} for entry in blocks],
            "sem_ece": meanings,
        }
    )


def _head(data: Any, options: AuditOptions) -> dict[str, Any]:
    """Return the head of the document; what readers have long found at the top stays there."""
    arrays = is_array(data)
    return {
        **document_head(
            "audit",
            None if arrays else data,
            seed=options.seed,
            settings=options.settings,
            source=_ARRAYS if arrays else None,
        ),
        "level": options.level,
        "bins": options.bins,
        "resamples": options.resamples,
        "recalibrated": options.recalibrate,
        "reading": {"way": "in memory"},
    }


def _meanings(tables: Any, options: AuditOptions) -> list[dict[str, Any]]:
    """Return the calibration over meanings, where the data holds draws with their classes."""
    draws = draws_with_classes(tables)
    if draws is None:
        return []
    return semantic_blocks(
        draws,
        engine=options.engine,
        texts=question_texts(tables, draws),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )


def _raw_scores(data: Any, options: AuditOptions) -> dict[str, int]:
    """Count, by method, the scores outside [0, 1] that recalibration is to turn into some."""
    if options.recalibrate is None:
        return {}
    return scores_outside(
        {"confidence": np.asarray(data)} if is_array(data) else data,
        confidence=options.columns["confidence"],
        method=options.columns["method"],
        scale=options.scale,
        recalibrate=options.recalibrate,
    )


def _blocks(
    scores: Scores,
    options: AuditOptions,
    ranking: Collection[str],
    notes: Sequence[str],
    notes_by_method: dict[str, str],
) -> list[dict[str, Any]]:
    blocks = []
    for block in scores.blocks(by=options.by):
        method = block.keys["method"]
        entry = audit_block(block, probability=method not in ranking, **options.metrics)
        own = [notes_by_method[method]] if method in notes_by_method else []
        blocks.append({**entry, "notes": [*entry["notes"], *notes, *own]})
    return blocks


def _recalibrated(scores: Scores, name: str, seed: int, raw: Collection[str]) -> Scores:
    """Replace each (model, method)'s score by its cross-fitted probability."""
    parts = []
    for block in scores.blocks():
        # A fold may hold none of the scores outside [0, 1]: the scale is that of all folds.
        on_scores = name == "platt" and block.keys["method"] in raw
        fitted = cross_fitted(
            PlattCalibrator(scale="score") if on_scores else name,
            block.confidence,
            block.correct,
            units=block.units,
            rng=named_stream(seed, "recalibrate", *block.keys.values()),
        )
        parts.append(block.frame.with_columns(confidence=pl.Series(fitted)))
    return replace(scores, frame=pl.concat(parts))
