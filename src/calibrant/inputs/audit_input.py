"""What is given to an audit: arrays, tables, a study or a foreign log, as one scores table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.error_source import error_source
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.logs import ForeignTables
from calibrant.inputs.raw_scores import with_way_out
from calibrant.planning import require_labels
from calibrant.records import Scores, Study, load_scores, scan_table, source_name
from calibrant.records.columns import guessed_column, with_fields
from calibrant.records.tables import collect, column_names, plain_array

__all__ = ["has_no_scores", "is_array", "is_study", "load_rows", "require_usable", "rules_of"]


def is_array(data: Any) -> bool:
    """Return whether `data` holds confidences themselves, not a table or several of them."""
    if isinstance(data, np.ndarray):
        return True
    return isinstance(data, list | tuple) and not any(
        isinstance(item, str | Path) or hasattr(item, "columns") for item in data
    )


def is_study(data: Any) -> bool:
    """Return whether `data` is the path of a study folder."""
    return isinstance(data, str | Path) and Study.is_study(data)


def rules_of(data: Any, log: ForeignTables | None, options: AuditOptions) -> AuditOptions:
    """Return the options with the rules that this kind of input goes by.

    A study and a foreign log hold refusals, and grades that are shares; the draws of a log are
    repeated answers.
    """
    if log is not None:
        return replace(options, graded=True, repeats=True, on_invalid=options.on_invalid or "drop")
    if is_study(data):
        # An imported log has a row per draw.
        table = Study(data).table_path("scores")
        draws = table.is_file() and "draw" in column_names(scan_table(table), table)
        return replace(
            options,
            graded=True,
            repeats=options.repeats or draws,
            on_invalid=options.on_invalid or "drop",
        )
    return replace(options, on_invalid=options.on_invalid or "error")


def has_no_scores(data: Any, confidence: str | None) -> bool:
    """Return whether the table holds draws only: meanings and grades, no confidence."""
    if confidence is not None:
        return False
    if is_study(data):
        return not Study(data).has("scores")
    if isinstance(data, list | tuple):
        return all(has_no_scores(item, confidence) for item in data)
    return "confidence" not in column_names(scan_table(data), data)


def require_usable(log: ForeignTables) -> None:
    """Say what is missing where a log has no confidence or no grade at all."""
    if log.scores.height and log.draws["correct"].null_count() == log.draws.height:
        raise InputError(
            "the log holds no grades",
            source=log.logs[0].source,
            hint=Hint(
                "grade the answers first: {call} gives their tables",
                call=Call("import", "LOG", out="FOLDER"),
            ),
        )
    if log.scores.height == 0:
        made_up = [note for note in log.notes if "placeholder" in note]
        why = made_up or [
            "one reply per question, without token probabilities or a stated confidence"
        ]
        raise InputError(
            f"the log holds grades but no confidence: {why[0]}",
            source=log.logs[0].source,
            hint="run several epochs, ask for logprobs, or use calibrant's scorers; see the "
            "recipes in the documentation",
        )


def load_rows(data: Any, outcomes: Any, options: AuditOptions, ranking: Collection[str]) -> Scores:
    """Read and check the rows.

    Parameters
    ----------
    data, outcomes
        A log, or what `audit` was given.
    options
        Options with the rules of this input, see `rules_of`.
    ranking
        Methods whose score is no probability.
    """
    shared = {**options.rules, "non_probability": ranking, "features": list(options.by)}
    path = data if isinstance(data, str | Path) else None
    try:
        with error_source(None if path is None else str(path)):
            if isinstance(data, ForeignTables):
                return _log_rows(data, **options.columns, **shared)
            if outcomes is not None:
                names = {role: name for role, name in options.columns.items() if role != "correct"}
                return load_scores(_arrays(data, outcomes), **names, **shared)
            if is_array(data):
                raise InputError(
                    "an array of confidences needs an array of outcomes: audit(confidence, correct)"
                )
            table = Study(data).read("scores") if is_study(data) else data
            _refuse_without_labels(table, options.columns["correct"])
            return load_scores(table, **options.columns, **shared)
    except InputError as error:
        raise with_way_out(error) from None


def _log_rows(log: ForeignTables, **options: Any) -> Scores:
    # How the log wrote a confidence was known where it was read.
    scores = load_scores(log.scores, **{**options, "scale": "fraction"})
    counts, rows = log.dropped()
    return replace(
        scores,
        dropped={**scores.dropped, **counts},
        dropped_rows={**scores.dropped_rows, **rows},
    )


def _arrays(data: Any, outcomes: Any) -> dict[str, Any]:
    arrays = {"confidence": plain_array(data), "correct": plain_array(outcomes)}
    shapes = {name: array.shape for name, array in arrays.items()}
    if shapes["confidence"] != shapes["correct"] or arrays["correct"].ndim != 1:
        raise InputError(
            "confidence and correct must be one-dimensional and of equal length, got "
            f"{shapes['confidence']} and {shapes['correct']}"
        )
    return arrays


def _refuse_without_labels(data: Any, correct: str | None) -> None:
    """Say why a table without a single label cannot be audited, before its rows are read."""
    for source in data if isinstance(data, list | tuple) else [data]:
        table = with_fields(scan_table(source), [correct])
        names = column_names(table, source)
        column = correct or ("correct" if "correct" in names else guessed_column("correct", names))
        if column is None or column not in names:
            if correct is None:
                require_labels(None, source=source_name(source), columns=names)
            continue
        # Both questions stop at the first row that answers them.
        some_row = collect(table.select(column).head(1), source).height > 0
        labelled = table.select(column).filter(pl.col(column).is_not_null()).head(1)
        if some_row and collect(labelled, source).height == 0:
            require_labels([], source=source_name(source))
