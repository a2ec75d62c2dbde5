"""Calibration, scoring and discrimination metrics on arrays."""

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
from calibrant.metrics.corp import (
    Corp,
    ReliabilityCurve,
    corp,
    dsc,
    mcb,
    reliability_curve,
    unc,
)
from calibrant.metrics.debiased import ece_debiased
from calibrant.metrics.discrimination import auprc, auroc
from calibrant.metrics.estimates import DEFAULT, PROBABILITY_METRICS, metric_estimates
from calibrant.metrics.gap import confidence_gap
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
from calibrant.metrics.smooth import smooth_ece, smooth_ece_bandwidth

__all__ = [
    "CALIBRATORS",
    "DEFAULT",
    "METRICS",
    "PROBABILITY_METRICS",
    "BetaCalibrator",
    "BrierParts",
    "CalibrationTest",
    "Calibrator",
    "Corp",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "ReliabilityBins",
    "ReliabilityCurve",
    "SemEce",
    "TemperatureCalibrator",
    "VerEce",
    "accuracy",
    "accuracy_at_coverage",
    "auprc",
    "aurc",
    "auroc",
    "bootstrap_distribution",
    "bootstrap_interval",
    "brier",
    "brier_decomposition",
    "calibration_test",
    "calibrator_from_dict",
    "confidence_gap",
    "corp",
    "cross_fitted",
    "dsc",
    "e_aurc",
    "ece",
    "ece_debiased",
    "log_loss",
    "mcb",
    "mean_confidence",
    "metric_estimates",
    "over_confidence",
    "paired_gap",
    "reliability_bins",
    "reliability_curve",
    "sem_ece",
    "smooth_ece",
    "smooth_ece_bandwidth",
    "spiegelhalter_z",
    "unc",
    "under_confidence",
    "ver_ece",
]
