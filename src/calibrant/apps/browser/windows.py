"""The rows behind a dot of the tab Watch: a stretch of time is one more group to list rows by."""

from dataclasses import replace

import polars as pl

from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.state import State
from calibrant.apps.browser.tabs import parameters
from calibrant.core.errors import InputError
from calibrant.data.sources.rows import Rows
from calibrant.verbs.monitoring import batch_length, in_batches

WATCHED, SERVED = "watched", "served"
"""Names of the groups: batches as `monitor` makes them of each model, days of what was served."""


def resolved(state: State, data: AppData) -> State:
    """Return the state with a stretch of time as a column of the rows, made when it is asked for.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/t.csv"
    >>> _ = pl.DataFrame({"confidence": [0.5, 0.6, 0.7], "correct": [1, 0, 1]}).write_csv(path)
    >>> data = AppData(path)
    >>> state = State(group=("watched", "batch 2"), options={"monitor.every": "2"})
    >>> [row["row"] for row in data.rows().page(resolved(state, data).rows()).rows]
    [3]
    """
    rows = data.rows()
    name, value = state.group or ("", "")
    if name not in (WATCHED, SERVED) or name in rows.facets:
        return state
    request = state.settings("monitor", parameters("monitor")) if name == WATCHED else {}
    time = request.get("time") if name == WATCHED else "time"
    total = batch_length(request.get("every"), time)
    if len(data.paths) > 1 and (time is None or str(total).isdigit()):
        raise InputError(
            "rows of several files are counted file by file, so that a dot cannot list its own",
            hint="name the column of the time in the settings of Watch",
        )
    column = f"{name} {time} {total}"
    rows.add_column(column, lambda: _names(rows, name, time, total))
    choice = state.model if state.model in rows.models else None
    return replace(state, group=(column, value), model=choice)


def _names(rows: Rows, name: str, time: str | None, whole: str | int) -> pl.Series:
    """Return the name of each row's batch, by place; empty where a row belongs to none."""
    indexed = rows.index.select("place", "model", "method", "confidence").sort("place")
    if time is not None:
        indexed = indexed.with_columns(rows.stored.whole(time)[time])
    if name == SERVED:
        parts = [indexed]
    else:
        # What states no confidence is in no batch of the watch.
        confidence = indexed.filter(pl.col("confidence").is_not_null())
        parts = confidence.partition_by("model", "method", maintain_order=True)
    marked = [in_batches(part, time, whole, "the table") for part in parts]
    names = pl.concat(part.select("place", "stream_batch") for part in marked)
    return indexed.join(names, on="place", how="left", maintain_order="left")["stream_batch"]
