"""Arrays become numbers with intervals.

Start with `registry.METRICS` (one declaration per metric), `blocks.block.MetricBlock` (values,
outcomes and units, as rows or as cells) and `stats` (pure statistics; no other metrics there).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

# Bound here, because its module has the same name.
from calibrant.metrics.corp import corp as corp

if TYPE_CHECKING:
    from calibrant.metrics.binned import ReliabilityBins as ReliabilityBins
    from calibrant.metrics.binned import ece as ece
    from calibrant.metrics.binned import ece_debiased as ece_debiased
    from calibrant.metrics.binned import over_confidence as over_confidence
    from calibrant.metrics.binned import reliability_bins as reliability_bins
    from calibrant.metrics.binned import under_confidence as under_confidence
    from calibrant.metrics.blocks.cell_error import error as error
    from calibrant.metrics.corp import Corp as Corp
    from calibrant.metrics.corp import ReliabilityCurve as ReliabilityCurve
    from calibrant.metrics.corp import dsc as dsc
    from calibrant.metrics.corp import mcb as mcb
    from calibrant.metrics.corp import reliability_curve as reliability_curve
    from calibrant.metrics.corp import unc as unc
    from calibrant.metrics.estimates import (
        bootstrap_distribution as bootstrap_distribution,
    )
    from calibrant.metrics.estimates import bootstrap_interval as bootstrap_interval
    from calibrant.metrics.estimates import confidence_gap as confidence_gap
    from calibrant.metrics.estimates import metric_estimates as metric_estimates
    from calibrant.metrics.estimates import paired_gap as paired_gap
    from calibrant.metrics.perfect import CalibrationTest as CalibrationTest
    from calibrant.metrics.perfect import calibration_test as calibration_test
    from calibrant.metrics.perfect import spiegelhalter_z as spiegelhalter_z
    from calibrant.metrics.recalibration.base import Calibrator as Calibrator
    from calibrant.metrics.recalibration.calibrators import CALIBRATORS as CALIBRATORS
    from calibrant.metrics.recalibration.calibrators import BetaCalibrator as BetaCalibrator
    from calibrant.metrics.recalibration.calibrators import (
        HistogramCalibrator as HistogramCalibrator,
    )
    from calibrant.metrics.recalibration.calibrators import IsotonicCalibrator as IsotonicCalibrator
    from calibrant.metrics.recalibration.calibrators import MendCalibrator as MendCalibrator
    from calibrant.metrics.recalibration.calibrators import PlattCalibrator as PlattCalibrator
    from calibrant.metrics.recalibration.calibrators import (
        TemperatureCalibrator as TemperatureCalibrator,
    )
    from calibrant.metrics.recalibration.calibrators import (
        calibrator_from_dict as calibrator_from_dict,
    )
    from calibrant.metrics.recalibration.calibrators import cross_fitted as cross_fitted
    from calibrant.metrics.registry import METRICS as METRICS
    from calibrant.metrics.registry import LogLossParts as LogLossParts
    from calibrant.metrics.registry import adaptive_ece as adaptive_ece
    from calibrant.metrics.registry import audited as audited
    from calibrant.metrics.registry import classwise_ece as classwise_ece
    from calibrant.metrics.registry import ks_calibration_error as ks_calibration_error
    from calibrant.metrics.registry import log_loss_calibration as log_loss_calibration
    from calibrant.metrics.registry import log_loss_decomposition as log_loss_decomposition
    from calibrant.metrics.registry import log_loss_refinement as log_loss_refinement
    from calibrant.metrics.registry import mce as mce
    from calibrant.metrics.registry import rms_calibration_error as rms_calibration_error
    from calibrant.metrics.registry import top_label_ece as top_label_ece
    from calibrant.metrics.scorers import CalibratedClassifier as CalibratedClassifier
    from calibrant.metrics.scorers import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.metrics.scoring import BrierParts as BrierParts
    from calibrant.metrics.scoring import accuracy as accuracy
    from calibrant.metrics.scoring import auprc as auprc
    from calibrant.metrics.scoring import auroc as auroc
    from calibrant.metrics.scoring import brier as brier
    from calibrant.metrics.scoring import brier_decomposition as brier_decomposition
    from calibrant.metrics.scoring import log_loss as log_loss
    from calibrant.metrics.scoring import mean_confidence as mean_confidence
    from calibrant.metrics.selective import accuracy_at_coverage as accuracy_at_coverage
    from calibrant.metrics.selective import aurc as aurc
    from calibrant.metrics.selective import e_aurc as e_aurc
    from calibrant.metrics.semantic import SemEce as SemEce
    from calibrant.metrics.semantic import VerEce as VerEce
    from calibrant.metrics.semantic import sem_ece as sem_ece
    from calibrant.metrics.semantic import ver_ece as ver_ece
    from calibrant.metrics.smooth import smooth_ece as smooth_ece
    from calibrant.metrics.smooth import smooth_ece_bandwidth as smooth_ece_bandwidth
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
