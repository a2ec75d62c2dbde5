"""`monitor`: watch calibration, and the promise of a saved policy, over time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import polars as pl

from calibrant.core import shared_options as opt
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.verb import INPUT, Check, Option, Supplied, verb
from calibrant.data import source_name
from calibrant.data.sources.input import document_head, input_files, recorded
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims import Claim
from calibrant.findings.claims.labels import (
    day_warnings,
    late_warnings,
    monitor_claims,
    waiting_warnings,
)
from calibrant.findings.documents.fields import MonitorFields, typed
from calibrant.findings.documents.labels import MonitorEntry
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.labels.watching.watch import CalibrationWatch, load_state, save_state
from calibrant.report.result import MonitorResult
from calibrant.trust.policies import load_policy
from calibrant.trust.policy import SelectivePolicy
from calibrant.trust.traffic_shift import ANSWER, GuardCheck, with_callers_words
from calibrant.verbs import monitoring
from calibrant.verbs.monitoring import ALONE

# Rows of traffic that are held against a policy: the most recent ones.
_RECENT = 10_000


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
            call = Call("decide", "TABLE", max_error=0.05, save="policy.json")
            raise InputError(
                "the policy promises no error, so there is no promise to watch",
                source=str(path),
                hint=Hint("save one that does: {0}", call),
            )
        origin = self.policy.fitted_on
        self.key = (self.policy.models[0], str(origin.get("method", "confidence")))
        self._rows: dict[tuple[str, str], pl.DataFrame] = {}

    def watch(self, key: tuple[str, str], horizon: int, alpha: float) -> PromiseWatch | None:
        """Return a watch for the model and method that the policy was made for, else None."""
        if self.limit is None or key != self.key:
            return None
        delta = self.policy.promise.get("delta")
        return PromiseWatch(self.limit, horizon, alpha, delta, self.policy.made)

    def marked(self, watch: CalibrationWatch, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with a column that says which of them the policy answers alone.

        The policy sees them as traffic too, labelled or not; the most recent ones are kept.
        """
        profile, key = self.policy.profile, (watch.keys["model"], watch.keys["method"])
        if profile is not None:
            rows = with_callers_words(rows, [profile.group])
            target = dict.fromkeys((profile.group, ANSWER, *profile.ends))
            observed = rows.select([name for name in target if name in rows.columns])
            if key in self._rows:
                observed = pl.concat([self._rows[key], observed], how="vertical_relaxed")
            self._rows[key] = observed.tail(_RECENT)
        if watch.promise is None or not isinstance(self.policy, SelectivePolicy):
            return rows
        rows = with_callers_words(rows, self.policy.needs)
        missing = [name for name in self.policy.needs if name not in rows.columns]
        if missing:
            rule = f"the policy needs the column {missing[0]!r}, which the stream does not have"
            raise InputError(rule, source=self.path)
        return rows.with_columns(pl.Series(ALONE, self.policy.decide_many(rows)))

    def told(self, check: GuardCheck, traffic: str) -> dict[str, Any]:
        """Return what a look found as plain data, with the next command on the files at hand."""
        call = check.step(str(self.policy.fitted_on.get("source", "TABLE")), traffic)
        return {**check.to_dict(), "next": None if call is None else call.shell()}

    def traffic(self) -> GuardCheck | None:
        """Return whether the traffic is still what the policy was made for."""
        streams = list(self._rows.values())
        rows = self._rows.get(self.key, streams[0] if len(streams) == 1 else None)
        return None if rows is None or not rows.height else self.policy.check(rows)


def require_watched(
    promise: Promise | None, watches: Iterable[CalibrationWatch], source: str | None
) -> None:
    """Refuse a stream without rows, or one that does not hold what the policy was made for."""
    streams = list(watches)
    if not streams:
        raise InputError("the stream held no rows", source=source)
    if promise is None or promise.limit is None or any(watch.promise for watch in streams):
        return
    # Traffic without labels may go by another name: a file has no column that names its model.
    if any(watch.rows for watch in streams) or promise.traffic() is None:
        rule = f"the stream has no rows of {' / '.join(promise.key)}, for which the policy was made"
        raise InputError(rule, source=promise.path)


def _drifted(document: Mapping[str, Any]) -> str | None:
    observed: MonitorFields = typed(document)
    alarms = sum(entry.alarm is not None for entry in observed.results)
    if alarms:
        return f"calibration has drifted: {alarms} alarm(s)"
    if observed.traffic is not None and observed.traffic.changes:
        return f"the traffic is no longer what the promise was made for: {observed.traffic.outcome}"
    broken = any(entry.promise and entry.promise.broken for entry in observed.results)
    return "the promise of the policy is broken" if broken else None


@verb(
    example="calibrant monitor days/*.parquet --time day --baseline verified.csv --fail-on-alarm",
    checks=(Check("fail-on-alarm", "Exit with 1 when the alarm goes off.", _drifted),),
    shared=opt.TABLE,
)
def monitor(
    sources: Annotated[Any, opt.inputs()],
    *,
    time: Annotated[str | None, opt.column()] = None,
    every: Annotated[str | int | None, Option(metavar="UNIT|N")] = None,
    baseline: Annotated[Any, opt.source(metavar="TABLE")] = None,
    baseline_rows: Annotated[int, opt.number("", 0, monitoring.MOST_ROWS, group=INPUT)] = 0,
    group: Annotated[str | None, Option(metavar="COL")] = None,
    follow: Annotated[
        float | None, opt.column(metavar="SECONDS", above=0, max=1e9, unit="seconds")
    ] = None,
    state: Annotated[str | Path | None, Option(metavar="FILE", group=INPUT, place="write")] = None,
    label_days: Annotated[int | None, Option(metavar="N", min=0, max=3650, needs="state")] = None,
    policy: Annotated[str | Path | None, Option(metavar="FILE", place="read")] = None,
    horizon: Annotated[int, Option(metavar="N", min=1, max=10**6)] = 365,
    alpha: Annotated[float, Option(metavar="SHARE", min=1e-12, below=1)] = 0.05,
    tolerance: Annotated[float, Option(metavar="SHARE", min=0, below=1)] = 0.0,
    precision: Annotated[float | None, Option(metavar="D", above=0, below=1)] = None,
    drift: Annotated[float | None, Option(metavar="RATE", min=0, max=1, needs="precision")] = None,
    verified: Annotated[
        dt.date | str | None, Option(metavar="DATE", kind="date", needs="precision")
    ] = None,
    on_alarm: Annotated[Callable[[dict[str, Any]], None] | None, Supplied("alarms")] = None,
    stream: str | None = None,
    **table: Unpack[opt.TableOptions],
) -> MonitorResult:
    """Watch calibration over time and raise an alarm when it leaves its verified place.

    Parameters
    ----------
    sources
        Tables, days of parquet, or - for standard input.

        A scores table, a list of them (days), an iterator of tables that keep coming, or ``-``
        for rows from standard input.
    time
        Column of the time; without it rows count in their order.
    every
        Length of a batch: hour, day, week, month or a number of rows. By default a day
        where there is a time, else 100 rows.
    baseline
        Labelled scores of the last verification, to compare with.

        Where people labelled a pool, its labels count
        with the weights of their draw. Without it and without `baseline_rows`, the reference is
        perfect calibration.
    baseline_rows
        Take the first N rows as the verification.
    follow
        Wait for new rows; end after so many seconds without one.

        For one growing file.
    group
        Column of groups: a new mix of them is told apart from quality.

        A change is then one at equal confidence in the same group, and a change
        of the mix of groups is told apart from it.
    state
        File that keeps the state of the watch, to go on from next time.

        Read if it is there, and written at the end. Labels may come in any order, and repeats are
        counted.
    label_days
        Days until the labels of a day are in; by default estimated.

        With a state, a day is judged when its labels are in: after so many days, or by default
        the age at which 99.5 % of the labels came so far, learnt over 30 days where some come
        late. Labels that come later still count on the day they come; 0 judges every label so.
    policy
        Saved policy: say when its promise breaks, by labels or by the traffic alone.

        Its traffic, labelled or not, is held against what it was made on. Of a
        policy of `decide` the answers given alone are watched too, and the document says when more
        of them are wrong than was promised.
    horizon
        Number of batches for which alpha holds.
    alpha
        Largest chance of a false alarm within the horizon.
    tolerance
        Changes of accuracy up to this size raise no alarm.
    precision
        How precisely calibration was verified: 0.02 is 2 points.
    drift
        Change of the calibration error per day; else estimated.
    verified
        Day of the verification.

        The document then says when it expires.
    on_alarm
        Called at once with each alarm of rows that keep coming.
    stream
        How messages call tables that keep coming; rows are counted from the start of the stream.
    **table
        How the tables are read, see `calibrant.data.load_scores`.

    Returns
    -------
    MonitorResult
        Document ``calibrant.monitor/2``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 4000)
    >>> y = rng.random(4000) < np.where(np.arange(4000) < 2500, p, p - 0.2)
    >>> result = monitor({"confidence": p, "correct": y}, every=100)
    >>> result["results"][0]["alarm"]["direction"]
    'over-confident'
    """
    if precision is not None and drift is None and time is None:
        raise InputError(
            Hint(
                "{precision} tells when a verification expires, and without a time no drift is seen"
            ),
            hint=Hint("name the column of the time with {time}, or give {drift}"),
        )
    columns: dict[str, Any] = {**table, "repeats": True}
    every = monitoring.batch_length(every, time)
    sources, stream = monitoring.open_stream(sources, every, follow, stream)
    coming = isinstance(sources, Iterator)
    waits = state is not None and time is not None and not coming
    baselines = monitoring.read_baselines(baseline, columns, group, time, every)
    opt.refuse_mended(table, policy, "a policy")
    promise = None if policy is None else Promise(policy)
    watches = load_state(state)
    resumed = {key: watch.last_time for key, watch in watches.items()}
    counts = monitoring.PartCounts()
    for key, rows, scores in counts.read(monitoring.tables_of(sources, columns, stream)):
        if key not in watches:
            watches[key] = CalibrationWatch(
                {"model": key[0], "method": key[1]},
                baseline=monitoring.baseline_of(baselines, key, source_name(baseline)),
                baseline_rows=baseline_rows,
                horizon=horizon,
                alpha=alpha,
                tolerance=tolerance,
                promise=None if promise is None else promise.watch(key, horizon, alpha),
            )
        watch = watches[key]
        watch.late.given = label_days
        marked = rows if promise is None else promise.marked(watch, rows)
        has_ids = "question_id" not in scores.assumed
        batches = monitoring.stream_batches(
            marked, time, every, stream or scores.source, watch, named=has_ids, group=group
        )
        for batch in batches:
            watch.see(batch)
            if waits and has_ids:
                counts.wait(watch, batch)
            elif batch.time <= resumed.get(key, -np.inf):
                counts.seen_before(batch)
            else:
                watch.update(monitoring.in_order(batch, watch, coming, scores.source))
                _tell(watch, on_alarm if stream is not None else None)
    counts.settle(watches.values())
    require_watched(promise, watches.values(), stream)
    if state is not None:
        save_state(state, watches)
    # A day written as text has become a date where options are checked.
    day = verified if isinstance(verified, dt.date) else None
    results = [
        watch.document(precision=precision, drift=drift, verified=day) for watch in watches.values()
    ]
    seen = None if promise is None else promise.traffic()
    if seen is None and state is None and not any(entry["n"] for entry in results):
        raise InputError(
            "no row of the stream has an outcome, and a watch without labels sees nothing",
            source=stream or source_name(sources),
            hint="label some rows of every batch",
        )
    settings = {
        **recorded(locals(), "time every horizon alpha tolerance baseline baseline_rows state"),
        **recorded(locals(), "group? label_days? policy? precision drift verified"),
        "baseline": input_files(baseline),
        **table_settings(table),
    }
    head = document_head("monitor", sources, settings=settings, source=stream)
    head["schema"] = "calibrant.monitor/2"
    parts: dict[str, Any] = {"results": results}
    if promise is not None and seen is not None:
        parts = {"traffic": promise.told(seen, stream or source_name(sources)), **parts}
    return _result(head, parts, counts, [] if seen is None else [seen.claim])


def _result(
    head: dict[str, Any], parts: dict[str, Any], counts: monitoring.PartCounts, claims: list[Claim]
) -> MonitorResult:
    """Return the document with its warnings and claims; those about traffic are made already."""
    document = {
        **head,
        "reading": counts.reading.to_dict(),
        "data": {},
        "claims": [],
        **parts,
        "repeated": counts.repeated,
        "late": counts.late,
        "dropped": dict(counts.dropped),
    }
    entries: list[MonitorEntry] = typed(plain(document)).results
    warnings = [*counts.warnings(), *waiting_warnings(entries), *late_warnings(counts.late)]
    warnings += day_warnings([entry for entry in entries if entry.n])
    labelled = [entry for entry in entries if entry.n or not claims]
    claims = [*claims, *monitor_claims(labelled)]
    document |= {"data": {"warnings": warnings}, "claims": [claim.to_dict() for claim in claims]}
    return MonitorResult(document)


def _tell(watch: CalibrationWatch, on_alarm: Callable[[dict[str, Any]], None] | None) -> None:
    if on_alarm is not None:
        for alarm in watch.last_words:
            context = {"reference": watch.reference, "alarms": len(watch.alarms)}
            on_alarm({**watch.keys, **context, **alarm})
