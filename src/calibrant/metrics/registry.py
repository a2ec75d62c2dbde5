"""The one list of metrics: whatever names, computes, titles or explains them reads it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.metrics import cell_bounds, families
from calibrant.metrics.binned import ece, over_confidence, under_confidence
from calibrant.metrics.cell_error import error
from calibrant.metrics.corp import dsc, mcb, unc
from calibrant.metrics.debiased import ece_debiased
from calibrant.metrics.families import decomposition_of, error_of, mean_of, ranking_of
from calibrant.metrics.metric import Metric
from calibrant.metrics.named import (
    adaptive_ece,
    ks_calibration_error,
    log_loss_calibration,
    log_loss_refinement,
    mce,
    rms_calibration_error,
)
from calibrant.metrics.scoring import (
    accuracy,
    auprc,
    auroc,
    brier,
    log_loss,
    log_loss_rows,
    mean_confidence,
)
from calibrant.metrics.selective import accuracy_at_coverage, aurc, e_aurc
from calibrant.metrics.smooth import smooth_ece


def _gap(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return mean confidence minus accuracy; `confidence_gap` has it with its interval."""
    said = mean_confidence(confidence, correct, weights=weights)
    return said - accuracy(confidence, correct, weights=weights)


_EVERY_AUDIT = (
    Metric(
        name="error",
        title="calibration error",
        words="How far confidence and share of right answers are apart, without what noise adds: "
        "at each stated value that many rows have, and in slices of the scale else. 0 is best. "
        "Every claim about calibration rests on it.",
        formula="sum over cells of n_k / n * |mean confidence_k - accuracy_k|, less its noise",
        main=True,
        value=error,
        unit="points",
        family=error_of(families.cell_error, cell_bounds.of_cells),
    ),
    Metric(
        name="ece",
        title="ECE",
        words="Expected calibration error: how far confidence and share of right answers are "
        "apart, averaged over bins of equal width. 0 is best. A perfectly calibrated model shows "
        "more than 0 on finite data.",
        formula="sum over bins of n_b / n * |mean confidence_b - accuracy_b|",
        main=True,
        value=ece,
        unit="points",
        binned=True,
        family=error_of(families.binned_error, cell_bounds.of_place),
    ),
    Metric(
        name="ece_debiased",
        title="ECE debiased",
        words="ECE with the part taken off that chance alone would show.",
        formula="t * ECE, with t such that gaps t * gap_b are expected to show the ECE observed",
        main=True,
        value=ece_debiased,
        unit="points",
        binned=True,
        family=error_of(families.debiased_error, cell_bounds.of_place),
    ),
    Metric(
        name="smooth_ece",
        title="smooth ECE",
        words="Calibration error with a kernel instead of bins; needs no choice of bins.",
        formula="mean |kernel-smoothed residual| at the bandwidth that equals it "
        "(Blasiok, Nakkiran 2023)",
        main=True,
        value=smooth_ece,
        unit="points",
        family=error_of(families.smooth_error, cell_bounds.of_smooth),
    ),
    Metric(
        name="brier",
        title="Brier",
        words="Mean squared distance between confidence and outcome. Lower is better; it rewards "
        "both calibration and telling right from wrong.",
        formula="mean((confidence - correct)^2)",
        group="score",
        main=True,
        value=brier,
        family=mean_of(lambda c, y: np.square(c - y), bend=(2.0, 2.0)),
    ),
    Metric(
        name="log_loss",
        title="log loss",
        words="Mean surprise at the outcome; a certain wrong answer costs without limit.",
        formula="-mean(log(probability given to the outcome))",
        range=(0.0, math.inf),
        group="score",
        main=True,
        value=log_loss,
        family=mean_of(
            log_loss_rows, cells=families.log_loss_of_cells, bound=cell_bounds.of_log_loss
        ),
    ),
    Metric(
        name="auroc",
        title="AUROC",
        words="Chance that a right answer has more confidence than a wrong one. 0.5 is chance.",
        formula="P(confidence of right > confidence of wrong) + P(equal) / 2",
        better="high",
        probability=False,
        group="ranking",
        main=True,
        value=auroc,
        family=ranking_of("auroc", families.area_under_roc, cell_bounds.of_area),
    ),
    Metric(
        name="auprc",
        title="AUPRC",
        words="Average precision of right answers: how pure the surest answers are. Higher is "
        "better; the accuracy is chance.",
        formula="mean over right answers of the share of right ones at least as confident",
        better="high",
        probability=False,
        group="ranking",
        value=auprc,
        family=ranking_of("auprc", families.average_precision, cell_bounds.of_precision),
    ),
    Metric(
        name="aurc",
        title="AURC",
        words="Mean error when answering the most confident share first. Lower is better.",
        formula="mean over shares of the error among the surest",
        probability=False,
        group="ranking",
        main=True,
        value=aurc,
        family=ranking_of("aurc", families.average_risk, cell_bounds.of_risk),
    ),
    Metric(
        name="e_aurc",
        title="E-AURC",
        words="AURC above that of the best order of the same answers. 0 is best.",
        formula="AURC - AURC with all right answers first",
        probability=False,
        group="ranking",
        value=e_aurc,
        family=ranking_of("e_aurc", families.excess_risk, cell_bounds.of_risk),
    ),
    Metric(
        name="accuracy",
        title="accuracy",
        words="Share of right answers.",
        formula="sum(correct) / n",
        better="high",
        probability=False,
        unit="share",
        group="share",
        main=True,
        value=accuracy,
        family=mean_of(
            lambda c, y: y + 0.0 * c, interval=families.wilson_share, bound=cell_bounds.nothing
        ),
    ),
    Metric(
        name="mean_confidence",
        title="confidence",
        words="Mean of the confidence; a calibrated model has it equal to its accuracy.",
        formula="sum(confidence) / n",
        better="neither",
        unit="share",
        group="share",
        main=True,
        value=mean_confidence,
        family=mean_of(
            lambda c, y: c + 0.0 * y, interval=families.student_mean, bound=cell_bounds.of_place
        ),
    ),
    Metric(
        name="over_confidence",
        title="over-confidence",
        words="The part of the ECE from bins whose confidence is too high.",
        formula="sum over bins of n_b / n * max(mean confidence_b - accuracy_b, 0)",
        value=over_confidence,
        unit="points",
        binned=True,
        family=error_of(families.over_half, cell_bounds.of_place),
    ),
    Metric(
        name="under_confidence",
        title="under-confidence",
        words="The part of the ECE from bins whose confidence is too low.",
        formula="sum over bins of n_b / n * max(accuracy_b - mean confidence_b, 0)",
        value=under_confidence,
        unit="points",
        binned=True,
        family=error_of(families.under_half, cell_bounds.of_place),
    ),
    Metric(
        name="mcb",
        title="MCB",
        words="Miscalibration: what the best rising correction would save of the Brier score.",
        formula="Brier - Brier after isotonic regression",
        group="part",
        value=mcb,
        family=decomposition_of(families.miscalibration, cell_bounds.of_miscalibration),
    ),
    Metric(
        name="dsc",
        title="DSC",
        words="Discrimination: what the corrected confidence saves against always saying the "
        "accuracy. Higher is better.",
        formula="UNC - Brier after isotonic regression",
        range=(0.0, 0.25),
        better="high",
        group="part",
        value=dsc,
        family=decomposition_of(families.discrimination, cell_bounds.of_discrimination),
    ),
    Metric(
        name="unc",
        title="UNC",
        words="Uncertainty: the Brier score of always saying the accuracy.",
        formula="accuracy * (1 - accuracy)",
        range=(0.0, 0.25),
        better="neither",
        group="part",
        value=unc,
        family=decomposition_of(families.uncertainty, cell_bounds.nothing),
    ),
    Metric(
        name="confidence_gap",
        title="gap",
        words="Mean confidence minus share of right answers; above 0 is over-confident.",
        formula="sum(confidence - correct) / n",
        range=(-1.0, 1.0),
        better="zero",
        unit="points",
        value=_gap,
        family=error_of(families.mean_gap, cell_bounds.of_place),
    ),
)
_WHEN_ASKED = (
    Metric(
        name="rms_calibration_error",
        title="RMS calibration error",
        words="Root mean square calibration error over bins of 100 rows, as Humanity's Last Exam "
        "reports it. 0 is best.",
        value=rms_calibration_error,
        audit="asked",
    ),
    Metric(
        name="mce",
        title="MCE",
        words="Maximum calibration error: the largest gap of any bin. 0 is best.",
        value=mce,
        audit="asked",
        binned=True,
    ),
    Metric(
        name="adaptive_ece",
        title="adaptive ECE",
        words="ECE over bins that hold equally many rows. 0 is best.",
        value=adaptive_ece,
        audit="asked",
        binned=True,
    ),
    Metric(
        name="ks_calibration_error",
        title="KS calibration error",
        words="Largest difference of summed confidences and summed outcomes up to some "
        "confidence. 0 is best; it needs no bins.",
        value=ks_calibration_error,
        audit="asked",
    ),
    Metric(
        name="log_loss_calibration",
        title="log loss, calibration",
        words="The part of the log loss that recalibration could mend. 0 is best.",
        range=(0.0, math.inf),
        group="part",
        value=log_loss_calibration,
        audit="asked",
    ),
    Metric(
        name="log_loss_refinement",
        title="log loss, refinement",
        words="The log loss that remains after recalibration. 0 is best.",
        range=(0.0, math.inf),
        group="part",
        value=log_loss_refinement,
        audit="asked",
    ),
)
_IN_PYTHON = (
    Metric(
        name="accuracy_at_coverage",
        title="accuracy at coverage",
        words="Share of right answers among the surest share of all.",
        better="high",
        probability=False,
        group="ranking",
        value=accuracy_at_coverage,
        audit="never",
    ),
)
METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (*_EVERY_AUDIT, *_WHEN_ASKED, *_IN_PYTHON)
}
"""Every metric by name, those of every audit first, in the order of a document."""


def audited() -> tuple[str, ...]:
    """Return the names of the metrics that every audit has.

    Examples
    --------
    >>> audited()[:3]
    ('error', 'ece', 'ece_debiased')
    """
    return tuple(name for name, metric in METRICS.items() if metric.audit == "always")


def named_metric(name: str) -> Metric:
    """Return a metric, or say which names are near."""
    if name not in METRICS:
        raise InputError(f"there is no metric {name!r}", hint=did_you_mean(name, list(METRICS)))
    return METRICS[name]
