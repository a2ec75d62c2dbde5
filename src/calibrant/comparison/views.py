"""Four views of two or more models: raw, instance-, distribution- and candidate-aligned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.stats.binning import width_edges

__all__ = [
    "METRICS",
    "VIEWS",
    "BinnedRows",
    "binned_rows",
    "distribution_weights",
    "effective_size",
    "score_rows",
    "shared_outcome",
]

Floats: TypeAlias = npt.NDArray[np.float64]

VIEWS = ("raw", "ia", "da", "ca")
METRICS = ("brier", "ece")


@dataclass(frozen=True, slots=True)
class BinnedRows:
    """What both metrics need of each row: its bin, its residual, its squared residual."""

    bin: npt.NDArray[np.intp]
    residual: Floats
    square: Floats
    bins: int


def binned_rows(confidence: Floats, correct: Floats, *, bins: int) -> BinnedRows:
    """Prepare rows for weighted scores."""
    inner = width_edges(bins)[1:-1]
    residual = confidence - correct
    return BinnedRows(np.searchsorted(inner, confidence, side="right"), residual, residual**2, bins)


def score_rows(rows: BinnedRows, weights: npt.ArrayLike | None = None) -> tuple[float, float]:
    """Return weighted Brier score and weighted binned ECE.

    The ECE is sum_b |sum_{i in b} w_i (c_i - z_i)| / sum_i w_i, which is the sum over bins of
    W_b / W times the gap of the bin.
    """
    w = np.ones(rows.residual.size) if weights is None else np.asarray(weights, dtype=np.float64)
    total = float(w.sum())
    if total <= 0:
        return float("nan"), float("nan")
    gaps = np.bincount(rows.bin, weights=w * rows.residual, minlength=rows.bins)
    return float(w @ rows.square) / total, float(np.abs(gaps).sum()) / total


def shared_outcome(correct: Floats) -> npt.NDArray[np.bool_]:
    """Return the questions on which all models (rows) share the outcome."""
    same: npt.NDArray[np.bool_] = (correct == correct[0]).all(axis=0)
    return same


def distribution_weights(
    correct: Floats, target: float, *, model: str = "the model", accuracy: float | None = None
) -> Floats:
    """Return row weights under which the accuracy equals `target`.

    w = a*/a for a right answer and (1 - a*)/(1 - a) for a wrong one; a grade z between counts
    as z of the one and 1 - z of the other, which assumes that confidence depends on the grade
    alone.

    Raises
    ------
    InputError
        Where the accuracy is 0 or 1: one outcome then has no rows to weigh up.

    Examples
    --------
    >>> w = distribution_weights(np.array([1.0, 1.0, 1.0, 0.0]), 0.5)
    >>> float(w @ np.array([1.0, 1.0, 1.0, 0.0]) / w.sum())
    0.5
    """
    a = float(correct.mean()) if accuracy is None else accuracy
    if not 0 < a < 1:
        raise InputError(
            f"{model} has accuracy {a:g}: the distribution-aligned view needs both right and "
            "wrong answers of every model",
            hint=Hint("leave this model out with {models}, or use more questions"),
        )
    if not 0 < target < 1:
        raise InputError(f"the target accuracy must lie between 0 and 1, got {target:g}")
    return correct * (target / a) + (1 - correct) * ((1 - target) / (1 - a))


def effective_size(weights: Floats) -> float:
    """Return Kish's effective sample size, (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())
