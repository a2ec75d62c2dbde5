"""Fit a map from labels: what a confidence means, how far off that can be, and whether it pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.metrics.recalibration import mend_curve
from calibrant.metrics.stats.regressions import rising_fit

# The labels must contradict a rising curve by this much deviance before another one is shipped.
MOST_DEVIANCE = 9.0
LEAST_LABELS = 50
# A gain in the Brier score below this is not worth a map.
WORTHWHILE = 0.01
FOLDS = 5
# A confidence may mean what it says: so likely is that before labels, and so far off 0 and 1 is it
# then held. Chosen on no data; docs/simulations/mend.md has what it does with few labels.
_AS_STATED = 0.2
_STATED_EDGE = 0.01
_DRAWS = 600
# Quantiles of the wide belief that hold as 95 % promises and intervals in simulation.
_PROMISE = 0.99
_BAND = (0.035, 0.965)
_ONE_SIDED = 0.95


class FittedCurve(Struct, frozen=True):
    """The fitted map at its knots, with its band.

    Parameters
    ----------
    grid
        Where the labels lie.
    log_odds, low, high
        Value and 95 % interval at each knot, in log odds.
    rising
        Whether more confidence means more often right.
    deviance
        How much the labels object to a rising curve.
    off_by
        The mean distance to the truth is at most this, with 95 % certainty.
    """

    grid: mend_curve.Grid
    log_odds: Floats
    low: Floats
    high: Floats
    rising: bool
    deviance: float
    off_by: float


class Gain(Struct, frozen=True):
    """How much the map lowers the Brier score on rows it was not fitted on.

    Parameters
    ----------
    value
        Mean gain.
    low, high
        One-sided 95 % limits.
    """

    value: float
    low: float
    high: float

    def verdict(self, labels: int) -> str:
        """Return ``mended``, ``not worth it`` or ``too few``."""
        if labels < LEAST_LABELS:
            return "too few"
        if self.low > 0:
            return "mended"
        return "not worth it" if self.high < WORTHWHILE else "too few"


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled confidences, and what makes them fewer than their rows.

    Parameters
    ----------
    confidence, correct, weights
        One value per row.
    units
        What was sampled independently: a code per row, for example its question or topic.
    dispersion
        Variance of an outcome over that of yes/no: people's ratings between 0 and 1 spread less.
    as_stated
        How likely it is, before labels, that a confidence means what it says.
    """

    confidence: Floats
    correct: Floats
    weights: Floats
    units: Indices
    dispersion: float = 1.0
    as_stated: float = _AS_STATED

    @classmethod
    def of(
        cls,
        confidence: Floats,
        correct: Floats,
        weights: Floats | None = None,
        units: Array | None = None,
    ) -> Labels:
        """Return labels of which each row is its own unit, unless told otherwise."""
        return cls(
            confidence,
            correct,
            np.ones(len(correct)) if weights is None else weights,
            np.arange(len(correct)) if units is None else np.unique(units, return_inverse=True)[1],
        )


class Value(NamedTuple):
    """The map alone: its grid, counted labels and right ones per group, log odds at the knots.

    It is a curve and the confidence as stated, each by how likely the labels make it: with few
    labels of a calibrated model the confidence itself is the better guess.
    """

    grid: mend_curve.Grid
    total: Floats
    right: Floats
    log_odds: Floats
    deviance: float


def fit_value(labels: Labels) -> Value:
    """Return the map without its band and its promise."""
    grid = mend_curve.lay_grid(labels.confidence, labels.weights)
    counts = labels.weights / _rows_per_label(grid, labels)
    total, right = grid.sums(counts), grid.sums(counts * labels.correct)
    (plain,) = mend_curve.fit_curves(grid, total[None], right[None], mend_curve.PLAIN)
    rates, deviance = _rising_unless_refuted(grid, plain, total, right)
    rates = _beside_stated(grid, rates, plain, labels, counts)
    return Value(grid, total, right, special.logit(rates), deviance)


def _beside_stated(
    grid: mend_curve.Grid,
    rates: Floats,
    curve: mend_curve.Posterior,
    labels: Labels,
    counts: Floats,
) -> Floats:
    """Return the curve's rates and the confidence as stated, joined by how likely each is."""
    if not labels.as_stated:
        return rates
    confidence = np.clip(labels.confidence, _STATED_EDGE, 1 - _STATED_EDGE)
    y = labels.correct
    likelihood = float(
        counts @ (special.xlogy(y, confidence) + special.xlog1py(1 - y, -confidence))
    )
    share = special.expit(special.logit(labels.as_stated) + likelihood - curve.evidence)
    knots = np.clip(grid.knots, _STATED_EDGE, 1 - _STATED_EDGE)
    return np.asarray(share * knots + (1 - share) * rates)


def fit_curve(labels: Labels, rng: np.random.Generator) -> FittedCurve:
    """Return the map, its band and its promise."""
    grid, total, right, log_odds, deviance = fit_value(labels)
    fine = mend_curve.lay_grid(labels.confidence, labels.weights, fine=True)
    (wide,) = mend_curve.fit_curves(fine, total[None], right[None], mend_curve.WIDE)
    # The knots of the map are among the fine ones: it stays the same curve.
    log_odds = np.interp(fine.knots, grid.knots, log_odds)
    draws = wide.draws(_DRAWS, rng)
    low, high = np.quantile(draws, _BAND, axis=0)
    shipped = special.expit(fine.hat @ log_odds)
    distance = np.abs(special.expit(draws @ fine.hat.T) - shipped) @ (total / total.sum())
    return FittedCurve(
        fine,
        log_odds,
        np.minimum(low, log_odds),
        np.maximum(high, log_odds),
        deviance <= MOST_DEVIANCE,
        deviance,
        float(np.quantile(distance, _PROMISE)),
    )


def _rising_unless_refuted(
    grid: mend_curve.Grid, fit: mend_curve.Posterior, total: Floats, right: Floats
) -> tuple[Floats, float]:
    free = fit.rates
    rising, _ = rising_fit(free, grid.mass + 1e-9)

    def likelihood(rates: Floats) -> float:
        log_odds = grid.hat @ special.logit(rates)
        return float(right @ log_odds - total @ np.logaddexp(0, log_odds))

    deviance = 2 * (likelihood(free) - likelihood(rising))
    return (rising if deviance <= MOST_DEVIANCE else free), deviance


def _rows_per_label(grid: mend_curve.Grid, labels: Labels) -> float:
    """Return how many rows tell as much as one independent label.

    Rows of one question or topic are right and wrong together, and unequal weights let few rows
    speak for many: both make the sum of residuals stray further than its rows would.
    """
    weights = labels.weights
    unequal = float(weights @ weights / weights.sum() * len(weights) / weights.sum())
    scale = float(weights.mean())
    if labels.units.max(initial=-1) + 1 == len(labels.units):
        # Every row is a unit.
        return scale * unequal * labels.dispersion
    total, right = grid.sums(weights), grid.sums(weights * labels.correct)
    (first,) = mend_curve.fit_curves(grid, total[None], right[None], mend_curve.PLAIN)
    rate = special.expit(grid.hat @ special.logit(first.rates))[grid.group]
    residual = weights * (labels.correct - rate)
    by_unit = np.bincount(labels.units, residual)
    alone = float((weights**2 * rate * (1 - rate)).sum())
    units = len(by_unit)
    joint = float(by_unit @ by_unit) * units / max(units - 1, 1)
    return scale * unequal * max(joint / alone, 1.0) * labels.dispersion


def unit_folds(labels: Labels, rng: np.random.Generator) -> Indices:
    """Return a fold per row; rows of one unit are in one fold."""
    units = int(labels.units.max()) + 1
    return np.asarray((rng.permutation(units) % FOLDS)[labels.units])


def crossfitted(labels: Labels, rng: np.random.Generator) -> Floats:
    """Return mended values of rows by maps that were fitted on other units."""
    grid = mend_curve.lay_grid(labels.confidence, labels.weights)
    fold = unit_folds(labels, rng)
    counts = labels.weights / _rows_per_label(grid, labels)
    selection = [counts * (fold != number) for number in range(FOLDS)]
    total = np.stack([grid.sums(weights) for weights in selection])
    right = np.stack([grid.sums(weights * labels.correct) for weights in selection])
    corrected = np.empty(len(labels.correct))
    fits = mend_curve.fit_curves(grid, total, right, mend_curve.PLAIN)
    for number, (fit, n, hits) in enumerate(zip(fits, total, right, strict=True)):
        rates, _ = _rising_unless_refuted(grid, fit, n, hits)
        rates = _beside_stated(grid, rates, fit, labels, selection[number])
        rows = fold == number
        corrected[rows] = special.expit(
            np.interp(labels.confidence[rows], grid.knots, special.logit(rates))
        )
    return corrected


def gain(labels: Labels, mended: Floats) -> Gain:
    """Return how much cross-fitted values lower the Brier score, by unit."""
    y = labels.correct
    saved = labels.weights * ((labels.confidence - y) ** 2 - (mended - y) ** 2)
    total = labels.weights.sum()
    value = float(saved.sum() / total)
    by_unit = np.bincount(labels.units, saved - value * labels.weights)
    units = len(by_unit)
    if units < 2:
        return Gain(value, -np.inf, np.inf)
    spread = float(np.sqrt(by_unit @ by_unit * units / (units - 1)) / total)
    reach = float(special.stdtrit(units - 1, _ONE_SIDED)) * spread
    return Gain(value, value - reach, value + reach)
