"""Arrays, tables, studies and logs as blocks of rows, read into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from calibrant.claims.data import coverage_document
from calibrant.confidence import methods
from calibrant.core.error_source import error_source
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
from calibrant.inputs.audit_source import AuditSource, SourceBlock
from calibrant.inputs.coverage import table_coverage
from calibrant.inputs.draws import draws_with_classes, question_texts
from calibrant.inputs.logs import ForeignTables, foreign_tables
from calibrant.inputs.provenance import document_head
from calibrant.inputs.raw_scores import scores_outside
from calibrant.metrics import PlattCalibrator, calibrator_from_dict, cross_fitted
from calibrant.metrics.row_block import RowBlock
from calibrant.records import Block, Scores
from calibrant.records.convert import ReadOptions
from calibrant.records.tables import plain_array

__all__ = ["row_source"]

_ARRAYS = "arrays in memory"
_IN_MEMORY = {"way": "in memory"}
_REPEATED = (
    "rows of one question depend on each other: perfect calibration is not tested, the mean gap is"
)
_GRADED = "grades between 0 and 1: perfect calibration is not tested, the mean gap is"


def row_source(data: Any, outcomes: Any, options: AuditOptions) -> AuditSource:
    """Open what an audit was given.

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
    opened = data if log is None else log
    draws = None if is_array(data) else draws_with_classes(opened, options.columns, options.by)
    texts = None if draws is None else question_texts(opened, draws)
    head = _head(data, options)
    if log is not None:
        require_usable(log)
    elif draws is not None and has_no_scores(data, options.columns["confidence"]):
        nothing = partial(coverage_document, [], rows=0, rows_read=0)
        return AuditSource(head, _IN_MEMORY, lambda: iter(()), nothing, draws=draws, texts=texts)
    raw = {} if log is not None or is_study(data) else _raw_scores(data, options)
    rankings = frozenset(entry["name"] for entry in methods() if not entry["probability"])
    rankings |= raw.keys() | (frozenset() if log is None else log.ranking)
    scores = load_rows(data if log is None else log, outcomes, options, rankings)
    if options.recalibrate is not None:
        with error_source(head["source"]):
            scores = _recalibrated(scores, options.recalibrate, options.seed, raw)
        rankings = frozenset()
    return AuditSource(
        head,
        _IN_MEMORY,
        partial(_blocks, scores, options, rankings, _notes(log), _raw_notes(raw, options)),
        partial(table_coverage, scores),
        dict(scores.dropped),
        dict(scores.dropped_rows),
        scores.emptied,
        draws,
        texts,
    )


def _notes(log: ForeignTables | None) -> Sequence[str]:
    return [] if log is None else log.notes


def _raw_notes(raw: dict[str, int], options: AuditOptions) -> dict[str, str]:
    return {
        name: f"{count:,} of the scores of {name} lie outside [0, 1]: they are taken as scores, "
        f"and {options.recalibrate} turns them into probabilities"
        for name, count in raw.items()
    }


def _head(data: Any, options: AuditOptions) -> dict[str, Any]:
    arrays = is_array(data)
    return document_head(
        "audit",
        None if arrays else data,
        seed=options.seed,
        settings=options.settings,
        source=_ARRAYS if arrays else None,
    )


def _raw_scores(data: Any, options: AuditOptions) -> dict[str, int]:
    """Count, by method, the scores outside [0, 1] that recalibration is to turn into some."""
    if options.recalibrate is None:
        return {}
    return scores_outside(
        {"confidence": plain_array(data)} if is_array(data) else data,
        confidence=options.columns["confidence"],
        method=options.columns["method"],
        scale=options.scale,
        recalibrate=options.recalibrate,
    )


def _blocks(
    scores: Scores,
    options: AuditOptions,
    rankings: Collection[str],
    notes: Sequence[str],
    notes_by_method: dict[str, str],
) -> Iterator[SourceBlock]:
    for block in scores.blocks(by=options.by):
        method = block.keys["method"]
        probability = method not in rankings
        own = _untested(block) if probability else []
        if options.bins_of(method) != options.bins:
            own.append(f"its calibration error has {options.bins_of(method)} bins, as Sem-ECE has")
        own += [*notes, *([notes_by_method[method]] if method in notes_by_method else [])]
        made = partial(_block, block, options, probability)
        yield SourceBlock(block.keys, made, own)


def _untested(block: Block) -> list[str]:
    """Say why perfect calibration is not tested, where it is not."""
    if block.units is not None:
        return [_REPEATED]
    return [_GRADED] if bool(((block.correct > 0) & (block.correct < 1)).any()) else []


def _block(
    block: Block, options: AuditOptions, probability: bool, rng: np.random.Generator
) -> RowBlock:
    return RowBlock(
        block.confidence,
        block.correct,
        block.weights,
        block.units,
        probability=probability,
        bins=options.bins_of(block.keys["method"]),
        level=options.level,
        resamples=options.resamples,
        rng=rng,
    )


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
