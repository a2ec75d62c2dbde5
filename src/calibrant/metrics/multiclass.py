"""Calibration errors of a matrix of class probabilities: top-label and classwise ECE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import InputError
from calibrant.metrics.binned import ece
from calibrant.metrics.inputs import check_weights

# Rows of float32 softmax sum to 1 up to about 1e-6 per class.
_SUM_TOLERANCE = 1e-3


def top_label_ece(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    by_class: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Return the ECE of the most probable class, in [0, 1]; 0 is best.

    Parameters
    ----------
    probabilities
        One row per example and one column per class, shape (n, k); rows sum to 1.
    labels
        Column of the true class, whole numbers from 0 to k - 1, shape (n,).
    bins, strategy, norm, weights
        As for `ece`.
    by_class
        Bin the examples of each predicted class by themselves and average over examples: top-label
        calibration in the strict sense. False pools the classes, as most papers do.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), 'On calibration of modern neural networks';
    Gupta, Ramdas (2022), 'Top-label calibration and multiclass-to-binary reductions'.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.7, 0.1, 0.2], [0.1, 0.7, 0.2]]
    >>> y = [0, 1, 0, 2]
    >>> round(top_label_ece(p, y), 3), round(top_label_ece(p, y, by_class=True), 3)
    (0.05, 0.25)
    """
    matrix, codes, heavy = _checked(probabilities, labels, weights)
    chosen = matrix.argmax(axis=1)
    confidence, correct = matrix.max(axis=1), chosen == codes
    how: dict[str, Any] = {"bins": bins, "strategy": strategy, "norm": norm}
    if not by_class:
        return ece(confidence, correct, weights=heavy, **how)
    mass = np.ones(codes.size) if heavy is None else heavy
    found = 0.0
    for label in np.unique(chosen[mass > 0]):
        own = chosen == label
        part = ece(confidence[own], correct[own], weights=mass[own], **how)
        found += float(mass[own].sum()) * part
    return found / float(mass.sum())


def classwise_ece(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean over classes of the ECE of that class's probability; 0 is best.

    Every column counts, not only the most probable one. With many classes most probabilities are
    close to 0 and so is the value: compare it at the same number of classes only.

    Parameters
    ----------
    probabilities, labels, bins, strategy, norm, weights
        As for `top_label_ece`.

    References
    ----------
    Kull et al. (2019), 'Beyond temperature scaling: obtaining well-calibrated multiclass
    probabilities with Dirichlet calibration'.

    Examples
    --------
    >>> round(classwise_ece([[0.8, 0.2], [0.8, 0.2]], [0, 1]), 3)
    0.3
    """
    matrix, codes, heavy = _checked(probabilities, labels, weights)
    parts = [
        ece(matrix[:, k], codes == k, bins=bins, strategy=strategy, norm=norm, weights=heavy)
        for k in range(matrix.shape[1])
    ]
    return float(np.mean(parts))


def _checked(
    probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any] | None]:
    matrix = np.asarray(probabilities, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.shape[0] < 1:
        raise InputError(
            f"probabilities have a row per example and a column per class, got {matrix.shape}"
        )
    sums = matrix.sum(axis=1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= _SUM_TOLERANCE) | (matrix < 0).any(axis=1))
    if bad.size:
        raise InputError(
            f"the probabilities of a row are not negative and sum to 1, got {sums[bad[0]]:.6g}",
            row=int(bad[0]) + 1,
            hint="use softmax on logits first",
        )
    codes = np.asarray(labels)
    if codes.shape != matrix.shape[:1] or codes.dtype.kind not in "iu":
        raise InputError("labels are whole numbers, the column of the true class, one per row")
    outside = np.flatnonzero((codes < 0) | (codes >= matrix.shape[1]))
    if outside.size:
        raise InputError(
            f"a label is from 0 to {matrix.shape[1] - 1}, got {int(codes[outside[0]])}",
            row=int(outside[0]) + 1,
        )
    # A sum such as 1.0000001 may push a single probability over 1.
    return np.minimum(matrix, 1.0), codes.astype(np.int64), check_weights(weights, codes.size)
