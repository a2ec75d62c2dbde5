"""The one list of metrics, and those that other tools and papers report by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core import InputError
from calibrant.core.arrays import Array, Floats, Ints, MaybeArray
from calibrant.core.names import data_beside
from calibrant.metrics import scoring
from calibrant.metrics.binned import ece, ece_debiased, over_confidence, under_confidence
from calibrant.metrics.blocks import families, grid
from calibrant.metrics.blocks.cell_error import error
from calibrant.metrics.blocks.families import Metric, MetricFamily, mean_of, ranking_of
from calibrant.metrics.corp import dsc, mcb, unc
from calibrant.metrics.inputs import check, check_weights
from calibrant.metrics.scoring import log_loss
from calibrant.metrics.selective import accuracy_at_coverage, aurc, e_aurc
from calibrant.metrics.smooth import smooth_ece
from calibrant.metrics.stats.ranking import DistinctSums
from calibrant.metrics.stats.regressions import isotonic_fit


def rms_calibration_error(
    confidence: ArrayLike, correct: ArrayLike, *, bin_size: int = 100, weights: MaybeArray = None
) -> float:
    """Return the root mean square calibration error, in [0, 1]; 0 is best.

    The error that Humanity's Last Exam reports: rows are sorted by confidence, bins hold about
    `bin_size` rows each, and squared gaps are averaged over rows. Three details differ from the
    script of that benchmark. It leaves out its last bin, that of the most confident answers; it
    tears equal confidences apart, in whatever order sorting leaves them; and its last bin takes
    the remaining rows. Here every row counts, equal confidences stay together, and bins are
    filled evenly.

    Parameters
    ----------
    confidence, correct, weights
        As for `ece`.
    bin_size
        Rows per bin; fewer rows than that make one bin.

    References
    ----------
    Hendrycks, Mazeika, Dietterich (2019), 'Deep anomaly detection with outlier exposure';
    Phan et al. (2025), 'Humanity's Last Exam'.

    Examples
    --------
    >>> round(rms_calibration_error([0.9] * 100 + [0.6] * 100, [1] * 100 + [0] * 100), 4)
    0.4301
    """
    if bin_size < 1:
        raise InputError(f"bin_size is at least 1, got {bin_size!r}")
    data = check(confidence, correct, weights).present()
    # Whole weights are repetitions and count as rows; other weights only shift the balance.
    repeated = data.weights is not None and bool((data.weights % 1 == 0).all())
    bins = max(int(data.total if repeated else data.rows) // bin_size, 1)
    return ece(confidence, correct, bins=bins, strategy="mass", norm="l2", weights=weights)


def mce(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15, weights: MaybeArray = None
) -> float:
    """Return the maximum calibration error: the largest gap of any bin, in [0, 1]; 0 is best.

    One row alone in a bin can decide it, so it is large on little data however good the model.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), 'Obtaining well calibrated probabilities using Bayesian
    binning'.

    Examples
    --------
    >>> round(mce([0.9, 0.9, 0.1, 0.1], [1, 1, 1, 0], bins=10), 3)
    0.4
    """
    return ece(confidence, correct, bins=bins, norm="max", weights=weights)


def adaptive_ece(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15, weights: MaybeArray = None
) -> float:
    """Return the ECE over bins that hold equally many rows, in [0, 1]; 0 is best.

    References
    ----------
    Nguyen, O'Connor (2015), 'Posterior calibration and exploratory analysis for natural language
    processing models'.

    Examples
    --------
    >>> round(adaptive_ece([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0], bins=2), 3)
    0.15
    """
    return ece(confidence, correct, bins=bins, strategy="mass", weights=weights)


def ks_calibration_error(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    """Return the Kolmogorov-Smirnov calibration error, in [0, 1]; 0 is best.

    The largest difference between the summed confidences and the summed outcomes of all rows up
    to some confidence, divided by the number of rows. It needs no bins.

    References
    ----------
    Gupta et al. (2021), 'Calibration of neural networks using splines'.

    Examples
    --------
    >>> round(ks_calibration_error([0.9, 0.9, 0.5, 0.5], [1, 0, 1, 0]), 3)
    0.2
    """
    sums = DistinctSums.of(*check(confidence, correct, weights).present())
    distance = np.cumsum(sums.weight * sums.confidence - sums.outcome)
    return float(np.abs(distance).max() / sums.weight.sum())


class LogLossParts(Struct, frozen=True):
    """Parts of the log loss: ``log_loss = calibration + refinement``.

    ``refinement = uncertainty - discrimination`` is what recalibration cannot mend.
    """

    log_loss: float
    calibration: float
    refinement: float
    discrimination: float
    uncertainty: float


def log_loss_decomposition(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> LogLossParts:
    """Split the log loss into what recalibration could mend and what it could not.

    The confidences are recalibrated by isotonic regression, which has the least log loss of
    all rising maps. `refinement` is the log loss afterwards, `calibration` the rest; it is
    biased upwards on little data, and infinite where a certain answer is wrong.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), 'Stable reliability diagrams for probabilistic
    classifiers'.

    Examples
    --------
    >>> parts = log_loss_decomposition([0.9] * 4, [1, 1, 0, 0])
    >>> round(parts.calibration, 3), round(parts.refinement, 3), round(parts.discrimination, 3)
    (0.511, 0.693, 0.0)
    """
    data = check(confidence, correct, weights).present()
    sums = DistinctSums.of(*data)
    fitted = isotonic_fit(sums.weight, sums.outcome)
    total = float(sums.weight.sum())
    mean = float(sums.outcome.sum()) / total
    whole = log_loss(*data[:2], weights=data.weights)
    refinement = _entropy(sums.weight, sums.outcome, fitted) / total
    uncertainty = _entropy(sums.weight, sums.outcome, np.full(fitted.size, mean)) / total
    return LogLossParts(
        log_loss=whole,
        calibration=max(whole - refinement, 0.0),
        refinement=refinement,
        discrimination=max(uncertainty - refinement, 0.0),
        uncertainty=uncertainty,
    )


def _entropy(weight: np.ndarray, right: np.ndarray, rate: np.ndarray) -> float:
    """Return the summed log loss; a rate of 0 or 1 fits its rows exactly and costs nothing."""
    inside = (rate > 0) & (rate < 1)
    p, hits = rate[inside], right[inside]
    misses = weight[inside] - hits
    return float(-(hits @ np.log(p) + misses @ np.log1p(-p)))


def log_loss_calibration(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    """Return the part of the log loss that recalibration could mend; 0 is best.

    Examples
    --------
    >>> round(log_loss_calibration([0.9] * 4, [1, 1, 0, 0]), 3)
    0.511
    """
    return log_loss_decomposition(confidence, correct, weights=weights).calibration


def log_loss_refinement(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    """Return the log loss that remains after recalibration; 0 is best.

    Examples
    --------
    >>> round(log_loss_refinement([0.9] * 4, [1, 1, 0, 0]), 3)
    0.693
    """
    return log_loss_decomposition(confidence, correct, weights=weights).refinement


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
    weights: MaybeArray = None,
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
    choice = matrix.argmax(axis=1)
    confidence, correct = matrix.max(axis=1), choice == codes
    error = partial(ece, bins=bins, strategy=strategy, norm=norm)
    if not by_class:
        return error(confidence, correct, weights=heavy)
    mass = np.ones(codes.size) if heavy is None else heavy
    total = 0.0
    for label in np.unique(choice[mass > 0]):
        alike = choice == label
        part = error(confidence[alike], correct[alike], weights=mass[alike])
        total += float(mass[alike].sum()) * part
    return total / float(mass.sum())


def classwise_ece(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    weights: MaybeArray = None,
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
    error = partial(ece, bins=bins, strategy=strategy, norm=norm, weights=heavy)
    return float(np.mean([error(matrix[:, k], codes == k) for k in range(matrix.shape[1])]))


def _checked(
    probabilities: ArrayLike, labels: ArrayLike, weights: MaybeArray
) -> tuple[Floats, Ints, Array | None]:
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


def _gap(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return mean confidence minus accuracy; `confidence_gap` has it with its interval."""
    confidences = scoring.mean_confidence(confidence, correct, weights=weights)
    return confidences - scoring.accuracy(confidence, correct, weights=weights)


# What computes a metric's value, and with its interval from rows and from cells.
_COMPUTED: dict[str, tuple[Callable[..., float], MetricFamily | None]] = {
    "error": (error, MetricFamily(families.cell_error, grid.of_cells)),
    "ece": (ece, MetricFamily(families.binned_error, grid.of_place)),
    "ece_debiased": (ece_debiased, MetricFamily(families.debiased_error, grid.of_place)),
    "smooth_ece": (smooth_ece, MetricFamily(families.smooth_error, grid.of_smooth)),
    "brier": (scoring.brier, mean_of(lambda c, y: np.square(c - y), bend=(2.0, 2.0))),
    "log_loss": (
        scoring.log_loss,
        mean_of(scoring.log_loss_rows, cells=families.log_loss_of_cells, bound=grid.of_log_loss),
    ),
    "auroc": (scoring.auroc, ranking_of("auroc", families.area_under_roc, grid.of_area)),
    "auprc": (
        scoring.auprc,
        ranking_of("auprc", families.average_precision, grid.of_precision),
    ),
    "aurc": (aurc, ranking_of("aurc", families.average_risk, grid.of_risk)),
    "e_aurc": (e_aurc, ranking_of("e_aurc", families.excess_risk, grid.of_risk)),
    "accuracy": (
        scoring.accuracy,
        mean_of(lambda c, y: y + 0.0 * c, interval=families.wilson_share, bound=grid.nothing),
    ),
    "mean_confidence": (
        scoring.mean_confidence,
        mean_of(lambda c, y: c + 0.0 * y, interval=families.student_mean, bound=grid.of_place),
    ),
    "over_confidence": (over_confidence, MetricFamily(families.over_half, grid.of_place)),
    "under_confidence": (under_confidence, MetricFamily(families.under_half, grid.of_place)),
    "mcb": (mcb, MetricFamily(families.miscalibration, grid.of_miscalibration)),
    "dsc": (dsc, MetricFamily(families.discrimination, grid.of_discrimination)),
    "unc": (unc, MetricFamily(families.uncertainty, grid.nothing)),
    "confidence_gap": (_gap, MetricFamily(families.mean_gap, grid.of_place)),
    "rms_calibration_error": (rms_calibration_error, None),
    "mce": (mce, None),
    "adaptive_ece": (adaptive_ece, None),
    "ks_calibration_error": (ks_calibration_error, None),
    "log_loss_calibration": (log_loss_calibration, None),
    "log_loss_refinement": (log_loss_refinement, None),
    "accuracy_at_coverage": (accuracy_at_coverage, None),
}


def _metrics() -> Iterator[Metric]:
    for name, facts in data_beside(__file__, "metrics.toml").items():
        facts |= {key: " ".join(facts.get(key, "").split()) for key in ("words", "formula")}
        facts["range"] = tuple(facts.get("range", (0.0, 1.0)))
        value, family = _COMPUTED[name]
        yield Metric(name=name, value=value, family=family, **facts)


METRICS: dict[str, Metric] = {metric.name: metric for metric in _metrics()}
"""Every metric by name, those of every audit first, in the order of a document."""


def audited() -> tuple[str, ...]:
    """Return the names of the metrics that every audit has.

    Examples
    --------
    >>> audited()[:3]
    ('error', 'ece', 'ece_debiased')
    """
    return tuple(name for name, metric in METRICS.items() if metric.audit == "always")
