"""Confidences of a table replaced by what they mean, by a saved map for every model and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.records.mend_map import MENDED, MendMap, load_maps
from calibrant.records.score_table import Scores


def mended_scores(scores: Scores, path: str | Path) -> Scores:
    """Return the scores with mended confidences; the reading says so, and where it is doubtful.

    Parameters
    ----------
    scores
        A checked table.
    path
        A file that `mend` saved. Its maps are taken by model and method; a single one also serves
        a table with a single model and method, whatever these are called.
    """
    maps, frame = load_maps(path), scores.frame
    keys = frame.select("model", "method").unique(maintain_order=True).rows()
    confidence = frame["confidence"].to_numpy().copy()
    told, doubts = [], []
    for model, method in keys:
        fitted = _map_of(maps, model, method, alone=len(keys) == 1, source=str(path))
        rows = ((frame["model"] == model) & (frame["method"] == method)).to_numpy()
        name = f"{model}: " if len(keys) > 1 else ""
        if fitted.verdict != MENDED:
            told.append(f"{name}nothing was mended ({fitted.verdict})")
            continue
        stated = confidence[rows]
        confidence[rows] = fitted.probabilities(stated)
        if fitted.reference and (found := fitted.check(stated.tolist())).shifted:
            doubts.append(name + found.text)
    note = " ".join([f"Confidences are mended by {path}.", *(f"{part}." for part in told), *doubts])
    mended = frame.with_columns(confidence=pl.Series(np.asarray(confidence)))
    return replace(scores, frame=mended, reading=replace(scores.reading, mended=note))


def _map_of(
    maps: Sequence[MendMap], model: str, method: str, *, alone: bool, source: str
) -> MendMap:
    """Return the map of a model and method, or refuse: a map of another model promises nothing."""
    same = [fitted for fitted in maps if fitted.model == model and fitted.method == method]
    own = [fitted for fitted in maps if fitted.model == model]
    for found in (same, own, maps if alone else ()):
        if len(found) == 1:
            return found[0]
    names = ", ".join(f"{fitted.model} ({fitted.method})" for fitted in maps)
    raise InputError(
        f"there is no map for {model} ({method}); the file has {names}",
        source=source,
        hint=Hint("make one of this model's labels with `calibrant mend`, or leave out {mend}"),
    )
