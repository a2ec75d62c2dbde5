"""What more labels would allow: the chains run again on labels drawn from the errors seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from calibrant.core.arrays import Floats, Ints
from calibrant.epistemic.selective.certify import (
    OPEN,
    PILOT,
    best_start,
    chance_of_so_few,
    step_sizes,
)
from calibrant.stats.logistic import logistic_fit

_RUNS = 200
_POWER, _LIKELY = 0.8, 0.5
_MOST_LABELS = 10_000_000
_TIMES = (2, 4, 10)
_GRID = 400


class Outlook:
    """A world to draw further labels from: the chance of an error by rank, a curve of three terms.

    Parameters
    ----------
    score, wrong
        The labels so far.
    weight
        What each is worth for the traffic that is promised; all alike without one.
    max_error, delta
        What is to be promised.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score, wrong = rng.random(300), (rng.random(300) < 0.04).astype(float)
    >>> 300 < Outlook(score, wrong, np.ones(300), max_error=0.07, delta=0.1).labels_needed() < 2000
    True
    """

    def __init__(
        self, score: Floats, wrong: Floats, weight: Floats, *, max_error: float, delta: float
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
        self._worth = float(weight.sum() ** 2 / (weight @ weight) / len(score))

    def _up_to(self, share: Floats) -> Floats:
        """Return the chance that a question is within the share and wrong."""
        ends = np.concatenate([[0.0], self._share + 0.5 / _GRID])
        return np.asarray(np.interp(share, ends, np.concatenate([[0.0], self._errors])))

    def shares(self, labels: int) -> Floats:
        """Return the share that the chains certify in each of 200 draws of so many labels."""
        rng = np.random.default_rng(labels)
        strict = step_sizes(labels, self.max_error, OPEN * self.delta) / labels
        first = self._certified(rng, np.unique(strict), labels, None, OPEN * self.delta)
        even = np.arange(1, 101) / 100
        tried, wrong = self._draw(rng, even, labels / PILOT)
        rest = labels * (1 - 1 / PILOT)
        start = best_start(np.broadcast_to(tried, wrong.shape), wrong, tried, self.max_error)
        second = self._certified(rng, even, rest, start, (1 - OPEN) * self.delta)
        return np.maximum(first, second)

    def _draw(self, rng: np.random.Generator, share: Floats, labels: float) -> tuple[Any, Any]:
        """Return rows up to each share, and errors among them in every run."""
        rows = np.rint(share * labels * self._worth)
        chance = np.diff(self._up_to(share), prepend=0.0) / np.diff(share, prepend=0.0)
        new = np.diff(rows, prepend=0.0).astype(int)
        draws = rng.binomial(new, np.clip(chance, 0.0, 1.0), (_RUNS, len(new)))
        return rows, draws.cumsum(axis=1).astype(np.float64)

    def _certified(
        self,
        rng: np.random.Generator,
        share: Floats,
        labels: float,
        start: Ints | None,
        delta: float,
    ) -> Floats:
        if not len(share):
            return np.zeros(_RUNS)
        rows, errors = self._draw(rng, share, labels)
        passes = chance_of_so_few(errors, rows, self.max_error) <= delta
        begin = np.zeros(_RUNS, dtype=np.int64) if start is None else start
        open_steps = passes | (np.arange(len(share)) < begin[:, None])
        end = np.where(open_steps.all(axis=1), len(share), np.argmin(open_steps, axis=1))
        return np.where(end > begin, share[end - 1], 0.0)

    def labels_needed(self) -> int | None:
        """Return about how many labels certify something in 80 % of draws; None where none do.

        Where no number reaches that, the first that does so in most draws counts.
        """
        labels, likely = self.labels, None
        while labels <= min(_MOST_LABELS, 1000 * self.labels):
            power = float((self.shares(labels) > 0).mean())
            if power >= _POWER:
                return labels
            likely = labels if likely is None and power > _LIKELY else likely
            labels = math.ceil(labels * 1.2)
        return likely

    def more(self) -> list[dict[str, Any]]:
        """Return the share that 2, 4 and 10 times the labels would likely certify, and the most."""
        found: list[dict[str, Any]] = [
            {"labels": n, "share": float(np.median(self.shares(n)))}
            for n in (times * self.labels for times in _TIMES)
        ]
        rate = self._up_to(self._share) / self._share
        start = int(np.argmax((self.max_error - rate) * np.sqrt(self._share)))
        after = rate[start:] <= self.max_error
        last = len(after) if after.all() else int(np.argmin(after))
        return [*found, {"labels": None, "share": (start + last) / _GRID if last else 0.0}]
