"""Mend in the manners of scikit-learn, a confidence alone or together with columns of its rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, MaybeArray, named_stream
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.learned_score import LearnedScore
from calibrant.data.recalibration_map import ColumnMap, RecalibrationMap, load_maps, names_of
from calibrant.metrics.recalibration.base import Calibrator, not_fitted, score_column
from calibrant.metrics.recalibration.mend_fit import (
    FOLDS,
    FittedCurve,
    Labels,
    crossfitted,
    fit_curve,
    gain,
    unit_folds,
)

CERTAINTY = 0.95
_REFERENCE = 201


def fit_map(
    labels: Labels, *, seed: int = 0, over: Floats | None = None, **about: Any
) -> RecalibrationMap:
    """Return the map of labelled confidences; `about` are model, method and `fitted_on`.

    What it gains is beyond the confidences, or beyond the values in `over`.
    """
    curve = fit_curve(labels, named_stream(seed, "mend", "promise"))
    corrected = crossfitted(labels, named_stream(seed, "mend", "folds"))
    won = gain(labels if over is None else replace(labels, confidence=over), corrected)
    verdict = won.verdict(len(labels.correct))
    promise = {
        "off_by": curve.off_by if verdict == "mended" else None,
        "certainty": CERTAINTY,
        "gain": won.value,
        "gain_low": won.low if np.isfinite(won.low) else None,
    }
    return map_of_curve(curve, labels, verdict=verdict, promise=promise, **about)


def map_of_curve(curve: FittedCurve, labels: Labels, **about: Any) -> RecalibrationMap:
    """Return a fitted curve as a map; `about` are its verdict and promise, and whose it is."""
    quantiles = np.quantile(labels.confidence, np.linspace(0, 1, _REFERENCE), method="nearest")
    return RecalibrationMap(
        knots=_rounded(curve.grid.knots),
        log_odds=_rounded(curve.log_odds),
        low=_rounded(curve.low),
        high=_rounded(curve.high),
        rising=curve.rising,
        deviance=curve.deviance,
        n=len(labels.correct),
        reference=_rounded(quantiles),
        made=dt.datetime.now(dt.UTC).date().isoformat(),
        **about,
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    """Return values with the digits that a file needs; distinct knots stay distinct."""
    return tuple(float(f"{value:.12g}") for value in values)


class Mend(Calibrator):
    """Learn what stated confidences mean.

    Parameters
    ----------
    seed
        Seed of the folds and of the draws behind the promise.

    Attributes
    ----------
    map_
        The fitted `RecalibrationMap`: `probability`, `interval`, `apply`, `update`, `check`,
        `save`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said = rng.choice([0.8, 0.9, 0.95], 600)
    >>> right = rng.random(600) < said - 0.25
    >>> mend = Mend().fit(said, right)
    >>> mend.map_.verdict, round(mend.map_.probability(0.9), 1)
    ('mended', 0.6)
    >>> mend.predict_proba([0.9]).shape
    (1, 2)
    """

    options, fitted = ("seed",), ("map_",)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(  # type: ignore[override]
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        *,
        weights: MaybeArray = None,
        groups: MaybeArray = None,
        about: Mapping[str, Any] | None = None,
    ) -> Mend:
        """Fit the map; rows without a confidence or an outcome are left out.

        Parameters
        ----------
        confidence, correct
            Confidences in [0, 1] and outcomes in [0, 1], one per row.
        weights
            A weight per row.
        groups
            What was sampled independently, one value per row: the question, topic or user.
        about
            Model, method and source, for the saved file.
        """
        c = np.asarray(score_column(confidence), dtype=np.float64)
        y = np.asarray(correct, dtype=np.float64).reshape(-1)
        if c.shape != y.shape:
            raise InputError(f"{len(c)} confidences and {len(y)} outcomes")
        finite = np.isfinite(c) & np.isfinite(y)
        for name, values in (("confidence", c[finite]), ("outcome", y[finite])):
            bad = values[(values < 0) | (values > 1)]
            if bad.size:
                raise InputError(f"each {name} must be between 0 and 1, got {bad[0]!r}")
        if not finite.any():
            raise InputError("no row has a confidence and an outcome")
        w = None if weights is None else np.asarray(weights, dtype=np.float64)[finite]
        units = None if groups is None else np.asarray(groups)[finite]
        labels = Labels.of(c[finite], y[finite], w, units)
        self.map_ = fit_map(labels, seed=self.seed, **(about or {}))
        return self

    def predict(self, confidence: ArrayLike) -> Floats:
        """Return the chance of being right for each confidence; what is missing stays missing."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted()("Mend is not fitted yet", hint="call fit first")
        return self.map_.probabilities(np.asarray(score_column(confidence), dtype=np.float64))


# With 200 labels a fifth of all fits got worse by columns: see docs/mend.md.
LEAST_LABELS = 500


def fit_columns(
    labels: Labels, columns: pl.DataFrame, fitted: RecalibrationMap, *, seed: int = 0
) -> ColumnMap:
    """Return a map of the confidence and of other columns; its gain is beyond `fitted`.

    Every row's score comes from other units, so that the map of the scores, its interval and its
    promise are those of new rows.

    Parameters
    ----------
    labels
        Labelled confidences.
    columns
        One row per label.
    fitted
        The map of the confidence alone.
    seed
        Seed of the folds and of the draws behind the promise.
    """
    rows = columns.with_columns(pl.Series("confidence", fitted.probabilities(labels.confidence)))
    fold = unit_folds(labels, named_stream(seed, "mend", "columns"))
    score = np.empty(len(fold))
    for number in range(FOLDS):
        companion = fold != number
        learned = _learned(rows.filter(companion), labels, companion)
        score[~companion] = learned.predict(rows.filter(~companion))
    alone = crossfitted(labels, named_stream(seed, "mend", "folds"))
    scored = fit_map(replace(labels, confidence=score), seed=seed, over=alone)
    return ColumnMap(_learned(rows, labels, np.ones(len(fold), dtype=bool)), scored)


def _learned(rows: pl.DataFrame, labels: Labels, choice: np.ndarray) -> LearnedScore:
    return LearnedScore().fit(rows, labels.correct[choice], labels.weights[choice])


def mended_columns(scores: pl.DataFrame, path: str | Path) -> pl.DataFrame:
    """Return scores with columns ``mended``, ``mended_low`` and ``mended_high``.

    Parameters
    ----------
    scores
        A table of scores; confidences stay as they are stated.
    path
        A file that `mend` saved. Rows of a model and method without a map in it have no value.
    """
    maps = maps_of_models(path, scores["model"].unique().to_list())
    parts = [
        maps[key].apply(part) if key in maps else part
        for key, part in scores.with_row_index("_row").group_by("model", "method")
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(("mended", "mended_low", "mended_high"), pl.Float64))
    return pl.concat([*parts, empty], how="diagonal").sort("_row").drop("_row")


def maps_of_models(
    path: str | Path, models: Iterable[str]
) -> dict[tuple[str, str], RecalibrationMap]:
    """Return the maps of a file by model and method; refuse one that has none of these models."""
    maps = {(fitted.model, fitted.method): fitted for fitted in load_maps(path)}
    if not {model for model, _ in maps} & set(models):
        rule = f"the file has no map of these models, but of {names_of(maps.values())}"
        raise InputError(rule, source=str(path))
    return maps


def refuse_other_file(path: str | Path) -> None:
    """Refuse to write a map over a file that holds something else."""
    if Path(path).is_file() and Path(path).stat().st_size:
        try:
            load_maps(path)
        except (InputError, UnicodeDecodeError):
            rule = "there is a file that is no map, and it is not written over"
            raise InputError(rule, source=str(path), hint=Hint("name another {save}")) from None
