"""The promise of a saved policy while a stream is watched: by labels, and by the traffic itself."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.labels.watching.promise import PromiseWatch
from calibrant.labels.watching.watch import CalibrationWatch
from calibrant.trust.policies import load_policy
from calibrant.trust.selective.policy import SelectivePolicy
from calibrant.trust.traffic_shift import ANSWER, GuardCheck, with_callers_words
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
