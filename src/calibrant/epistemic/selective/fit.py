"""Fit where to answer alone: learn a score, choose a start, certify on labels not used before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from calibrant.epistemic.selective.certify import (
    Certified,
    as_written,
    certify,
    error_curve,
    threshold_grid,
)
from calibrant.epistemic.selective.costs import AskingCosts, cheapest
from calibrant.epistemic.selective.outlook import labels_for_any, shares_with_more
from calibrant.epistemic.selective.policy import SelectivePolicy
from calibrant.epistemic.selective.score import CONFIDENCE, LearnedScore, RawScore, Score
from calibrant.epistemic.trees.features import as_frame
from calibrant.stats.intervals import wilson_interval

_FEWEST = 30
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
    seed
        Seed of the split: a third of the labels fits the score and chooses the start, the rest
        certifies.

    Attributes
    ----------
    policy_ : SelectivePolicy
        What to save and serve; it never answers where nothing is certified.
    certified_ : Certified or None
        The thresholds that passed.
    share_, error_ : Estimate
        Share answered and error among the answered, on the certifying rows.
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
        seed: int = 0,
    ) -> None:
        self.costs = AskingCosts.of(costs)
        if max_error is None and self.costs is None:
            raise InputError("give a limit on the error or costs", hint="give max_error=0.05")
        for name, value in (("max_error", max_error), ("delta", delta)):
            if value is not None and not 0 < value < 1:
                raise InputError(f"{name} must be between 0 and 1, got {value:g}")
        self.max_error = max_error
        self.delta = delta
        self.seed = seed

    def fit(
        self,
        features: Any,
        confidence: npt.ArrayLike,
        correct: npt.ArrayLike,
        *,
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
        made, fitted_on
            Date and origin that the saved policy names; the date is today's unless given.
        """
        f, y = checked_pair(confidence, correct)
        frame = _with_confidence(features, f)
        n = len(f)
        if n < _FEWEST:
            few = "1 label is" if n == 1 else f"{n} labels are"
            raise InputError(f"{few} too few to fit on a third and certify on the rest")
        order = named_stream(self.seed, "decide").permutation(n)
        pilot, rest = order[: n // 3], order[n // 3 :]
        score = self._score(frame, y, pilot)
        values, wrong = score.predict(frame), 1 - y
        threshold = as_written(self._threshold(values, wrong, pilot, rest), values)
        self._describe(values, wrong, rest, threshold)
        self.policy_ = SelectivePolicy(
            score,
            threshold,
            self._promise(),
            made or datetime.now(UTC).date().isoformat(),
            len(rest),
            fitted_on or {},
        )
        return self

    def _score(self, frame: pl.DataFrame, y: Floats, pilot: Ints) -> Score:
        if frame.columns == [CONFIDENCE]:
            return RawScore()
        return LearnedScore().fit(frame[pilot], y[pilot])

    def _threshold(self, values: Floats, wrong: Floats, pilot: Ints, rest: Ints) -> float | None:
        self.certified_ = None
        if self.max_error is None:
            assert self.costs is not None
            return cheapest(values[rest], wrong[rest], threshold_grid(values[rest]), self.costs)
        self.certified_ = certify(
            values[pilot],
            wrong[pilot],
            values[rest],
            wrong[rest],
            max_error=self.max_error,
            delta=self.delta,
        )
        if self.costs is None or not self.certified_.passed:
            return self.certified_.threshold
        allowed = self.certified_.grid[list(self.certified_.passed)]
        return cheapest(values[rest], wrong[rest], allowed, self.costs)

    def _describe(self, values: Floats, wrong: Floats, rest: Ints, threshold: float | None) -> None:
        score, bad = values[rest], wrong[rest]
        grid = threshold_grid(score)
        reached, errors = error_curve(score, bad, grid)
        shares = (reached / len(rest)).tolist()
        self.curve_ = [
            {"threshold": at, "share": share, "error": error}
            for at, share, error in zip(
                grid.tolist(), shares, _proportions(errors, reached), strict=True
            )
        ]
        given = score >= threshold if threshold is not None else np.zeros(len(rest), dtype=bool)
        count = int(given.sum())
        low, high = wilson_interval(count / len(rest), len(rest), 0.95)
        self.share_ = Estimate(
            count / len(rest), float(low), float(high), n=len(rest), interval="wilson"
        )
        self.error_ = _proportions(np.array([bad[given].sum()]), np.array([float(count)]))[0]
        self.labels_needed_, self.more_ = None, []
        if self.certified_ is not None:
            assert self.max_error is not None
            limit = (self.max_error, self.delta)
            if threshold is None:
                self.labels_needed_ = labels_for_any(reached, errors, len(rest), *limit)
            start = self.certified_.start
            self.more_ = shares_with_more(reached, errors, len(wrong), start, *limit)
        self.cost_ = None
        if self.costs is not None:
            self.cost_ = self._cost(score, bad, threshold)

    def _cost(self, score: Floats, wrong: Floats, threshold: float | None) -> CostEstimate:
        """Measure costs; a threshold chosen by costs is chosen anew without each fold."""
        costs = self.costs
        assert costs is not None
        n = len(score)
        fold = named_stream(self.seed, "decide folds").permutation(n) % _FOLDS
        given = np.zeros(n, dtype=bool)
        for number in range(_FOLDS):
            inside, others = fold == number, fold != number
            at = threshold
            if self.max_error is None:
                grid = threshold_grid(score[others])
                at = cheapest(score[others], wrong[others], grid, costs)
            given[inside] = score[inside] >= (np.inf if at is None else at)
        spent = costs.per_row(given, wrong)
        answering = costs.wrong * wrong
        best = answering if answering.mean() < costs.ask else np.full(n, costs.ask)
        return CostEstimate(_mean(spent), _mean(answering), costs.ask, _mean(best - spent))

    def _promise(self) -> dict[str, Any]:
        promise: dict[str, Any] = {
            "max_error": self.max_error,
            "delta": None if self.max_error is None else self.delta,
            "certified": bool(self.certified_ is not None and self.certified_.passed),
            "share_answered": self.share_,
            "error_among_answered": self.error_,
        }
        if self.costs is not None and self.cost_ is not None:
            promise |= {"costs": self.costs.to_dict(), "cost_per_question": self.cost_.policy}
        return promise


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
