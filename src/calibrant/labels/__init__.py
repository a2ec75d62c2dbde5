"""What a label budget can and cannot show; labelling, and watching over time.

Start with `plan.plan_document`, `labelling.session.LabelSession` (which rows to label next, and
what the labels say) and `watching.watch.CalibrationWatch` (when a promise no longer holds).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.findings.claims.data import require_labels as require_labels
    from calibrant.findings.documents.plans import ClaimPlan as ClaimPlan
    from calibrant.findings.documents.plans import Dynamics as Dynamics
    from calibrant.findings.verification import verification_block as verification_block
    from calibrant.findings.verification import verification_of as verification_of
    from calibrant.labels.claim_plan import meaning_plan as meaning_plan
    from calibrant.labels.formulas import data_rate as data_rate
    from calibrant.labels.formulas import deepest_pipeline as deepest_pipeline
    from calibrant.labels.formulas import group_labels as group_labels
    from calibrant.labels.formulas import grouping_labels as grouping_labels
    from calibrant.labels.formulas import half_life as half_life
    from calibrant.labels.formulas import pipeline_labels as pipeline_labels
    from calibrant.labels.formulas import pipeline_lipschitz as pipeline_lipschitz
    from calibrant.labels.formulas import recalibration_rounds as recalibration_rounds
    from calibrant.labels.formulas import transfer_labels as transfer_labels
    from calibrant.labels.formulas import two_phase as two_phase
    from calibrant.labels.formulas import verification_dynamics as verification_dynamics
    from calibrant.labels.formulas import verification_horizon as verification_horizon
    from calibrant.labels.labelling.designs import DEFAULT_DESIGN as DEFAULT_DESIGN
    from calibrant.labels.labelling.designs import DESIGNS as DESIGNS
    from calibrant.labels.labelling.designs import WaveDraw as WaveDraw
    from calibrant.labels.labelling.designs import choose_batch as choose_batch
    from calibrant.labels.labelling.designs import draw_wave as draw_wave
    from calibrant.labels.labelling.estimates import PoolEstimate as PoolEstimate
    from calibrant.labels.labelling.estimates import pool_estimate as pool_estimate
    from calibrant.labels.labelling.labellers import JudgedEstimate as JudgedEstimate
    from calibrant.labels.labelling.labellers import LabelNoise as LabelNoise
    from calibrant.labels.labelling.labellers import cohen_kappa as cohen_kappa
    from calibrant.labels.labelling.labellers import judged_estimates as judged_estimates
    from calibrant.labels.labelling.labellers import judged_mean as judged_mean
    from calibrant.labels.labelling.labellers import judged_pool as judged_pool
    from calibrant.labels.labelling.labellers import label_noise as label_noise
    from calibrant.labels.labelling.pools import LabelDraws as LabelDraws
    from calibrant.labels.labelling.pools import LabelPool as LabelPool
    from calibrant.labels.labelling.pools import Wave as Wave
    from calibrant.labels.labelling.pools import design_weights as design_weights
    from calibrant.labels.labelling.power import claim_for_labels as claim_for_labels
    from calibrant.labels.labelling.power import claim_power as claim_power
    from calibrant.labels.labelling.power import labels_for_claim as labels_for_claim
    from calibrant.labels.labelling.session import LabelSession as LabelSession
    from calibrant.labels.labelling.stopping import SequentialAudit as SequentialAudit
    from calibrant.labels.labelling.stopping import claim_bounds as claim_bounds
    from calibrant.labels.labelling.stopping import stop_decision as stop_decision
    from calibrant.labels.plan import PRESETS as PRESETS
    from calibrant.labels.plan import Goal as Goal
    from calibrant.labels.plan import Preset as Preset
    from calibrant.labels.plan import plan_document as plan_document
    from calibrant.labels.published import effective_labels as effective_labels
    from calibrant.labels.published import general_floor as general_floor
    from calibrant.labels.published import published_difference as published_difference
    from calibrant.labels.published import published_scores as published_scores
    from calibrant.labels.published import scaling_labels as scaling_labels
    from calibrant.labels.published import self_evaluation as self_evaluation
    from calibrant.labels.published import temperature_error as temperature_error
    from calibrant.labels.ranking import LEADERBOARD_METRICS as LEADERBOARD_METRICS
    from calibrant.labels.ranking import leaderboard as leaderboard
    from calibrant.labels.ranking import rank_intervals as rank_intervals
    from calibrant.labels.ranking import subject_rankings as subject_rankings
    from calibrant.labels.ranking import tie_groups as tie_groups
    from calibrant.labels.theory import published_steepness as published_steepness
    from calibrant.labels.watching.betting import CalibrationMonitor as CalibrationMonitor
    from calibrant.labels.watching.betting import GapRegion as GapRegion
    from calibrant.labels.watching.betting import perfect_region as perfect_region
    from calibrant.labels.watching.betting import verified_region as verified_region
    from calibrant.labels.watching.detector import ChangeDetector as ChangeDetector
    from calibrant.labels.watching.detector import Finding as Finding
    from calibrant.metrics.stats.floors import accuracy_floor as accuracy_floor
    from calibrant.metrics.stats.floors import active_floor as active_floor
    from calibrant.metrics.stats.floors import active_gain as active_gain
    from calibrant.metrics.stats.floors import detection_labels as detection_labels
    from calibrant.metrics.stats.floors import detection_limit as detection_limit
    from calibrant.metrics.stats.floors import labels_needed as labels_needed
    from calibrant.metrics.stats.floors import le_cam_constant as le_cam_constant
    from calibrant.metrics.stats.floors import optimal_bins as optimal_bins
    from calibrant.metrics.stats.floors import passive_floor as passive_floor
    from calibrant.metrics.stats.floors import precision_reached as precision_reached
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
