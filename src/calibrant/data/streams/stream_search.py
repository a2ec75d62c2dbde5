"""Rows of a streamed table that hang together, as far as stretches of its rows can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError
from calibrant.data import batches, load_scores
from calibrant.data.formats import is_url
from calibrant.data.groupings import block_dependence
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.streams.streaming import Streamed, scan_part
from calibrant.metrics.stats.dependence import Dependence, DependentGroups

# Rows that are looked at, in stretches: neighbours of a sorted table stay beside each other, and
# five of them cost a tenth of an audit of 10,000,000 rows, 64 would cost a third.
_LOOKED_AT, _LEAST_STRETCH, _STRETCHES = 30_000, 2_000, 5
# With so many rows of a group the stretches saw it: in the whole table it has more of them.
_SEEN = 5
_WHOLE = ("model", "method")


Dependences: TypeAlias = dict[tuple[str, ...], Dependence]
"""What hangs together by model, method and perhaps a column of groups."""


def stream_search(
    streamed: Streamed, request: ReadingOptions, rows: int, by: Sequence[str]
) -> Dependences:
    """Search stretches of a table that is read in parts for rows that hang together.

    Parameters
    ----------
    streamed
        The table and its columns.
    request
        How it is read.
    rows
        Rows of the whole table.
    by
        Columns whose values are audited one by one.
    """
    dependences: Dependences = {}
    # An address is read once: stretches of it would be read again.
    if is_url(streamed.source):
        return dependences
    frame = _stretches(streamed, rows)
    how = {**asdict(request), "scale": streamed.reading.scale, "on_invalid": "drop"}
    try:
        scores = load_scores(frame, **how, others=True)
    except InputError:
        # What a few rows break is told where all are read.
        return dependences
    share = max(rows / frame.height, 1.0)
    for block in scores.blocks():
        result = block_dependence(scores, block)
        if result is not None:
            key = block.keys["model"], block.keys["method"]
            dependences[key] = _of_all_rows(result, share, frame.height)
            for column in {*by} & result.columns:
                # What is said of one topic is not said of others: topics are no clusters in it.
                beyond = block_dependence(scores, block, (column,)) or result
                dependences[(*key, column)] = _of_all_rows(beyond, share, frame.height)
    return dependences


def dependence_of(dependences: Dependences, keys: Mapping[str, str]) -> Dependence | None:
    """Return what hangs together of a model and method, or of a group of its rows."""
    model, method, *columns = (name if name not in _WHOLE else key for name, key in keys.items())
    whole = dependences.get((model, method))
    return dependences.get((model, method, *columns), whole)


def _of_all_rows(result: Dependence, share: float, looked_at: int) -> Dependence:
    """Return what stretches of a table say of all its rows."""
    growth = tuple(_in_all_rows(each, share) for each in result.groups)
    return replace(result, groups=growth, looked_at=looked_at)


def _in_all_rows(groups: DependentGroups, share: float) -> DependentGroups:
    """Return groups with the inflation of the whole table: those seen well have more rows there."""
    if groups.grouping.codes.size < _SEEN * groups.count:
        return groups
    return replace(groups, inflation=math.sqrt(1 + (groups.inflation**2 - 1) * share))


def _stretches(streamed: Streamed, rows: int) -> pl.DataFrame:
    """Return evenly spread stretches of a table with all its columns that may hold groups."""
    files = batches.parquet_files(streamed.source)
    stretches = max(min(rows // _LEAST_STRETCH, _STRETCHES), 1)
    length = max(min(_LOOKED_AT, rows) // stretches, 1)
    targets = {number * (rows // stretches) for number in range(stretches)}
    parts, first = [], 0
    for file in files:
        scan = scan_part(file, streamed.source)
        kinds = scan.collect_schema()
        names = [name for name, kind in kinds.items() if not kind.is_nested()]
        count = int(scan.select(pl.len()).collect().item())
        for start in sorted(place for place in targets if first <= place < first + count):
            # Cut first: columns are read to the end where they are chosen before.
            parts.append(scan.slice(start - first, length).select(names))
        first += count
    return pl.concat(pl.collect_all(parts), how="diagonal_relaxed")
