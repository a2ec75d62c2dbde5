"""Calibration, scoring and discrimination metrics on arrays."""

from calibrant.metrics.binned import (
    ReliabilityBins,
    ece,
    ece_debiased,
    over_confidence,
    reliability_bins,
    under_confidence,
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
from calibrant.metrics.discrimination import auprc, auroc
from calibrant.metrics.perfect import CalibrationTest, calibration_test, spiegelhalter_z
from calibrant.metrics.scoring import (
    BrierParts,
    accuracy,
    brier,
    brier_decomposition,
    log_loss,
    mean_confidence,
)
from calibrant.metrics.selective import accuracy_at_coverage, aurc, e_aurc
from calibrant.metrics.smooth import smooth_ece, smooth_ece_bandwidth

__all__ = [
    "BrierParts",
    "CalibrationTest",
    "Corp",
    "ReliabilityBins",
    "ReliabilityCurve",
    "accuracy",
    "accuracy_at_coverage",
    "auprc",
    "aurc",
    "auroc",
    "brier",
    "brier_decomposition",
    "calibration_test",
    "corp",
    "dsc",
    "e_aurc",
    "ece",
    "ece_debiased",
    "log_loss",
    "mcb",
    "mean_confidence",
    "over_confidence",
    "reliability_bins",
    "reliability_curve",
    "smooth_ece",
    "smooth_ece_bandwidth",
    "spiegelhalter_z",
    "unc",
    "under_confidence",
]
