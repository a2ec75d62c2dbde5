"""Calibration, scoring and discrimination metrics on arrays."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

# Bound here, because its module has the same name.
from calibrant.metrics.corp import corp

if TYPE_CHECKING:
    from calibrant.metrics.binned import (
        ReliabilityBins,
        ece,
        over_confidence,
        reliability_bins,
        under_confidence,
    )
    from calibrant.metrics.calibrators import (
        BetaCalibrator,
        Calibrator,
        HistogramCalibrator,
        IsotonicCalibrator,
        PlattCalibrator,
        TemperatureCalibrator,
    )
    from calibrant.metrics.corp import Corp, ReliabilityCurve, dsc, mcb, reliability_curve, unc
    from calibrant.metrics.debiased import ece_debiased
    from calibrant.metrics.discrimination import auprc, auroc
    from calibrant.metrics.estimates import DEFAULT, PROBABILITY_METRICS, metric_estimates
    from calibrant.metrics.estimators.classifier import CalibratedClassifier
    from calibrant.metrics.estimators.display import ReliabilityDisplay
    from calibrant.metrics.gaps.gap import confidence_gap
    from calibrant.metrics.named.binary import (
        LogLossParts,
        adaptive_ece,
        ks_calibration_error,
        log_loss_calibration,
        log_loss_decomposition,
        log_loss_refinement,
        mce,
        rms_calibration_error,
    )
    from calibrant.metrics.named.multiclass import classwise_ece, top_label_ece
    from calibrant.metrics.perfect import CalibrationTest, calibration_test, spiegelhalter_z
    from calibrant.metrics.recalibration import CALIBRATORS, calibrator_from_dict, cross_fitted
    from calibrant.metrics.resampling import (
        METRICS,
        bootstrap_distribution,
        bootstrap_interval,
        paired_gap,
    )
    from calibrant.metrics.scoring import (
        BrierParts,
        accuracy,
        brier,
        brier_decomposition,
        log_loss,
        mean_confidence,
    )
    from calibrant.metrics.selective import accuracy_at_coverage, aurc, e_aurc
    from calibrant.metrics.semantic import SemEce, VerEce, sem_ece, ver_ece
    from calibrant.metrics.smoothed.smooth import smooth_ece, smooth_ece_bandwidth
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".binned": (
                "ReliabilityBins",
                "ece",
                "over_confidence",
                "reliability_bins",
                "under_confidence",
            ),
            ".calibrators": (
                "BetaCalibrator",
                "Calibrator",
                "HistogramCalibrator",
                "IsotonicCalibrator",
                "PlattCalibrator",
                "TemperatureCalibrator",
            ),
            ".corp": ("Corp", "ReliabilityCurve", "dsc", "mcb", "reliability_curve", "unc"),
            ".debiased": ("ece_debiased",),
            ".discrimination": ("auprc", "auroc"),
            ".estimates": ("DEFAULT", "PROBABILITY_METRICS", "metric_estimates"),
            ".estimators.classifier": ("CalibratedClassifier",),
            ".estimators.display": ("ReliabilityDisplay",),
            ".gaps.gap": ("confidence_gap",),
            ".named.binary": (
                "LogLossParts",
                "adaptive_ece",
                "ks_calibration_error",
                "log_loss_calibration",
                "log_loss_decomposition",
                "log_loss_refinement",
                "mce",
                "rms_calibration_error",
            ),
            ".named.multiclass": ("classwise_ece", "top_label_ece"),
            ".perfect": ("CalibrationTest", "calibration_test", "spiegelhalter_z"),
            ".recalibration": ("CALIBRATORS", "calibrator_from_dict", "cross_fitted"),
            ".resampling": (
                "METRICS",
                "bootstrap_distribution",
                "bootstrap_interval",
                "paired_gap",
            ),
            ".scoring": (
                "BrierParts",
                "accuracy",
                "brier",
                "brier_decomposition",
                "log_loss",
                "mean_confidence",
            ),
            ".selective": ("accuracy_at_coverage", "aurc", "e_aurc"),
            ".semantic": ("SemEce", "VerEce", "sem_ece", "ver_ece"),
            ".smoothed.smooth": ("smooth_ece", "smooth_ece_bandwidth"),
        },
    )

__all__ = [
    "CALIBRATORS",
    "DEFAULT",
    "METRICS",
    "PROBABILITY_METRICS",
    "BetaCalibrator",
    "BrierParts",
    "CalibratedClassifier",
    "CalibrationTest",
    "Calibrator",
    "Corp",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "LogLossParts",
    "PlattCalibrator",
    "ReliabilityBins",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "SemEce",
    "TemperatureCalibrator",
    "VerEce",
    "accuracy",
    "accuracy_at_coverage",
    "adaptive_ece",
    "auprc",
    "aurc",
    "auroc",
    "bootstrap_distribution",
    "bootstrap_interval",
    "brier",
    "brier_decomposition",
    "calibration_test",
    "calibrator_from_dict",
    "classwise_ece",
    "confidence_gap",
    "corp",
    "cross_fitted",
    "dsc",
    "e_aurc",
    "ece",
    "ece_debiased",
    "ks_calibration_error",
    "log_loss",
    "log_loss_calibration",
    "log_loss_decomposition",
    "log_loss_refinement",
    "mcb",
    "mce",
    "mean_confidence",
    "metric_estimates",
    "over_confidence",
    "paired_gap",
    "reliability_bins",
    "reliability_curve",
    "rms_calibration_error",
    "sem_ece",
    "smooth_ece",
    "smooth_ece_bandwidth",
    "spiegelhalter_z",
    "top_label_ece",
    "unc",
    "under_confidence",
    "ver_ece",
]
