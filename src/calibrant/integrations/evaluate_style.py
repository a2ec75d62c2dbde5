"""Calibration in the manner of Hugging Face `evaluate`: add, add_batch, compute.

Fits where a module of that library is expected, such as `compute_metrics` of a trainer: numbers
come back under plain names, with the ends of their intervals beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.errors import InputError
from calibrant.inputs.objects import as_column
from calibrant.metrics import metric_estimates

_METRICS = ("ece", "brier", "auroc")
_COLUMNS = 2


class Calibration:
    """A metric module of calibration, with intervals.

    Parameters
    ----------
    metrics
        Names of metrics, as in an audit.
    intervals
        Give the ends of the intervals too, as ``ece_low`` and ``ece_high``.
    resamples
        Resamples of the intervals.
    seed
        Seed of the resampling.

    Examples
    --------
    >>> metric = Calibration(["ece", "brier"], intervals=False)
    >>> metric.compute(predictions=[0.9, 0.8, 0.7, 0.6], references=[1, 1, 0, 1])
    {'ece': 0.35, 'brier': 0.175, 'n': 4}
    """

    name = "calibration"

    def __init__(
        self,
        metrics: Sequence[str] = _METRICS,
        *,
        intervals: bool = True,
        resamples: int = 200,
        seed: int = 0,
    ) -> None:
        self.metrics = tuple(metrics)
        self.intervals = intervals
        self.resamples = resamples
        self.seed = seed
        self._predictions: list[float] = []
        self._references: list[float] = []

    def add(self, *, prediction: float, reference: float) -> None:
        """Add one confidence and its outcome."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Any, references: Any) -> None:
        """Add confidences and outcomes: lists, arrays, Series, tensors."""
        said, right = _confidences(predictions), _flat(references, "references")
        if said.size != right.size:
            raise InputError(
                f"predictions and references are as many, got {said.size} and {right.size}"
            )
        self._predictions += said.tolist()
        self._references += right.tolist()

    def compute(
        self, *, predictions: Any = None, references: Any = None
    ) -> dict[str, float | int | None]:
        """Return the metrics of what was added and of what is given, and start anew.

        Parameters
        ----------
        predictions
            Confidences, or probabilities of two classes as two columns.
        references
            Whether each was right: 0 or 1.
        """
        if (predictions is None) != (references is None):
            raise InputError("compute takes predictions and references, or neither")
        if predictions is not None:
            self.add_batch(predictions=predictions, references=references)
        if not self._predictions:
            raise InputError("there is nothing to compute: add predictions and references")
        said, right = np.array(self._predictions), np.array(self._references)
        self._predictions, self._references = [], []
        found = metric_estimates(
            said, right, names=list(self.metrics), resamples=self.resamples, rng=self.seed
        )
        numbers: dict[str, float | int | None] = {}
        for name, estimate in found.items():
            numbers[name] = _plain(estimate.value)
            if self.intervals:
                numbers[f"{name}_low"] = _plain(estimate.low)
                numbers[f"{name}_high"] = _plain(estimate.high)
        return {**numbers, "n": int(said.size)}


def _flat(values: Any, name: str) -> NDArray[np.float64]:
    return np.asarray(as_column(values, name), dtype=float).reshape(-1)


def _confidences(values: Any) -> NDArray[np.float64]:
    """Return one number per row; of two columns the second, which is the right class."""
    array = np.asarray(as_column(values, "predictions"), dtype=float)
    if array.ndim == _COLUMNS and array.shape[1] == _COLUMNS:
        return array[:, 1]
    if array.ndim > 1 and array.shape[1:] != (1,):
        raise InputError(
            f"predictions are confidences or two columns of probabilities, got shape {array.shape}",
            hint="of several classes, give the probability of the chosen one",
        )
    return array.reshape(-1)


def _plain(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)
