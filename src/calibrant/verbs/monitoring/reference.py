"""What a stream is held against: the labels of the last verification, a policy's promise."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.epistemic.guard import ANSWER, GuardCheck
from calibrant.epistemic.policies import load_policy
from calibrant.epistemic.selective.policy import SelectivePolicy
from calibrant.inputs.door import labels_of
from calibrant.inputs.labelled_rows import OpenLabels
from calibrant.planning.watching.promise import PromiseWatch
from calibrant.planning.watching.watch import Baseline, CalibrationWatch
from calibrant.records import load_scores
from calibrant.records.label_schema import WEIGHT
from calibrant.verbs.monitoring.batches import ALONE

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
