"""Fit where to answer alone: learn a score where there are columns, certify, measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import Floats, Ints, named_stream
from calibrant.core.errors import InputError
from calibrant.data.features import as_frame, checked_pair
from calibrant.data.learned_score import LearnedScore
from calibrant.findings.documents import decisions
from calibrant.metrics.stats.intervals import wilson_estimate
from calibrant.trust.policy import CONFIDENCE, RawScore, Score, SelectivePolicy
from calibrant.trust.selective import certify
from calibrant.trust.selective.labels import (
    CertifyingLabels,
    LabelForecast,
    asked_groups,
    cross_fitted_cost,
    cut_above,
    decide_entry,
    enough_labels,
    group_codes,
    group_entry,
    of_known,
    proportions,
)
from calibrant.trust.traffic_shift import Profile

_FEWEST = 30
_ALL = np.zeros(1)


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
        certifies; else all labels certify.

    Attributes
    ----------
    policy_ : SelectivePolicy
        What to save and serve; it never answers where nothing is certified.
    certified_ : Certified or None
        The thresholds that passed; with `each`, None.
    share_, error_ : Estimate
        Share answered and error among the answered, on the certifying rows or for the traffic.
    groups_ : list of AnsweredGroup
        Per group: labels, threshold, share answered and error.
    asked_ : list of AskedGroup
        Groups that are always asked: labels, and share of the questions.
    labels_needed_ : int or None
        Where nothing is certified: about how many labels would certify something.
    more_ : list of MoreLabels
        What share more labels would allow.
    cost_ : DecideCost or None
        What it costs, where costs are given.
    worth_ : float
        How many independent labels all rows are worth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said = rng.random(1500)
    >>> right = rng.random(1500) < 0.5 + 0.5 * said
    >>> found = Selective(max_error=0.2).fit(None, said, right)
    >>> found.policy_.answers(0.9), found.policy_.answers(0.1)
    (True, False)
    """

    certified_: certify.Certified | None
    asked_: list[decisions.AskedGroup]
    labels_needed_: int | None
    more_: list[decisions.MoreLabels]
    cost_: decisions.DecideCost | None

    def __init__(
        self,
        *,
        max_error: float | None = None,
        delta: float = 0.1,
        costs: Any = None,
        each: bool = False,
        seed: int = 0,
    ) -> None:
        self.costs = certify.AskingCosts.of(costs)
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
        score: Score | None = None,
        cluster: Ints | None = None,
        withheld: bool = False,
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
        score
            What is served in place of the confidence, where this is that score already.
        cluster
            Code of each row, from 0 on: rows of one hang together.
        withheld
            Nothing is promised: rows come from too few clusters to speak of others.
        made, fitted_on
            Date and origin that the saved policy names; the date is today's unless given.
        """
        f, y = checked_pair(confidence, correct)
        self._withheld = withheld
        frame = _with_confidence(features, f)
        categories = enough_labels(frame, groups)
        rows = of_known(frame, groups, categories)
        rng = named_stream(self.seed, "decide")
        order = rng.permutation(len(f))
        if cluster is not None:
            # Whole clusters fit a score or certify.
            order = order[np.argsort(rng.permutation(int(cluster.max()) + 1)[cluster[order]])]
        score, remainder = self._score(frame, y, order[rows[order]], score or RawScore(), cluster)
        values, wrong = score.predict(frame), 1 - y
        names = categories[groups.name] if groups is not None else ()
        codes = group_codes(groups, remainder, names)
        joint = None if cluster is None else np.unique(cluster[remainder], return_inverse=True)[1]
        labels = CertifyingLabels(
            values[remainder], wrong[remainder], codes, None, float(rows.mean()), joint
        )
        if traffic is not None:
            labels = self._weighted(labels, score, traffic, categories, groups)
        thresholds = self._thresholds(labels, names)
        threshold = None if self.each else certify.as_written(thresholds.get(""), labels.score)
        self._describe(labels, thresholds, names)
        observed = frame if beside is None else pl.concat([frame, beside], how="horizontal")
        group, self.asked_ = None, []
        if groups is not None:
            group, coming = groups.name, groups if traffic is None else traffic[groups.name]
            self.asked_ = asked_groups(groups, coming, names)
            observed = observed if group in observed.columns else observed.with_columns(groups)
        self.policy_ = SelectivePolicy(
            score,
            threshold,
            self._promise(groups, traffic),
            made or datetime.now(UTC).date().isoformat(),
            len(remainder),
            fitted_on or {},
            Profile.of(observed if traffic is None else traffic, group),
            categories,
            {name: place for name, place in thresholds.items() if place is not None}
            if self.each
            else None,
        )
        return self

    def _score(
        self, frame: pl.DataFrame, y: Floats, order: Ints, alone: Score, cluster: Ints | None
    ) -> tuple[Score, Ints]:
        """Return the score, and the rows that certify: those that did not fit it."""
        if len(order) < _FEWEST:
            labels = "1 label is" if len(order) == 1 else f"{len(order)} labels are"
            raise InputError(f"{labels} too few to certify anything; {_FEWEST} is the least")
        if frame.columns == [CONFIDENCE]:
            return alone, np.sort(order)
        third = len(order) // 3
        while cluster is not None and cluster[order[third]] == cluster[order[third - 1]]:
            third += 1
        fitting, remainder = order[:third], order[third:]
        return LearnedScore().fit(frame[fitting], y[fitting]), remainder

    def _weighted(
        self,
        labels: CertifyingLabels,
        score: Score,
        traffic: pl.DataFrame,
        categories: Mapping[str, Sequence[str]],
        groups: pl.Series | None,
    ) -> CertifyingLabels:
        """Return the labels weighted to the traffic."""
        if groups is None:
            raise InputError("traffic is weighted by groups: name their column")
        selection = of_known(traffic, None, categories)
        rows = traffic.filter(pl.Series(selection))
        if not rows.height:
            raise InputError("no row of the traffic is in a group that has labels")
        if labels.cluster is not None:
            raise InputError("a promise for the mix of the traffic takes rows as independent")
        codes = group_codes(rows[groups.name], np.arange(rows.height), categories[groups.name])
        mix = certify.TrafficMix(labels.group, score.predict(rows), codes)
        return replace(labels, mix=mix, answerable=float(selection.mean()))

    def _thresholds(
        self, labels: CertifyingLabels, names: Sequence[str]
    ) -> dict[str, float | None]:
        """Return the threshold of each group, or the one of all under the empty name."""
        self.certified_ = None
        if self.max_error is None:
            assert self.costs is not None
            grid = certify.threshold_grid(labels.score)
            return {"": certify.cheapest(labels.score, labels.wrong, grid, self.costs)}
        if self._withheld:
            self.certified_ = None if self.each else certify.Certified(np.empty(0))
            return dict.fromkeys(names if self.each else [""], None)
        if self.each:
            thresholds = {}
            for number, name in enumerate(names):
                group, level = labels.of_group(number), self.delta / len(names)
                passing = group.certify(self.max_error, level).threshold
                thresholds[name] = certify.as_written(passing, group.score)
            return thresholds
        self.certified_ = labels.certify(self.max_error, self.delta)
        if self.costs is None or self.certified_.threshold is None:
            return {"": self.certified_.threshold}
        return {
            "": certify.cheapest(labels.score, labels.wrong, self.certified_.passed, self.costs)
        }

    def _describe(
        self, labels: CertifyingLabels, thresholds: Mapping[str, float | None], names: Sequence[str]
    ) -> None:
        grid = certify.threshold_grid(labels.score)
        worth, errors = labels.curve(grid)
        self.worth_ = float(worth[-1])
        score = labels.score if labels.mix is None else labels.mix.score
        reached = certify.error_curve(score, np.zeros(len(score)), grid)[0]
        shares = (labels.answerable * reached / len(score)).tolist()
        points = zip(grid.tolist(), shares, proportions(errors, worth), strict=True)
        self.curve_ = [
            decisions.ThresholdPoint(threshold=t, share=s, error=error) for t, s, error in points
        ]
        of_all = thresholds.get("")
        cuts = np.array([cut_above(thresholds.get(name, of_all)) for name in names or [""]])
        self._measure(labels, cuts)
        self.groups_ = [
            group_entry(name, labels.of_group(number), cuts[number])
            for number, name in enumerate(names)
        ]
        self.labels_needed_, self.more_ = None, []
        if self.max_error is not None and not (self.each or self._withheld):
            weighted = labels.score, labels.wrong, labels.weight
            per_row = float(worth[-1] / max(reached[-1], 1)) if labels.mix is None else 1.0
            outlook = LabelForecast(
                *weighted, max_error=self.max_error, delta=self.delta, worth=per_row
            )
            if thresholds[""] is None:
                self.labels_needed_ = outlook.labels_needed()
            self.more_ = outlook.more()
        self.cost_ = None
        if self.costs is not None:
            passing = None if self.certified_ is None else self.certified_.passed
            rng = named_stream(self.seed, "decide folds")
            self.cost_ = cross_fitted_cost(labels, self.costs, passing, rng)

    def _measure(self, labels: CertifyingLabels, cuts: Floats) -> None:
        """Measure share and error; for a mix, of the traffic."""
        values = labels.score >= cuts[labels.group]
        n, inside = len(values), float(values.mean())
        bad, answers = labels.wrong[values].sum(), float(values.sum())
        if labels.cluster is not None:
            inside_of = values.astype(np.float64)
            n = max(
                1,
                round(
                    n / certify.rows_per_label(0 * inside_of, inside_of, labels.cluster, _ALL)[0]
                ),
            )
            worth = certify.rows_per_label(inside_of, labels.wrong, labels.cluster, _ALL + 1)[0]
            bad, answers = bad / worth, answers / worth
        if labels.mix is not None:
            n = len(labels.mix.score)
            inside = float((labels.mix.score >= cuts[labels.mix.traffic_group]).mean())
            worth, errors = labels.curve(cuts[:1])
            bad, answers = float(errors[0]), float(worth[0]) if np.isfinite(cuts[0]) else 0.0
        self.share_ = wilson_estimate(labels.answerable * inside, n)
        self.error_ = proportions(np.array([bad]), np.array([answers]))[0]

    def entry(
        self, model: str, method: str, correct: Floats, path: str | None = None, **more: Any
    ) -> decisions.DecideEntry:
        """Return the entry of a document: what was found, of whom, and where it was saved."""
        return decide_entry(
            model,
            method,
            self.policy_,
            n=len(correct),
            rate=float(correct.mean()),
            asked=self.asked_,
            groups=self.groups_,
            labels_needed=self.labels_needed_,
            more_labels=self.more_,
            cost=self.cost_,
            curve=self.curve_,
            path=path,
            **more,
        )

    def _promise(self, groups: pl.Series | None, traffic: pl.DataFrame | None) -> dict[str, Any]:
        limited = self.max_error is not None
        passing = self.certified_ is not None and self.certified_.threshold is not None
        promise: dict[str, Any] = {
            "max_error": self.max_error,
            "delta": self.delta if limited else None,
            "certified": passing or any(group.certified for group in self.groups_ if self.each),
            "for": "each" if self.each else "labelled" if traffic is None else "traffic",
            "group": None if groups is None else groups.name,
            "traffic_rows": None if traffic is None else traffic.height,
            "share_answered": self.share_,
            "error_among_answered": self.error_,
        }
        if self.costs is not None and self.cost_ is not None:
            promise |= {"costs": self.costs.to_dict(), "cost_per_question": self.cost_.policy}
        return promise


def _with_confidence(features: Any, confidence: Floats) -> pl.DataFrame:
    stated_confidence = pl.DataFrame({CONFIDENCE: confidence})
    if features is None:
        return stated_confidence
    frame = as_frame(features)
    if frame.height != len(confidence):
        raise InputError(f"{frame.height} rows of features for {len(confidence)} confidences")
    peers: Sequence[str] = [name for name in frame.columns if name != CONFIDENCE]
    return pl.concat([stated_confidence, frame.select(peers)], how="horizontal")
