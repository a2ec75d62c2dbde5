"""Recalibration maps from a score to a probability: by name, from plain data, and cross-fitted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibrant.core import InputError, RngLike, as_generator
from calibrant.core.arrays import Floats, MaybeArray
from calibrant.core.errors import require_known
from calibrant.metrics.binned import bin_statistics
from calibrant.metrics.inputs import check, check_bins, check_choice
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.stats.ranking import DistinctSums
from calibrant.metrics.stats.regressions import isotonic_fit, logistic_fit
from calibrant.metrics.stats.units import unit_codes


def _logits(values: Floats, edge: float) -> Floats:
    return np.asarray(special.logit(np.clip(values, edge, 1 - edge)))


def _check_edge(edge: float) -> float:
    if not 0 < edge < 0.5:
        raise InputError(f"edge is between 0 and 0.5, got {edge!r}")
    return edge


def _check_unit(values: Floats, name: str) -> None:
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        bad = values[(values < 0) | (values > 1)][0]
        raise InputError(
            f"{name} calibration takes confidences in [0, 1], got {bad!r}",
            hint="isotonic and platt take any score",
        )


class TemperatureCalibrator(Calibrator):
    """Divide the logits by one temperature, fitted by likelihood; keeps the ranking.

    Parameters
    ----------
    edge
        Logits of 0 and 1 are infinite; confidences closer to them than this are taken as this
        far away. `moved_` counts the rows for which that was so.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), 'On calibration of modern neural networks'.

    Examples
    --------
    >>> fitted = TemperatureCalibrator().fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0])
    >>> fitted.temperature_ > 1
    True
    """

    name = "temperature"
    options = ("edge",)
    fitted = ("temperature_", "moved_")

    def __init__(self, *, edge: float = 1e-6) -> None:
        self.edge = edge

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        c, y, w = _doubles(confidence, correct, weights)
        self.moved_ = int((np.minimum(c, 1 - c) < _check_edge(self.edge)).sum())
        logits = _logits(c, self.edge)

        def slope(log_temperature: float) -> float:
            scale = math.exp(-log_temperature)
            return float((w * logits * (special.expit(logits * scale) - y)).sum())

        # The loss is convex in 1/T, so its slope changes sign once or not at all.
        low, high = math.log(0.01), math.log(100.0)
        root = low if slope(low) < 0 else high
        if slope(low) * slope(high) < 0:
            # Loaded here: it takes longer than an audit that recalibrates nothing.
            from scipy import optimize

            root = float(optimize.brentq(slope, low, high, xtol=1e-10))
        self.temperature_ = math.exp(root)

    def _map(self, values: Floats) -> Floats:
        _check_unit(values, self.name)
        return np.asarray(special.expit(_logits(values, self.edge) / self.temperature_))


class PlattCalibrator(Calibrator):
    """Logistic regression on the logit of the confidence, or on any score.

    Parameters
    ----------
    scale
        ``logit``: on logits of confidences in [0, 1]. ``score``: on the score as it is.
        ``auto``: logits where all scores lie in [0, 1] when fitted, else scores; `scale_` says
        which.
    edge
        As for `TemperatureCalibrator`.
    penalty
        A small ridge on the slope keeps it finite when the classes can be told apart
        perfectly.

    References
    ----------
    Platt (1999), 'Probabilistic outputs for support vector machines'.

    Examples
    --------
    >>> fitted = PlattCalibrator().fit([0.9, 0.8, 0.7, 0.2, 0.1], [1, 0, 1, 0, 1])
    >>> bool(0 < fitted.predict([0.5])[0] < 1)
    True
    """

    name = "platt"
    options = ("scale", "edge", "penalty")
    fitted = ("slope_", "intercept_", "scale_", "moved_")

    def __init__(self, *, scale: str = "auto", edge: float = 1e-6, penalty: float = 1e-6) -> None:
        self.scale, self.edge, self.penalty = scale, edge, penalty

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        check_choice("scale", self.scale, ("auto", "logit", "score"))
        c, y, w = _doubles(confidence, correct, weights, probability=self.scale == "logit")
        inside = bool(c.min() >= 0 and c.max() <= 1)
        self.scale_ = ("logit" if inside else "score") if self.scale == "auto" else self.scale
        near = np.minimum(c, 1 - c) < _check_edge(self.edge)
        self.moved_ = int(near.sum()) if self.scale_ == "logit" else 0
        self.intercept_, slope = logistic_fit(self._feature(c)[:, None], y, w, self.penalty)
        self.slope_ = float(slope[0])

    def _feature(self, values: Floats) -> Floats:
        return _logits(values, self.edge) if self.scale_ == "logit" else values

    def _map(self, values: Floats) -> Floats:
        if self.scale_ == "logit":
            _check_unit(values, self.name)
        return np.asarray(special.expit(self.intercept_ + self.slope_ * self._feature(values)))


class BetaCalibrator(Calibrator):
    """Logistic regression on log c and -log(1 - c): bends both ends apart.

    Slopes are kept from turning negative, so the map never falls: a negative one is set to 0
    and the other fitted again.

    Parameters
    ----------
    edge, penalty
        As for `PlattCalibrator`.

    References
    ----------
    Kull, Silva Filho, Flach (2017), 'Beta calibration'.

    Examples
    --------
    >>> fitted = BetaCalibrator().fit([0.9, 0.8, 0.7, 0.2, 0.1], [1, 0, 1, 0, 1])
    >>> bool((np.diff(fitted.predict(np.linspace(0.01, 0.99, 9))) >= 0).all())
    True
    """

    name = "beta"
    options = ("edge", "penalty")
    fitted = ("slopes_", "intercept_", "moved_")

    def __init__(self, *, edge: float = 1e-6, penalty: float = 1e-6) -> None:
        self.edge, self.penalty = edge, penalty

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        c, y, w = _doubles(confidence, correct, weights)
        self.moved_ = int((np.minimum(c, 1 - c) < _check_edge(self.edge)).sum())
        features = self._features(c)
        self.intercept_, slopes = logistic_fit(features, y, w, self.penalty)
        mask = slopes > 0
        if not mask.all():
            slopes = np.zeros(2)
            for column in np.flatnonzero(mask):
                one = features[:, column : column + 1]
                self.intercept_, slope = logistic_fit(one, y, w, self.penalty)
                slopes[column] = max(float(slope[0]), 0.0)
            if not (slopes > 0).any():
                # One imagined right and one wrong half-answer keep the base rate inside (0, 1).
                self.intercept_ = float(special.logit((w @ y + 0.5) / (w.sum() + 1)))
        self.slopes_ = slopes

    def _features(self, values: Floats) -> Floats:
        bounded = np.clip(values, self.edge, 1 - self.edge)
        return np.column_stack([np.log(bounded), -np.log1p(-bounded)])

    def _map(self, values: Floats) -> Floats:
        _check_unit(values, self.name)
        return np.asarray(special.expit(self.intercept_ + self._features(values) @ self.slopes_))


class IsotonicCalibrator(Calibrator):
    """The rising step function of least squares; takes any score.

    Between two fitted scores the value is interpolated; outside them it stays constant.

    References
    ----------
    Zadrozny, Elkan (2002), 'Transforming classifier scores into accurate multiclass
    probability estimates'.

    Examples
    --------
    >>> IsotonicCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).predict([0.5, 0.95]).tolist()
    [0.5, 1.0]
    """

    name = "isotonic"
    fitted = ("scores_", "rates_")

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        data = check(confidence, correct, weights, probability=False).present()
        sums = DistinctSums.of(*data)
        rates = isotonic_fit(sums.weight, sums.outcome)
        # Inside a constant stretch only its ends are needed.
        keep = np.ones(rates.size, np.bool_)
        keep[1:-1] = (rates[1:-1] != rates[:-2]) | (rates[1:-1] != rates[2:])
        self.scores_, self.rates_ = sums.confidence[keep], rates[keep]

    def _map(self, values: Floats) -> Floats:
        return np.interp(values, self.scores_, self.rates_)


class MendCalibrator(Calibrator):
    """The map that `mend` saves, without its promise; takes confidences in [0, 1].

    Log odds at up to 20 stated values, straight between them; it rises unless the labels object.

    Examples
    --------
    >>> said = [0.9] * 40 + [0.6] * 40
    >>> MendCalibrator().fit(said, [1, 0] * 20 + [0, 0, 0, 1] * 10).predict([0.9]).round(1).tolist()
    [0.5]
    """

    name = "mend"
    fitted = ("scores_", "log_odds_")

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        # Loaded here: the other maps need none of it.
        from calibrant.metrics.recalibration.mend_fit import Labels, fit_value

        data = check(confidence, correct, weights).present()
        c, y, w = data.confidence, data.correct, data.weights
        if w is not None and (w % 1 == 0).all():
            c, y, w = np.repeat(c, w.astype(np.intp)), np.repeat(y, w.astype(np.intp)), None
        fitted = fit_value(Labels.of(c, y, w))
        self.scores_, self.log_odds_ = fitted.grid.knots, fitted.log_odds

    def _map(self, values: Floats) -> Floats:
        _check_unit(values, self.name)
        return np.asarray(special.expit(np.interp(values, self.scores_, self.log_odds_)))


class HistogramCalibrator(Calibrator):
    """The mean outcome of the bin; an empty bin gives the base rate.

    Parameters
    ----------
    bins, strategy
        As for `ece`; equal mass by default. For ``width`` scores lie in [0, 1].

    References
    ----------
    Zadrozny, Elkan (2001), 'Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers'.

    Examples
    --------
    >>> fitted = HistogramCalibrator(bins=2).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0])
    >>> fitted.predict([0.15, 0.85]).tolist()
    [0.0, 0.5]
    """

    name = "histogram"
    options = ("bins", "strategy")
    fitted = ("edges_", "rates_", "base_")

    def __init__(self, *, bins: int = 15, strategy: str = "mass") -> None:
        self.bins, self.strategy = bins, strategy

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None) -> None:
        check_bins(self.bins)
        check_choice("strategy", self.strategy, ("width", "mass"))
        data = check(confidence, correct, weights)
        stats = bin_statistics(data, bins=self.bins, strategy=self.strategy)
        self.base_ = float(stats.mass @ stats.rate)
        # Gaps between held bins are empty bins of their own, with the base rate.
        edges, rates = [0.0], []
        for lower, upper, rate in zip(stats.lower, stats.upper, stats.rate, strict=True):
            if lower > edges[-1]:
                edges.append(float(lower))
                rates.append(self.base_)
            edges.append(float(upper))
            rates.append(float(rate))
        self.edges_ = np.array(edges)
        self.rates_ = np.array([*rates, self.base_] if edges[-1] < 1 else rates)

    def _map(self, values: Floats) -> Floats:
        _check_unit(values, self.name)
        inner = self.edges_[1:] if self.edges_[-1] < 1 else self.edges_[1:-1]
        return np.asarray(self.rates_[np.searchsorted(inner, values, side="right")])


def _doubles(
    confidence: ArrayLike, correct: ArrayLike, weights: MaybeArray, *, probability: bool = True
) -> tuple[Floats, Floats, Floats]:
    data = check(confidence, correct, weights, probability=probability).present()
    heavy = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    return data.confidence.astype(np.float64), data.correct.astype(np.float64), heavy


CALIBRATORS: dict[str, type[Calibrator]] = {
    kind.name: kind
    for kind in (
        TemperatureCalibrator,
        PlattCalibrator,
        BetaCalibrator,
        IsotonicCalibrator,
        HistogramCalibrator,
        MendCalibrator,
    )
}


def calibrator_from_dict(data: dict[str, Any]) -> Calibrator:
    """Return the calibrator that any `to_dict` described.

    Examples
    --------
    >>> fitted = TemperatureCalibrator().fit([0.9, 0.6, 0.2], [1, 0, 0])
    >>> calibrator_from_dict(fitted.to_dict()).temperature_ == fitted.temperature_
    True
    """
    name = str(data.get("calibrator"))
    require_known([name], CALIBRATORS, "there is no calibrator {}")
    return CALIBRATORS[name].from_dict(data)


def cross_fitted(
    calibrator: Calibrator | str,
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    folds: int = 5,
    units: MaybeArray = None,
    weights: MaybeArray = None,
    rng: RngLike = 0,
) -> Floats:
    """Return recalibrated probabilities, each from a map that never saw its own unit.

    Recalibrating and evaluating on the same rows flatters; here the units (questions) are
    dealt into folds, and every fold is mapped by a calibrator fitted on the others.

    Parameters
    ----------
    calibrator
        An unfitted calibrator or its name.
    confidence, correct, weights
        As for the calibrator.
    folds
        Number of folds; at most one per unit.
    units
        Question of each row; rows of a question stay together.
    rng
        Seed of the deal.

    Examples
    --------
    >>> c = np.linspace(0.05, 0.95, 40)
    >>> cross_fitted("isotonic", c, c > 0.5, folds=4).shape
    (40,)
    """
    if isinstance(calibrator, str):
        calibrator = calibrator_from_dict({"calibrator": calibrator})
    data = check(confidence, correct, weights, probability=False)
    sampled = unit_codes(units, data.rows)
    if not 2 <= folds <= sampled.count:
        raise InputError(
            f"folds is from 2 to the number of units, {sampled.count}; got {folds!r}",
            hint="recalibration that is evaluated on the same data needs at least two units",
        )
    dealt = as_generator(rng).permutation(sampled.count) % folds
    fold = dealt if sampled.codes is None else dealt[sampled.codes]
    out = np.empty(data.rows)
    for number in range(folds):
        peers = fold != number
        heavy = None if data.weights is None else data.weights[peers]
        fitted = calibrator.fresh().fit(data.confidence[peers], data.correct[peers], weights=heavy)
        out[~peers] = fitted.predict(data.confidence[~peers])
    return out
