"""Parts of monitor: the stream in batches, what it lacks, and what it is held against."""

import dataclasses
import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.data import Scores, load_scores, source_name
from calibrant.data.label_schema import WEIGHT
from calibrant.data.reading import Reading, joined_readings
from calibrant.data.score_table import CLUSTER
from calibrant.data.sources.coverage import reading_warnings
from calibrant.data.sources.objects import as_table, follow_file, is_row, read_stdin
from calibrant.data.sources.options import ReadingOptions
from calibrant.findings.claims.data import data_warnings
from calibrant.findings.documents.entries import DataWarning
from calibrant.labels.pool import OpenLabels
from calibrant.labels.watching.batch import (
    Baseline,
    StreamBatch,
    instants,
    within_days,
)
from calibrant.labels.watching.watch import CalibrationWatch
from calibrant.trust.traffic_shift import level_texts
from calibrant.verbs.opening.open_input import labels_of, read_scores

_STREAM_ROWS = 100
MOST_ROWS = 10**12
# Column that says which rows a policy answers alone.
ALONE = "policy_answers_alone"
_UNITS = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}


def batch_length(every: str | int | None, time: str | None) -> str | int:
    """Return the length of a batch: by default a day where there is a time, else 100 rows."""
    if every is None:
        return "day" if time else _STREAM_ROWS
    return every


def open_stream(
    sources: Any, every: str | int, follow: float | None, stream: str | None
) -> tuple[Any, str | None]:
    """Return the tables, and how messages call them where rows keep coming."""
    rows = _size(every) or _STREAM_ROWS
    if isinstance(sources, Iterator):
        return _gathered(sources, rows), stream
    inputs = [sources] if isinstance(sources, str | Path) else sources
    if not isinstance(inputs, list) or not all(isinstance(part, str | Path) for part in inputs):
        return sources, stream
    if "-" in inputs:
        if len(inputs) > 1:
            raise InputError("standard input (-) is not mixed with files")
        return read_stdin(rows), "standard input"
    if follow is not None:
        if len(inputs) != 1:
            raise InputError(f"one growing file can be followed, got {len(inputs)}")
        return follow_file(Path(inputs[0]), rows, follow), str(inputs[0])
    return sources, stream


def tables_of(sources: Any, columns: dict[str, Any], stream: str | None) -> Iterator[Scores]:
    """Yield the tables of a stream one by one; messages count the rows of all that came before."""
    if isinstance(sources, list | tuple):
        parts = _gathered(sources, MOST_ROWS)
    else:
        parts = sources if isinstance(sources, Iterator) else iter([as_table(sources)])
    rows_before = 0
    for part in parts:
        with error_source(stream or source_name(part), rows_before=rows_before):
            scores = read_scores(part, columns, ungraded=True)
        if stream is not None:
            rows_before += len(part)
        yield scores


def _gathered(parts: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield tables as they come, and rows in tables of at most so many."""
    rows: list[Any] = []
    for part in parts:
        if not is_row(part):
            yield as_table(part)
            continue
        rows.append(part)
        if len(rows) == most:
            yield as_table(rows)
            rows = []
    if rows:
        yield as_table(rows)


def stream_batches(
    rows: pl.DataFrame,
    time: str | None,
    every: str | int,
    source: str,
    watch: CalibrationWatch,
    *,
    named: bool,
    group: str | None,
) -> Iterator[StreamBatch]:
    """Yield the batches of a table: so many rows each, or a stretch of time."""
    _require_group(rows, group, source)
    marked = in_batches(rows, time, every, source, taken=watch.taken)
    for part in marked.partition_by("stream_number", maintain_order=True):
        stamp = part["stream_time"][0]
        labelled = part.filter(pl.col("correct").is_not_null())
        yield StreamBatch(
            part["stream_batch"][0],
            math.nan if stamp is None else stamp.timestamp() / 86_400.0,
            labelled["confidence"].cast(pl.Float64).to_numpy(),
            labelled["correct"].cast(pl.Float64).to_numpy(),
            labelled["question_id"].to_numpy() if named else None,
            part.height - labelled.height,
            labelled[ALONE].to_numpy() if ALONE in labelled.columns else None,
            None if group is None else level_texts(labelled[group]).to_numpy(),
            None if group is None else dict(level_texts(part[group]).value_counts().iter_rows()),
            labelled[CLUSTER].to_numpy() if CLUSTER in labelled.columns else None,
        )


def in_batches(
    rows: pl.DataFrame, time: str | None, every: str | int, source: str, *, taken: int = 0
) -> pl.DataFrame:
    """Return rows in the order of time, each with number, name and time of its batch.

    Columns ``stream_number``, ``stream_batch`` and ``stream_time`` (null where there is no time).
    """
    size, place = _size(every), pl.int_range(pl.len())
    by_size = (place // (size or max(1, rows.height))).alias("stream_number")
    if time is None:
        name = pl.format("batch {}", by_size + taken + 1).alias("stream_batch")
        return rows.with_columns(by_size, name, pl.lit(None, pl.Datetime).alias("stream_time"))
    if time not in rows.columns:
        rule = f"there is no column {time!r} for the time"
        raise InputError(rule, source=source, hint=Hint("set {time}"))
    stamped = rows.with_columns(instants(rows[time], source).alias("stream_time"))
    stamped = stamped.sort("stream_time", maintain_order=True)
    moment = pl.col("stream_time")
    if size:
        first = moment.first().over("stream_number")
        stamped = stamped.with_columns(by_size).with_columns(first)
    else:
        unit = moment.dt.truncate(_UNITS[str(every)])
        stamped = stamped.with_columns(unit, unit.rle_id().alias("stream_number"))
    names = {stamp: _batch_name(stamp, every) for stamp in stamped["stream_time"].unique()}
    by_name = moment.replace_strict(names, return_dtype=pl.String)
    return stamped.with_columns(by_name.alias("stream_batch"))


def _batch_name(stamp: dt.datetime, whole: str | int) -> str:
    if whole in ("day", "week", "month"):
        return stamp.date().isoformat()
    return stamp.isoformat(" ", "hours") if whole == "hour" else str(stamp)


def in_order(batch: StreamBatch, watch: CalibrationWatch, coming: bool, source: str) -> StreamBatch:
    """Return a batch that is not older than the last one.

    Rows that keep coming may come late: they count when they come. Files in the wrong order are
    refused, as a change would seem to begin after its alarm.
    """
    if not batch.time < watch.last_time:
        return batch
    if coming:
        return dataclasses.replace(batch, label=watch.last_label, time=watch.last_time)
    raise InputError(
        f"rows of {batch.label} come after rows of {watch.last_label}, and a change is found in "
        "the order of time alone",
        source=source,
        hint="give the tables in the order of their times",
    )


def _size(whole: str | int) -> int | None:
    text = str(whole)
    if text.isdigit() and 0 < int(text) <= MOST_ROWS:
        return int(text)
    if text not in _UNITS:
        hint = Hint("give {0}, or a whole number of rows from 1 on", ", ".join(_UNITS))
        raise InputError(Hint("{every} is the length of a batch, got {0}", repr(whole)), hint=hint)
    return None


def _require_group(rows: pl.DataFrame, group: str | None, source: str) -> None:
    if group is not None and group not in rows.columns:
        rule = f"there is no column {group!r} of groups"
        raise InputError(rule, source=source, hint=Hint("set {group}"))


class PartCounts:
    """Rows that were read and left out so far, and how their columns were known.

    Examples
    --------
    >>> import polars as pl
    >>> counts = PartCounts()
    >>> counts.add(Scores(pl.DataFrame({"correct": [1, 0]}), "a stream", {"outcome_missing": 1}))
    >>> dict(counts.dropped), counts.warnings()[0]["text"]
    ({'outcome_missing': 1}, '33 % of the rows of the table are missing or unusable.')
    """

    def __init__(self) -> None:
        # Rows of days that a state has seen: those known already, and labels that came late.
        self.repeated = self.late = 0
        self.dropped: Counter[str] = Counter()
        self._arrived: defaultdict[int, Counter[float]] = defaultdict(Counter)
        self._rows = self._weightless = 0
        self._weights: set[float] = set()
        self._readings: list[Reading] = []

    def read(
        self, parts: Iterable[Scores]
    ) -> Iterator[tuple[tuple[str, str], pl.DataFrame, Scores]]:
        """Count parts as they come; yield the rows of each model and method."""
        for scores in parts:
            self.add(scores)
            for rows in scores.frame.partition_by(["model", "method"], maintain_order=True):
                yield (str(rows["model"][0]), str(rows["method"][0])), rows, scores

    def add(self, scores: Scores) -> None:
        """Count a part."""
        self.dropped.update(scores.dropped)
        self._rows += scores.frame.height
        self._weightless += scores.weightless.height
        # A part may be one row: weights differ within parts, or between them.
        if "weights" in scores.frame.columns:
            weights = scores.frame["weights"].to_numpy()
            self._weights |= {float(weights.min()), float(weights.max())}
        if scores.reading not in self._readings:
            self._readings.append(scores.reading)

    def seen_before(self, batch: StreamBatch, new: int = 0) -> None:
        """Count a batch of a day that was seen before, of which some labels are new."""
        self.repeated += batch.confidence.size + batch.unlabelled - new

    def wait(self, watch: CalibrationWatch, batch: StreamBatch) -> None:
        """Let the new labels of a batch wait until their day is complete."""
        fresh = watch.new_labels(batch)
        if batch.time <= watch.late.newest:
            self.seen_before(batch, fresh.correct.size)
        watch.late.take(fresh, batch.confidence.size + batch.unlabelled)
        self._arrived[id(watch)][batch.time] += fresh.correct.size

    def settle(self, watches: Iterable[CalibrationWatch]) -> None:
        """Judge the days of each watch that are complete by now."""
        for watch in watches:
            if id(watch) in self._arrived:
                self.late += watch.settle(self._arrived[id(watch)])

    @property
    def reading(self) -> Reading:
        """How the parts were read."""
        return joined_readings(self._readings)

    def warnings(self) -> list[DataWarning]:
        """Return what a reader has to know before the watch's own words."""
        missing, unused = self.dropped.total(), len(self._weights) > 1
        whole = {"model": "model", "method": "", "n": self._rows, "accuracy": None}
        return [
            *data_warnings([{**whole, "dropped": missing, "expected": self._rows + missing}]),
            *reading_warnings(
                weightless=self._weightless, weights_unused=unused, reading=self.reading
            ),
        ]


def read_baselines(
    baseline: Any,
    columns: dict[str, Any],
    group: str | None,
    time: str | None,
    every: str | int,
) -> dict[tuple[str, str], Baseline] | None:
    """Return the labelled rows of the last verification, with the weights of their draw.

    Where they have a time, they are dated as the batches of the stream are.
    """
    if baseline is None:
        return None
    with error_source(source_name(baseline)):
        frame, names = _baseline_rows(baseline, columns)
        _require_group(frame, group, source_name(baseline))
    baselines = {}
    dated = time is not None and time in frame.columns
    for rows in frame.partition_by(["model", "method"], maintain_order=True):
        day = None
        if dated:
            rows = in_batches(rows, time, every, source_name(baseline))
            day = rows["stream_time"].dt.timestamp("us").to_numpy() / 86_400e6
        unit = CLUSTER if CLUSTER in rows.columns else "question_id" if names else None
        units = None if unit is None else rows[unit].to_numpy()
        baselines[str(rows["model"][0]), str(rows["method"][0])] = Baseline(
            rows["confidence"].cast(pl.Float64).to_numpy(),
            rows["correct"].cast(pl.Float64).to_numpy(),
            units if day is None else within_days(units, day),
            rows[WEIGHT].to_numpy() if WEIGHT in rows.columns else None,
            None if group is None else level_texts(rows[group]).to_numpy(),
            day,
        )
    return baselines


def _baseline_rows(baseline: Any, columns: dict[str, Any]) -> tuple[pl.DataFrame, bool]:
    store = labels_of(baseline, None, columns["correct"])
    if store is not None:
        return OpenLabels(baseline, store).labelled(ReadingOptions(**columns))[1], True
    scores = load_scores(baseline, labels="optional", **columns)
    frame = scores.frame
    open_rows = frame["correct"].null_count()
    if open_rows:
        raise InputError(
            f"{open_rows:,} of {frame.height:,} rows of the baseline have no outcome, and nobody "
            "knows how the others were chosen",
            hint=Hint("label it with {call}", call=Call("label serve", "TABLE")),
        )
    return frame, "question_id" not in scores.assumed


def baseline_of(
    baselines: dict[tuple[str, str], Baseline] | None, key: tuple[str, str], source: str
) -> Baseline | None:
    """Return the baseline of a model and method; one that holds others only is refused."""
    if baselines is None:
        return None
    if key in baselines:
        return baselines[key]
    raise InputError(
        f"the baseline has no rows of {key[0]} / {key[1]}",
        source=source,
        hint="it holds " + ", ".join(" / ".join(pair) for pair in baselines),
    )
