"""Unlabelled traffic: what a promise is made for, or checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.epistemic.guard import ANSWER
from calibrant.records import load_scores, source_name

_CONFIDENCE = "confidence"


def read_traffic(
    traffic: Any, table: Mapping[str, Any], columns: Sequence[str] | None
) -> pl.DataFrame:
    """Return rows with a confidence, labelled or not; `columns` are kept, None keeps all."""
    with error_source(source_name(traffic)):
        options = {**table, "cluster": None, "repeats": True}
        frame = load_scores(traffic, labels="optional", features=columns, **options).frame
        for name in columns or ():
            if name not in frame.columns:
                raise InputError(
                    f"the traffic has no column {name!r}", hint=did_you_mean(name, frame.columns)
                )
        if not frame.height:
            raise InputError("the traffic holds no rows", hint=Hint("give recent rows"))
    return frame


def traffic_of(
    traffic: pl.DataFrame, keys: Mapping[str, str], features: Sequence[str], group: str | None
) -> pl.DataFrame:
    """Return the traffic of one model and method; without a column of them, all of it."""
    rows = traffic
    for column in ("model", "method"):
        if traffic[column].n_unique() > 1 or keys[column] in traffic[column]:
            rows = rows.filter(pl.col(column) == keys[column])
    if not rows.height:
        raise InputError(f"the traffic has no rows of {keys['model']} / {keys['method']}")
    names = [_CONFIDENCE, *features, *([group] if group else [])]
    names += [ANSWER] if ANSWER in rows.columns else []
    return rows.select(list(dict.fromkeys(names)))
