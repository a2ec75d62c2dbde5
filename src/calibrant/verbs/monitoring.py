"""Parts of monitor: the stream in batches, what it lacks, and what it is held against."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.claims.data import data_warnings
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.epistemic.guard import ANSWER, GuardCheck
from calibrant.epistemic.policies import load_policy
from calibrant.epistemic.selective.policy import SelectivePolicy
from calibrant.inputs.coverage import reading_warnings
from calibrant.inputs.door import labels_of
from calibrant.inputs.labelled_rows import OpenLabels
from calibrant.inputs.objects import as_table, is_row
from calibrant.inputs.streams.row_streams import follow_file, read_stdin
from calibrant.planning.watching.batch import days_since_1970, instants
from calibrant.planning.watching.promise import PromiseWatch
from calibrant.planning.watching.watch import Baseline, CalibrationWatch, StreamBatch
from calibrant.records import Scores, load_scores
from calibrant.records.label_schema import WEIGHT
from calibrant.records.reading import Reading, joined_readings

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


def tables_of(sources: Any) -> Iterator[Any]:
    """Yield the tables of a stream one by one; single rows, as dictionaries, are gathered."""
    if isinstance(sources, list | tuple):
        yield from _gathered(sources, MOST_ROWS)
    elif isinstance(sources, Iterator):
        yield from sources
    else:
        yield as_table(sources)


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
) -> Iterable[StreamBatch]:
    """Yield the batches of a table: so many rows each, or a stretch of time."""
    size = _size(every)
    if time is None:
        step = size or max(1, rows.height)
        offset = watch.taken
        for number, start in enumerate(range(0, rows.height, step), start=offset + 1):
            yield _batch(f"batch {number}", float("nan"), rows.slice(start, step), named=named)
        return
    if time not in rows.columns:
        raise InputError(
            f"there is no column {time!r} for the time", source=source, hint=Hint("set {time}")
        )
    stamped = rows.with_columns(instants(rows[time], source).alias("stream_time"))
    stamped = stamped.sort("stream_time", maintain_order=True)
    if size:
        for start in range(0, stamped.height, size):
            part = stamped.slice(start, size)
            stamp = part["stream_time"][0]
            yield _batch(str(stamp), days_since_1970(stamp), part, named=named)
        return
    unit = _UNITS[str(every)]
    marked = stamped.with_columns(pl.col("stream_time").dt.truncate(unit).alias("stream_batch"))
    for part in marked.partition_by("stream_batch", maintain_order=True):
        stamp = part["stream_batch"][0]
        label = stamp.isoformat(" ", "hours") if every == "hour" else stamp.date().isoformat()
        yield _batch(label, days_since_1970(stamp), part, named=named)


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


def _size(every: str | int) -> int | None:
    text = str(every)
    if text.isdigit() and 0 < int(text) <= MOST_ROWS:
        return int(text)
    if text not in _UNITS:
        words = ", ".join(_UNITS)
        raise InputError(
            Hint("{every} is the length of a batch, got {0}", repr(every)),
            hint=Hint("give {0}, or a whole number of rows from 1 on", words),
        )
    return None


def _batch(label: str, days: float, rows: pl.DataFrame, *, named: bool) -> StreamBatch:
    labelled = rows.filter(pl.col("correct").is_not_null())
    return StreamBatch(
        label,
        days,
        labelled["confidence"].cast(pl.Float64).to_numpy(),
        labelled["correct"].cast(pl.Float64).to_numpy(),
        labelled["question_id"].to_numpy() if named else None,
        rows.height - labelled.height,
        labelled[ALONE].to_numpy() if ALONE in labelled.columns else None,
    )


class PartCounts:
    """Rows that were read and left out so far, and how their columns were known.

    Examples
    --------
    >>> import polars as pl
    >>> counts = PartCounts()
    >>> counts.add(Scores(pl.DataFrame({"correct": [1, 0]}), "a stream", {"outcome_missing": 1}))
    >>> counts.dropped, counts.warnings()[0]["text"]
    ({'outcome_missing': 1}, '33 % of the rows of the table are missing or unusable.')
    """

    def __init__(self) -> None:
        # Rows of days that a state has seen: those known already, and labels that came late.
        self.repeated = self.late = 0
        self.dropped: dict[str, int] = {}
        self._rows = self._weightless = 0
        self._weights: set[float] = set()
        self._readings: list[Reading] = []

    def add(self, scores: Scores) -> None:
        """Count a part."""
        for rule, count in scores.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + count
        self._rows += scores.frame.height
        self._weightless += scores.weightless.height
        # A part may be one row: weights differ within parts, or between them.
        if "weights" in scores.frame.columns:
            weights = scores.frame["weights"].to_numpy()
            self._weights |= {float(weights.min()), float(weights.max())}
        if scores.reading not in self._readings:
            self._readings.append(scores.reading)

    def seen_before(self, batch: StreamBatch, late: int) -> None:
        """Count a batch of a day that was seen before, of which `late` labels are new."""
        self.late += late
        self.repeated += batch.confidence.size + batch.unlabelled - late

    @property
    def reading(self) -> Reading:
        """How the parts were read."""
        return joined_readings(self._readings)

    def warnings(self) -> list[dict[str, Any]]:
        """Return what a reader has to know before the watch's own words."""
        lost = sum(self.dropped.values())
        whole = {"model": "model", "method": "", "n": self._rows, "accuracy": None}
        return [
            *data_warnings([{**whole, "dropped": lost, "expected": self._rows + lost}]),
            *reading_warnings(
                weightless=self._weightless,
                weights_unused=len(self._weights) > 1,
                reading=self.reading,
            ),
        ]


# Rows of traffic that are held against a policy: the most recent ones.
_RECENT = 10_000


def read_baselines(baseline: Any, columns: dict[str, Any]) -> dict[tuple[str, str], Baseline]:
    """Return the labelled rows of the last verification, with the weights of their draw."""
    store = labels_of(baseline, None, columns["correct"])
    named = True
    if store is not None:
        frame = OpenLabels(baseline, store).labelled(columns)[1]
    else:
        scores = load_scores(baseline, labels="optional", **columns)
        frame, named = scores.frame, "question_id" not in scores.assumed
        _require_outcomes(frame)
    found = {}
    for rows in frame.partition_by(["model", "method"], maintain_order=True):
        found[str(rows["model"][0]), str(rows["method"][0])] = Baseline(
            rows["confidence"].cast(pl.Float64).to_numpy(),
            rows["correct"].cast(pl.Float64).to_numpy(),
            rows["question_id"].to_numpy() if named else None,
            rows[WEIGHT].to_numpy() if WEIGHT in rows.columns else None,
        )
    return found


def _require_outcomes(frame: pl.DataFrame) -> None:
    open_rows = frame["correct"].null_count()
    if open_rows:
        raise InputError(
            f"{open_rows:,} of {frame.height:,} rows of the baseline have no outcome, and nobody "
            "knows how the others were chosen",
            hint=Hint("label it with {call}", call=Call("label serve", "TABLE")),
        )


def baseline_of(
    known: dict[tuple[str, str], Baseline] | None, key: tuple[str, str], source: str
) -> Baseline | None:
    """Return the baseline of a model and method; one that holds others only is refused."""
    if known is None:
        return None
    if key in known:
        return known[key]
    raise InputError(
        f"the baseline has no rows of {key[0]} / {key[1]}",
        source=source,
        hint="it holds " + ", ".join(" / ".join(pair) for pair in known),
    )


class Promise:
    """A saved policy whose promise is watched: by labels, and by the traffic itself.

    Parameters
    ----------
    path
        The policy's file.
    """

    def __init__(self, path: str | Path) -> None:
        self.policy, self.path = load_policy(path), str(path)
        promised = (
            isinstance(self.policy, SelectivePolicy)
            and self.policy.promise["certified"]
            and self.policy.promise["max_error"] is not None
            and (self.policy.threshold is not None or bool(self.policy.thresholds))
        )
        self.limit = float(self.policy.promise["max_error"]) if promised else None
        if self.limit is None and self.policy.profile is None:
            raise InputError(
                "the policy promises no error, so there is no promise to watch",
                source=str(path),
                hint=Hint(
                    "save one that does: {call}",
                    call=Call("decide", "TABLE", max_error=0.05, save="policy.json"),
                ),
            )
        made = self.policy.fitted_on
        self.key = (self.policy.models[0], str(made.get("method", "confidence")))
        self._rows: dict[tuple[str, str], pl.DataFrame] = {}

    def see(self, key: tuple[str, str], rows: pl.DataFrame) -> None:
        """Take rows of the stream, labelled or not; the most recent ones are kept."""
        profile = self.policy.profile
        if profile is None:
            return
        wanted = [name for name in (profile.group, ANSWER, *profile.ends) if name in rows.columns]
        seen = rows.select(list(dict.fromkeys(wanted)))
        if key in self._rows:
            seen = pl.concat([self._rows[key], seen], how="vertical_relaxed")
        self._rows[key] = seen.tail(_RECENT)

    def told(self, check: GuardCheck, traffic: str) -> dict[str, Any]:
        """Return what a look found as plain data, with the next command on the files at hand."""
        call = check.step(str(self.policy.fitted_on.get("source", "TABLE")), traffic)
        return {**check.to_dict(), "next": None if call is None else call.shell()}

    def traffic(self) -> GuardCheck | None:
        """Return whether the traffic is still what the policy was made for."""
        found = self._rows.get(self.key)
        if found is None and len(self._rows) == 1:
            found = next(iter(self._rows.values()))
        return None if found is None or not found.height else self.policy.check(found)


def promise_watch(
    promise: Promise | None, key: tuple[str, str], *, horizon: int, alpha: float
) -> PromiseWatch | None:
    """Return a watch for the model and method that the policy was made for, else None."""
    if promise is None or promise.limit is None or key != promise.key:
        return None
    delta = promise.policy.promise.get("delta")
    return PromiseWatch(promise.limit, horizon, alpha, delta, promise.policy.made)


def require_watched(promise: Promise | None, watches: Iterable[CalibrationWatch]) -> None:
    """Refuse a stream that does not hold what the policy was made for."""
    if promise is None or promise.limit is None:
        return
    streams = list(watches)
    if any(watch.promise is not None for watch in streams):
        return
    # Traffic without labels may go by another name: a file has no column that names its model.
    if any(watch.rows for watch in streams) or promise.traffic() is None:
        raise InputError(
            f"the stream has no rows of {' / '.join(promise.key)}, for which the policy was made",
            source=promise.path,
        )


def marked_rows(
    promise: Promise | None, watch: CalibrationWatch, rows: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows with a column that says which of them the policy answers alone.

    The policy sees them as traffic too.
    """
    if promise is not None:
        promise.see((watch.keys["model"], watch.keys["method"]), rows)
    if promise is None or watch.promise is None or not isinstance(promise.policy, SelectivePolicy):
        return rows
    missing = [name for name in promise.policy.needs if name not in rows.columns]
    if missing:
        raise InputError(
            f"the policy needs the column {missing[0]!r}, which the stream does not have",
            source=promise.path,
        )
    return rows.with_columns(pl.Series(ALONE, promise.policy.decide_many(rows)))
