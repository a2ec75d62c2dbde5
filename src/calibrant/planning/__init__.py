"""What a label budget can and cannot show."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

# Bound here, because its module has the same name.
from calibrant.planning.leaderboard import leaderboard

if TYPE_CHECKING:
    from calibrant.planning.block import (
        verification_block,
        verification_of,
        verifications_of,
    )
    from calibrant.planning.formulas import (
        Dynamics,
        data_rate,
        deepest_pipeline,
        group_labels,
        half_life,
        pipeline_labels,
        pipeline_lipschitz,
        recalibration_rounds,
        transfer_labels,
        verification_dynamics,
        verification_horizon,
    )
    from calibrant.planning.labelling.agreement import (
        LabelNoise,
        cohen_kappa,
        label_noise,
    )
    from calibrant.planning.labelling.designs import (
        DEFAULT_DESIGN,
        DESIGNS,
        WaveDraw,
        choose_batch,
        draw_wave,
    )
    from calibrant.planning.labelling.estimates import (
        PoolEstimate,
        pool_estimate,
    )
    from calibrant.planning.labelling.judged import (
        judged_pool,
    )
    from calibrant.planning.labelling.pools import (
        Draws,
        LabelPool,
        Wave,
        design_weights,
    )
    from calibrant.planning.labelling.power import (
        ClaimPlan,
        claim_for_labels,
        claim_power,
        labels_for_claim,
    )
    from calibrant.planning.labelling.ppi import (
        JudgedEstimate,
        judged_estimates,
        judged_mean,
    )
    from calibrant.planning.labelling.sequential import (
        SequentialAudit,
    )
    from calibrant.planning.labelling.session import (
        LabelSession,
        attach_labels,
    )
    from calibrant.planning.labelling.stopping import (
        claim_bounds,
        stop_decision,
    )
    from calibrant.planning.leaderboard import (
        LEADERBOARD_METRICS,
        rank_intervals,
        tie_groups,
    )
    from calibrant.planning.plan import (
        Goal,
        plan_document,
    )
    from calibrant.planning.presets import (
        PRESETS,
        Preset,
    )
    from calibrant.planning.published import (
        effective_labels,
        general_floor,
        published_difference,
        scaling_labels,
        self_evaluation,
        temperature_error,
    )
    from calibrant.planning.refusal import (
        require_labels,
    )
    from calibrant.planning.subjects import (
        subject_rankings,
    )
    from calibrant.planning.watching.betting import (
        CalibrationMonitor,
        GapRegion,
        perfect_region,
        verified_region,
    )
    from calibrant.planning.watching.detector import (
        ChangeDetector,
        Finding,
    )
    from calibrant.stats.floors import (
        accuracy_floor,
        active_floor,
        active_gain,
        detection_labels,
        detection_limit,
        labels_needed,
        le_cam_constant,
        optimal_bins,
        passive_floor,
        precision_reached,
    )
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".block": ("verification_block", "verification_of", "verifications_of"),
            ".formulas": (
                "Dynamics",
                "data_rate",
                "deepest_pipeline",
                "group_labels",
                "half_life",
                "pipeline_labels",
                "pipeline_lipschitz",
                "recalibration_rounds",
                "transfer_labels",
                "verification_dynamics",
                "verification_horizon",
            ),
            ".labelling.agreement": (
                "LabelNoise",
                "cohen_kappa",
                "label_noise",
            ),
            ".labelling.designs": (
                "DEFAULT_DESIGN",
                "DESIGNS",
                "WaveDraw",
                "choose_batch",
                "draw_wave",
            ),
            ".labelling.estimates": (
                "PoolEstimate",
                "pool_estimate",
            ),
            ".labelling.judged": ("judged_pool",),
            ".labelling.pools": (
                "Draws",
                "LabelPool",
                "Wave",
                "design_weights",
            ),
            ".labelling.power": (
                "ClaimPlan",
                "claim_for_labels",
                "claim_power",
                "labels_for_claim",
            ),
            ".labelling.ppi": (
                "JudgedEstimate",
                "judged_estimates",
                "judged_mean",
            ),
            ".labelling.sequential": ("SequentialAudit",),
            ".labelling.session": (
                "LabelSession",
                "attach_labels",
            ),
            ".labelling.stopping": (
                "claim_bounds",
                "stop_decision",
            ),
            ".leaderboard": (
                "LEADERBOARD_METRICS",
                "rank_intervals",
                "tie_groups",
            ),
            ".plan": (
                "Goal",
                "plan_document",
            ),
            ".presets": (
                "PRESETS",
                "Preset",
            ),
            ".published": (
                "effective_labels",
                "general_floor",
                "published_difference",
                "scaling_labels",
                "self_evaluation",
                "temperature_error",
            ),
            ".refusal": ("require_labels",),
            ".subjects": ("subject_rankings",),
            ".watching.betting": (
                "CalibrationMonitor",
                "GapRegion",
                "perfect_region",
                "verified_region",
            ),
            ".watching.detector": (
                "ChangeDetector",
                "Finding",
            ),
            "calibrant.stats.floors": (
                "accuracy_floor",
                "active_floor",
                "active_gain",
                "detection_labels",
                "detection_limit",
                "labels_needed",
                "le_cam_constant",
                "optimal_bins",
                "passive_floor",
                "precision_reached",
            ),
        },
    )

__all__ = [
    "DEFAULT_DESIGN",
    "DESIGNS",
    "LEADERBOARD_METRICS",
    "PRESETS",
    "CalibrationMonitor",
    "ChangeDetector",
    "ClaimPlan",
    "Draws",
    "Dynamics",
    "Finding",
    "GapRegion",
    "Goal",
    "JudgedEstimate",
    "LabelNoise",
    "LabelPool",
    "LabelSession",
    "PoolEstimate",
    "Preset",
    "SequentialAudit",
    "Wave",
    "WaveDraw",
    "accuracy_floor",
    "active_floor",
    "active_gain",
    "attach_labels",
    "choose_batch",
    "claim_bounds",
    "claim_for_labels",
    "claim_power",
    "cohen_kappa",
    "data_rate",
    "deepest_pipeline",
    "design_weights",
    "detection_labels",
    "detection_limit",
    "draw_wave",
    "effective_labels",
    "general_floor",
    "group_labels",
    "half_life",
    "judged_estimates",
    "judged_mean",
    "judged_pool",
    "label_noise",
    "labels_for_claim",
    "labels_needed",
    "le_cam_constant",
    "leaderboard",
    "optimal_bins",
    "passive_floor",
    "perfect_region",
    "pipeline_labels",
    "pipeline_lipschitz",
    "plan_document",
    "pool_estimate",
    "precision_reached",
    "published_difference",
    "rank_intervals",
    "recalibration_rounds",
    "require_labels",
    "scaling_labels",
    "self_evaluation",
    "stop_decision",
    "subject_rankings",
    "temperature_error",
    "tie_groups",
    "transfer_labels",
    "verification_block",
    "verification_dynamics",
    "verification_horizon",
    "verification_of",
    "verifications_of",
    "verified_region",
]
