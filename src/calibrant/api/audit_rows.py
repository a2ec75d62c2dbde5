"""An audit in memory: the whole table, with units, weights, grades and recalibration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.api.audit_block import audit_block
from calibrant.api.foreign import ForeignTables, foreign_tables
from calibrant.api.provenance import document_head
from calibrant.api.raw_scores import scores_outside, with_way_out
from calibrant.api.result import Result
from calibrant.api.semantic import draws_with_classes, question_texts, semantic_blocks
from calibrant.api.significance import correct_for_number
from calibrant.api.verdict import audit_verdict
from calibrant.confidence import methods
from calibrant.core.errors import InputError
from calibrant.core.naming import naming
from calibrant.core.rng import named_stream
from calibrant.metrics import PlattCalibrator, calibrator_from_dict, cross_fitted
from calibrant.planning import require_labels
from calibrant.records import Scores, Study, load_scores, scan_table, source_name
from calibrant.records.convert import ReadOptions
from calibrant.records.tables import collect, column_names

__all__ = ["audit_rows"]


def audit_rows(
    data: Any,
    correct: Any,
    *,
    confidence: str | None,
    model: str | None,
    method: str | None,
    question: str | None,
    answer: str | None,
    weights: str | None,
    by: Sequence[str],
    bins: int,
    level: float,
    resamples: int,
    recalibrate: str | None,
    on_invalid: str | None,
    graded: bool,
    scale: str,
    repeats: bool,
    engine: str | None,
    seed: int,
) -> Result:
    """Audit confidences against outcomes; the parameters are those of `audit`."""
    if recalibrate is not None:
        calibrator_from_dict({"calibrator": recalibrate})
    ranking = frozenset(entry["name"] for entry in methods() if not entry["probability"])
    options = ReadOptions(scale=scale)
    log = None if _is_array(data) else foreign_tables(data, options=options, ranked=True)
    if log is not None:
        ranking |= log.ranking
    draws = None if _is_array(data) else draws_with_classes(data if log is None else log)
    meanings = []
    if draws is not None:
        texts = question_texts(data if log is None else log, draws)
        shared: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
        meanings = semantic_blocks(draws, engine=engine, texts=texts, **shared)
    common = {
        **document_head("audit", None if _is_array(data) else data, seed=seed),
        "source": source_name(data),
        "level": level,
        "bins": bins,
        "resamples": resamples,
        "recalibrated": recalibrate,
        "reading": {"way": "in memory"},
    }
    if log is not None:
        _require_usable(log)
    if meanings and log is None and _has_no_scores(data, confidence):
        empty: dict[str, Any] = {"dropped": {}, "dropped_rows": {}, "results": []}
        return Result({**common, **empty, "sem_ece": meanings})
    raw: dict[str, int] = {}
    if recalibrate is not None and log is None and not _is_study(data):
        raw = scores_outside(
            {"confidence": np.asarray(data)} if _is_array(data) else data,
            confidence=confidence,
            method=method,
            scale=scale,
            recalibrate=recalibrate,
        )
        ranking |= raw.keys()
    scores = _load(
        data if log is None else log,
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
        with naming(common["source"]):
            scores = _recalibrated(scores, recalibrate, seed, raw)
        ranking = frozenset()
    blocks = [
        audit_block(
            block,
            probability=block.keys["method"] not in ranking,
            bins=bins,
            level=level,
            resamples=resamples,
            seed=seed,
        )
        for block in scores.blocks(by=by)
    ]
    for entry in blocks:
        entry["notes"] += [] if log is None else log.notes
        if entry["method"] in raw:
            entry["notes"].append(
                f"{raw[entry['method']]:,} of the scores of {entry['method']} lie outside [0, 1]: "
                f"they are taken as scores, and {recalibrate} turns them into probabilities"
            )
    multiplicity = correct_for_number(blocks)
    blocks = [{**entry, "verdict": audit_verdict(entry)} for entry in blocks]
    return Result(
        {
            **common,
            "multiplicity": multiplicity,
            "dropped": dict(scores.dropped),
            "dropped_rows": dict(scores.dropped_rows),
            "emptied_models": scores.emptied,
            "results": blocks,
            "sem_ece": meanings,
        }
    )


def _is_array(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return True
    return isinstance(data, list | tuple) and not any(
        isinstance(item, str | Path) or hasattr(item, "columns") for item in data
    )


def _is_study(data: Any) -> bool:
    return isinstance(data, str | Path) and Study.is_study(data)


def _has_no_scores(data: Any, confidence: str | None) -> bool:
    """Return whether the table holds draws only: meanings and grades, no confidence."""
    if confidence is not None:
        return False
    if _is_study(data):
        return not Study(data).has("scores")
    return "confidence" not in column_names(scan_table(data), data)


def _require_usable(log: ForeignTables) -> None:
    """Say what is missing where a log has no confidence or no grade at all."""
    if log.scores.height and log.draws["correct"].null_count() == log.draws.height:
        raise InputError(
            "the log holds no grades",
            source=log.logs[0].source,
            hint="grade the answers first: calibrant import LOG --out FOLDER gives their tables",
        )
    if log.scores.height == 0:
        raise InputError(
            "the log holds grades but no confidence: one reply per question, without token "
            "probabilities or a stated confidence",
            source=log.logs[0].source,
            hint="run several epochs, ask for logprobs, or use calibrant's scorers; see the "
            "recipes in the documentation",
        )


def _load_log(log: ForeignTables, correct: Any, **options: Any) -> Scores:
    """Load a foreign log: like a study it holds refusals, and its draws are repeats."""
    options |= {"graded": True, "repeats": True, "scale": "fraction"}
    options["on_invalid"] = options["on_invalid"] or "drop"
    scores = load_scores(log.scores, correct=correct, **options)
    counts, rows = log.dropped()
    return replace(
        scores,
        dropped={**scores.dropped, **counts},
        dropped_rows={**scores.dropped_rows, **rows},
    )


def _load(data: Any, correct: Any, **options: Any) -> Scores:
    path = data if isinstance(data, str | Path) else None
    try:
        with naming(None if path is None else str(path)):
            return _read(data, correct, **options)
    except InputError as error:
        raise with_way_out(error) from None


def _read(data: Any, correct: Any, **options: Any) -> Scores:
    if isinstance(data, ForeignTables):
        return _load_log(data, correct, **options)
    if _is_study(data):
        options["graded"] = True
        options["on_invalid"] = options["on_invalid"] or "drop"
        data = Study(data).read("scores")
        # An imported log has a row per draw.
        options["repeats"] = options["repeats"] or "draw" in data.columns
    options["on_invalid"] = options["on_invalid"] or "error"
    if correct is not None and not isinstance(correct, str):
        arrays = {"confidence": np.asarray(data), "correct": np.asarray(correct)}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes["confidence"] != shapes["correct"] or arrays["correct"].ndim != 1:
            raise InputError(
                "confidence and correct must be one-dimensional and of equal length, got "
                f"{shapes['confidence']} and {shapes['correct']}"
            )
        return load_scores(arrays, **options)
    if _is_array(data):
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
        if column not in column_names(table, source):
            if correct is None:
                require_labels(None, source=source_name(source))
            continue
        # Both questions stop at the first row that answers them.
        some_row = collect(table.select(column).head(1), source).height > 0
        labelled = table.select(column).filter(pl.col(column).is_not_null()).head(1)
        if some_row and collect(labelled, source).height == 0:
            require_labels([], source=source_name(source))


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
