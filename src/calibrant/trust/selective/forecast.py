"""How many labels would certify something, where too few do."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from calibrant.core.arrays import Floats
from calibrant.findings.documents.decisions import MoreLabels
from calibrant.metrics.stats.logistic import logistic_fit
from calibrant.trust.selective.certify import (
    STARTS,
    chance_of_so_few,
    fewest_rows,
    passed_steps,
    weights_of_steps,
)

_RUNS = 200
_POWER, _LIKELY = 0.8, 0.5
_MOST_LABELS = 10_000_000
_TIMES = (2, 4, 10)
_GRID = 400
# Shares of the most confident labels: one of them must show that a threshold can keep the limit.
_SEEN = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)


class LabelForecast:
    """A world to draw further labels from: the chance of an error by rank, a curve of three terms.

    Parameters
    ----------
    score, wrong
        The labels so far.
    weight
        What each is worth for the traffic that is promised; all alike without one.
    max_error, delta
        What is to be promised.
    worth
        What a row is worth in labels where rows hang together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score, wrong = rng.random(300), (rng.random(300) < 0.04).astype(float)
    >>> forecast = LabelForecast(score, wrong, np.ones(300), max_error=0.07, delta=0.1)
    >>> 300 < forecast.labels_needed() < 2000
    True
    """

    def __init__(
        self,
        score: Floats,
        wrong: Floats,
        weight: Floats,
        *,
        max_error: float,
        delta: float,
        worth: float = 1.0,
    ) -> None:
        self.labels, self.max_error, self.delta = len(score), max_error, delta
        _, place, equal = np.unique(-score, return_inverse=True, return_counts=True)
        # Equal scores share the middle of their places.
        rank = ((np.cumsum(equal) - equal / 2) / len(score))[place]
        terms = np.column_stack([rank, rank**2])
        intercept, slopes = logistic_fit(terms, wrong, weight, 1.0 / len(score))
        self._share = (np.arange(_GRID) + 0.5) / _GRID
        rate = expit(intercept + np.column_stack([self._share, self._share**2]) @ slopes)
        self._errors = np.cumsum(rate) / _GRID
        # Uneven weights leave as much knowledge as this share of the labels.
        self._worth = worth * float(weight.sum() ** 2 / (weight @ weight) / len(score))
        # The curve alone dips below the limit in a third of the tables in which nothing keeps it.
        self.can_keep = self._seen(score, wrong, weight)

    def _seen(self, score: Floats, wrong: Floats, weight: Floats) -> bool:
        """Return whether the labels at one of a few shares show that the limit can be kept."""
        order = np.argsort(-score, kind="stable")
        total, bad = np.cumsum(weight[order]), np.cumsum((weight * wrong)[order])
        cut = np.quantile(score, 1 - np.array(_SEEN), method="lower")
        rows = np.searchsorted(-score[order], -cut, side="right")
        worth = rows * self._worth
        chance = chance_of_so_few(bad[rows - 1] / total[rows - 1] * worth, worth, self.max_error)
        return bool((chance <= self.delta).any())

    def _up_to(self, share: Floats) -> Floats:
        """Return the chance that a question is within the share and wrong."""
        ends = np.concatenate([[0.0], self._share + 0.5 / _GRID])
        return np.asarray(np.interp(share, ends, np.concatenate([[0.0], self._errors])))

    def shares(self, labels: int) -> Floats:
        """Return the share that is certified in each of 200 draws of so many labels."""
        rng = np.random.default_rng(labels)
        even = np.arange(1, 101) / 100
        rows, errors = self._draw(rng, even, labels)
        chance = chance_of_so_few(errors, rows, self.max_error)
        able = rows >= fewest_rows(self.max_error, STARTS[0.0] * self.delta)
        brought = self.delta * weights_of_steps(even, able)
        return np.asarray((passed_steps(chance, brought) * even).max(axis=1))

    def _draw(
        self, rng: np.random.Generator, share: Floats, labels: float
    ) -> tuple[Floats, Floats]:
        """Return rows up to each share, and errors among them in every run."""
        rows = np.rint(share * labels * self._worth)
        chance = np.diff(self._up_to(share), prepend=0.0) / np.diff(share, prepend=0.0)
        new = np.diff(rows, prepend=0.0).astype(int)
        draws = rng.binomial(new, np.clip(chance, 0.0, 1.0), (_RUNS, len(new)))
        return rows, draws.cumsum(axis=1).astype(np.float64)

    def labels_needed(self) -> int | None:
        """Return about how many labels certify something in 80 % of draws; None where none do.

        Where no number reaches that, the first that does so in most draws counts.
        """
        if not self.can_keep:
            return None
        labels, likely = self.labels, None
        while labels <= min(_MOST_LABELS, 1000 * self.labels):
            power = float((self.shares(labels) > 0).mean())
            if power >= _POWER:
                return labels
            likely = labels if likely is None and power > _LIKELY else likely
            labels = math.ceil(labels * 1.2)
        return likely

    def more(self) -> list[MoreLabels]:
        """Return the share that 2, 4 and 10 times the labels would likely certify, and the most."""
        forecasts = [
            MoreLabels(labels=n, share=float(np.median(self.shares(n))))
            for n in (times * self.labels for times in _TIMES)
        ]
        rate = self._up_to(self._share) / self._share
        start = int(np.argmax((self.max_error - rate) * np.sqrt(self._share)))
        after = rate[start:] <= self.max_error
        last = len(after) if after.all() else int(np.argmin(after))
        return [*forecasts, MoreLabels(labels=None, share=(start + last) / _GRID if last else 0.0)]
