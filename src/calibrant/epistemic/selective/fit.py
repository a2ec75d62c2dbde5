"""Fit where to answer alone: learn a score where there are columns, certify, measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import betaincinv

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.epistemic.checks import checked_pair
from calibrant.epistemic.guard import Profile, level_texts
from calibrant.epistemic.policy import CONFIDENCE
from calibrant.epistemic.selective.certify import (
    PILOT,
    Certified,
    Pilot,
    TrafficMix,
    as_written,
    certify,
    error_curve,
    threshold_grid,
)
from calibrant.epistemic.selective.costs import AskingCosts, cheapest
from calibrant.epistemic.selective.outlook import Outlook
from calibrant.epistemic.selective.policy import SelectivePolicy
from calibrant.epistemic.selective.score import LearnedScore, RawScore, Score
from calibrant.epistemic.trees.features import as_frame
from calibrant.stats.intervals import wilson_interval

_FEWEST = 30
# A category with fewer labels is asked, always.
LEAST_LABELS = 15
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Mean cost per question: of the policy, of always answering, of always asking.

    `saved` is what the policy saves against the cheaper of the two, on rows that did not choose
    its threshold.
    """

    policy: Estimate
    always_answer: Estimate
    always_ask: float
    saved: Estimate


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels that certify: score, error and group (a number) of each; the traffic, if any."""

    score: Floats
    wrong: Floats
    group: Ints
    pilot: Pilot
    pilot_group: Ints
    mix: TrafficMix | None = None

    def of_group(self, number: int) -> _Labels:
        own, tried = self.group == number, self.pilot_group == number
        pilot = Pilot(self.pilot.score[tried], self.pilot.wrong[tried], self.pilot.apart[own])
        return _Labels(
            self.score[own], self.wrong[own], self.group[own], pilot, self.pilot_group[tried]
        )

    def certify(self, max_error: float, delta: float) -> Certified:
        return certify(
            self.score,
            self.wrong,
            max_error=max_error,
            delta=delta,
            mix=self.mix,
            pilot=self.pilot,
        )

    @property
    def weight(self) -> Floats:
        """How often each label stands for a row of the traffic; 1 without one."""
        if self.mix is None:
            return np.ones(len(self.score))
        own = np.bincount(self.group)
        return (np.bincount(self.mix.traffic_group, minlength=len(own)) / own)[self.group]

    def curve(self, grid: Floats) -> tuple[Floats, Floats]:
        """Return what the labels at each threshold are worth, and errors among them."""
        made = self.mix.curve if self.mix is not None else error_curve
        return made(self.score, self.wrong, grid)


class Selective:
    """Find where a model may answer alone.

    Give `max_error` for a promise: with probability 1 - `delta` over the labels drawn, at most
    this share of the answers given is wrong. Give `costs` for the cheapest threshold. Given both,
    the cheapest of the certified thresholds is taken.

    Parameters
    ----------
    max_error
        Largest share of wrong answers among those given.
    delta
        Largest chance that the promise does not hold.
    costs
        `AskingCosts`, or a mapping with ``wrong`` and ``ask``.
    each
        Promise it in every group at once, not for all of them together.
    seed
        Seed of the split: where a score is learned, a third of the labels fits it and the rest
        certifies; else all labels certify, and a fifth looks where to start a second time.

    Attributes
    ----------
    policy_ : SelectivePolicy
        What to save and serve; it never answers where nothing is certified.
    certified_ : Certified or None
        The thresholds that passed; with `each`, None.
    share_, error_ : Estimate
        Share answered and error among the answered, on the certifying rows or for the traffic.
    groups_ : list of dict
        Per group: labels, threshold, share answered and error.
    asked_ : list of dict
        Groups that are always asked: labels, and share of the questions.
    labels_needed_ : int or None
        Where nothing is certified: about how many labels would certify something.
    more_ : list of dict
        What share more labels would allow.
    cost_ : CostEstimate or None
        What it costs, where costs are given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said = rng.random(1500)
    >>> right = rng.random(1500) < 0.5 + 0.5 * said
    >>> found = Selective(max_error=0.2).fit(None, said, right)
    >>> found.policy_.answers(0.9), found.policy_.answers(0.1)
    (True, False)
    """

    policy_: SelectivePolicy
    certified_: Certified | None
    share_: Estimate
    error_: Estimate
    groups_: list[dict[str, Any]]
    asked_: list[dict[str, Any]]
    labels_needed_: int | None
    more_: list[dict[str, Any]]
    cost_: CostEstimate | None
    curve_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        max_error: float | None = None,
        delta: float = 0.1,
        costs: Any = None,
        each: bool = False,
        seed: int = 0,
    ) -> None:
        self.costs = AskingCosts.of(costs)
        if max_error is None and self.costs is None:
            raise InputError("give a limit on the error or costs", hint="give max_error=0.05")
        for name, value in (("max_error", max_error), ("delta", delta)):
            if value is not None and not 0 < value < 1:
                raise InputError(f"{name} must be between 0 and 1, got {value:g}")
        if each and (max_error is None or costs is not None):
            raise InputError("a promise in every group is about errors: give max_error alone")
        self.max_error, self.delta, self.each, self.seed = max_error, delta, each, seed

    def fit(
        self,
        features: Any,
        confidence: npt.ArrayLike,
        correct: npt.ArrayLike,
        *,
        groups: pl.Series | None = None,
        traffic: pl.DataFrame | None = None,
        beside: pl.DataFrame | None = None,
        made: str | None = None,
        fitted_on: dict[str, Any] | None = None,
    ) -> Selective:
        """Fit on graded answers, one row per question.

        Parameters
        ----------
        features
            None for the confidence alone, or a table of what else is known of each answer:
            further confidences, its length, the topic.
        confidence, correct
            Confidence and grade per row.
        groups
            Group of each row, named by its column. Groups with under 15 labels are asked.
        traffic
            Unlabelled rows with confidence, group and features: the promise is for this mix.
        beside
            Further columns of the labelled rows that `check` looks at, such as the answer.
        made, fitted_on
            Date and origin that the saved policy names; the date is today's unless given.
        """
        f, y = checked_pair(confidence, correct)
        frame = _with_confidence(features, f)
        known = _enough_labels(frame, groups)
        kept = _of_known(frame, groups, known)
        order = named_stream(self.seed, "decide").permutation(len(f))
        score, tried, rest = self._score(frame, y, order[kept[order]])
        values, wrong = score.predict(frame), 1 - y
        names = known[groups.name] if groups is not None else ()
        labels = _Labels(
            values[rest],
            wrong[rest],
            _codes(groups, rest, names),
            Pilot(values[tried], wrong[tried], ~np.isin(rest, tried)),
            _codes(groups, tried, names),
        )
        answerable = float(kept.mean())
        if traffic is not None:
            labels, answerable = self._weighted(labels, score, traffic, known, groups)
        thresholds = self._thresholds(labels, names)
        threshold = None if self.each else as_written(thresholds.get(""), labels.score)
        self._describe(labels, thresholds, names, answerable)
        self.asked_ = []
        if groups is not None:
            self.asked_ = _asked(groups, groups if traffic is None else traffic[groups.name], names)
        seen = frame if beside is None else pl.concat([frame, beside], how="horizontal")
        if groups is not None and groups.name not in seen.columns:
            seen = seen.with_columns(groups)
        self.policy_ = SelectivePolicy(
            score,
            threshold,
            self._promise(groups, traffic),
            made or datetime.now(UTC).date().isoformat(),
            len(rest),
            fitted_on or {},
            Profile.of(
                seen if traffic is None else traffic, groups.name if groups is not None else None
            ),
            known,
            {name: at for name, at in thresholds.items() if at is not None} if self.each else None,
        )
        return self

    def _score(self, frame: pl.DataFrame, y: Floats, order: Ints) -> tuple[Score, Ints, Ints]:
        """Return the score, the rows that choose a start, and those that certify.

        Rows that fit a score choose the start too; else a fifth does, and certifies as well.
        """
        if len(order) < _FEWEST:
            few = "1 label is" if len(order) == 1 else f"{len(order)} labels are"
            raise InputError(f"{few} too few to certify anything; {_FEWEST} is the least")
        if frame.columns == [CONFIDENCE]:
            return RawScore(), order[: len(order) // PILOT], np.sort(order)
        pilot, rest = order[: len(order) // 3], order[len(order) // 3 :]
        return LearnedScore().fit(frame[pilot], y[pilot]), pilot, rest

    def _weighted(
        self,
        labels: _Labels,
        score: Score,
        traffic: pl.DataFrame,
        known: Mapping[str, Sequence[str]],
        groups: pl.Series | None,
    ) -> tuple[_Labels, float]:
        """Return the labels weighted to the traffic, and the share of it that may be answered."""
        if groups is None:
            raise InputError("traffic is weighted by groups: name their column")
        own = _of_known(traffic, None, known)
        rows = traffic.filter(pl.Series(own))
        if not rows.height:
            raise InputError("no row of the traffic is in a group that has labels")
        codes = _codes(rows[groups.name], np.arange(rows.height), known[groups.name])
        mix = TrafficMix(labels.group, score.predict(rows), codes)
        return replace(labels, mix=mix), float(own.mean())

    def _thresholds(self, labels: _Labels, names: Sequence[str]) -> dict[str, float | None]:
        """Return the threshold of each group, or the one of all under the empty name."""
        self.certified_ = None
        if self.max_error is None:
            assert self.costs is not None
            grid = threshold_grid(labels.score)
            return {"": cheapest(labels.score, labels.wrong, grid, self.costs)}
        if self.each:
            found = {}
            for number, name in enumerate(names):
                own, level = labels.of_group(number), self.delta / len(names)
                passed = own.certify(self.max_error, level).threshold
                found[name] = as_written(passed, own.score)
            return found
        self.certified_ = labels.certify(self.max_error, self.delta)
        if self.costs is None or self.certified_.threshold is None:
            return {"": self.certified_.threshold}
        return {"": cheapest(labels.score, labels.wrong, self.certified_.passed, self.costs)}

    def _describe(
        self,
        labels: _Labels,
        thresholds: Mapping[str, float | None],
        names: Sequence[str],
        answerable: float,
    ) -> None:
        grid = threshold_grid(labels.score)
        worth, errors = labels.curve(grid)
        shares = answerable * error_curve(labels.score, labels.wrong, grid)[0] / len(labels.score)
        if labels.mix is not None:
            score = labels.mix.score
            shares = answerable * error_curve(score, np.zeros(len(score)), grid)[0] / len(score)
        self.curve_ = [
            {"threshold": at, "share": share, "error": error}
            for at, share, error in zip(
                grid.tolist(), shares.tolist(), _proportions(errors, worth), strict=True
            )
        ]
        cuts = np.array(
            [_above(thresholds.get(name, thresholds.get(""))) for name in names or [""]]
        )
        self._measure(labels, cuts, answerable)
        self.groups_ = [
            _group_entry(name, labels.of_group(number), cuts[number])
            for number, name in enumerate(names)
        ]
        self.labels_needed_, self.more_ = None, []
        if self.max_error is not None and not self.each:
            outlook = Outlook(
                labels.score,
                labels.wrong,
                labels.weight,
                max_error=self.max_error,
                delta=self.delta,
            )
            if thresholds[""] is None:
                self.labels_needed_ = outlook.labels_needed()
            self.more_ = outlook.more()
        self.cost_ = None if self.costs is None else self._cost(labels.score, labels.wrong)

    def _measure(self, labels: _Labels, cuts: Floats, answerable: float) -> None:
        """Measure share and error; for a mix, of the traffic."""
        given = labels.score >= cuts[labels.group]
        n, inside = len(given), float(given.mean())
        bad, answered = labels.wrong[given].sum(), float(given.sum())
        if labels.mix is not None:
            n = len(labels.mix.score)
            inside = float((labels.mix.score >= cuts[labels.mix.traffic_group]).mean())
            worth, errors = labels.curve(cuts[:1])
            bad, answered = float(errors[0]), float(worth[0]) if np.isfinite(cuts[0]) else 0.0
        share = answerable * inside
        low, high = wilson_interval(share, n, 0.95)
        self.share_ = Estimate(share, float(low), float(high), n=n, interval="wilson")
        self.error_ = _proportions(np.array([bad]), np.array([answered]))[0]

    def _cost(self, score: Floats, wrong: Floats) -> CostEstimate:
        """Measure costs; the threshold is chosen anew without each fold."""
        costs = self.costs
        assert costs is not None
        n = len(score)
        fold = named_stream(self.seed, "decide folds").permutation(n) % _FOLDS
        given = np.zeros(n, dtype=bool)
        for number in range(_FOLDS):
            inside, others = fold == number, fold != number
            grid = threshold_grid(score[others])
            if self.certified_ is not None:
                grid = self.certified_.passed
            at = cheapest(score[others], wrong[others], grid, costs) if len(grid) else None
            given[inside] = score[inside] >= _above(at)
        spent = costs.per_row(given, wrong)
        answering = costs.wrong * wrong
        best = answering if answering.mean() < costs.ask else np.full(n, costs.ask)
        return CostEstimate(_mean(spent), _mean(answering), costs.ask, _mean(best - spent))

    def _promise(self, groups: pl.Series | None, traffic: pl.DataFrame | None) -> dict[str, Any]:
        limited = self.max_error is not None
        passed = self.certified_ is not None and self.certified_.threshold is not None
        promise: dict[str, Any] = {
            "max_error": self.max_error,
            "delta": self.delta if limited else None,
            "certified": passed or any(entry["certified"] for entry in self.groups_ if self.each),
            "for": "each" if self.each else "labelled" if traffic is None else "traffic",
            "group": None if groups is None else groups.name,
            "traffic_rows": None if traffic is None else traffic.height,
            "share_answered": self.share_,
            "error_among_answered": self.error_,
        }
        if self.costs is not None and self.cost_ is not None:
            promise |= {"costs": self.costs.to_dict(), "cost_per_question": self.cost_.policy}
        return promise


def _enough_labels(frame: pl.DataFrame, groups: pl.Series | None) -> dict[str, tuple[str, ...]]:
    """Return by column the categories with at least 15 labels."""
    columns = [column for column in frame.get_columns() if not column.dtype.is_numeric()]
    columns += [groups] if groups is not None else []
    known = {}
    for column in columns:
        counts = level_texts(column).value_counts()
        enough = counts.filter((pl.col("count") >= LEAST_LABELS) & (pl.col(column.name) != ""))
        known[column.name] = tuple(enough[column.name].sort())
        if not enough.height:
            raise InputError(
                f"no value of {column.name!r} has {LEAST_LABELS} labels; {counts.height} values "
                f"share {len(column)} labels",
                hint="name a coarser column, or label more",
            )
    return known


def _of_known(
    frame: pl.DataFrame, groups: pl.Series | None, known: Mapping[str, Sequence[str]]
) -> npt.NDArray[np.bool_]:
    kept = np.ones(frame.height, dtype=bool)
    for name, levels in known.items():
        column = groups if groups is not None and groups.name == name else frame[name]
        kept &= level_texts(column).is_in(list(levels)).to_numpy()
    return kept


def _codes(groups: pl.Series | None, rows: Ints, names: Sequence[str]) -> Ints:
    if groups is None:
        return np.zeros(len(rows), dtype=np.int64)
    place = {name: at for at, name in enumerate(names)}
    texts = level_texts(groups).gather(rows)
    return np.array([place[name] for name in texts.to_list()], dtype=np.int64)


def _group_entry(name: str, own: _Labels, cut: float) -> dict[str, Any]:
    given = own.score >= cut
    n = len(given)
    share = float(given.mean())
    low, high = wilson_interval(share, n, 0.95)
    error = _proportions(np.array([own.wrong[given].sum()]), np.array([float(given.sum())]))[0]
    return {
        "group": name,
        "n": n,
        "threshold": float(cut) if np.isfinite(cut) else None,
        "answered": Estimate(share, float(low), float(high), n=n, interval="wilson"),
        "error": error,
        "certified": bool(np.isfinite(cut)),
    }


def _asked(labelled: pl.Series, coming: pl.Series, known: Sequence[str]) -> list[dict[str, Any]]:
    """Return the groups without enough labels, most frequent first."""
    labels = dict(level_texts(labelled).value_counts().iter_rows())
    found = level_texts(coming).value_counts(sort=True).iter_rows()
    return [
        {"group": name, "n": labels.get(name, 0), "share": count / len(coming)}
        for name, count in found
        if name not in known
    ]


def _above(threshold: float | None) -> float:
    return float("inf") if threshold is None else threshold


def _with_confidence(features: Any, confidence: Floats) -> pl.DataFrame:
    own = pl.DataFrame({CONFIDENCE: confidence})
    if features is None:
        return own
    frame = as_frame(features)
    if frame.height != len(confidence):
        raise InputError(f"{frame.height} rows of features for {len(confidence)} confidences")
    others: Sequence[str] = [name for name in frame.columns if name != CONFIDENCE]
    return pl.concat([own, frame.select(others)], how="horizontal")


def _proportions(count: Floats, n: Floats) -> list[Estimate]:
    """Return shares with their exact intervals (Clopper and Pearson)."""
    inside = np.maximum(n, 1.0)
    low = np.where(count > 0, betaincinv(np.maximum(count, 1.0), n - count + 1, 0.025), 0.0)
    high = np.where(count < n, betaincinv(count + 1, np.maximum(n - count, 1.0), 0.975), 1.0)
    value = np.where(n > 0, count / inside, np.nan)
    return [
        Estimate(float(at), float(start), float(end), n=int(rows), interval="exact")
        for at, start, end, rows in zip(value, low, high, n, strict=True)
    ]


def _mean(values: Floats) -> Estimate:
    mean = float(values.mean())
    half = 1.959964 * float(values.std(ddof=1)) / len(values) ** 0.5
    return Estimate(mean, mean - half, mean + half, n=len(values), interval="normal")
