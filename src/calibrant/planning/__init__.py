"""What a label budget can and cannot show."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

# Bound here, because its module has the same name.
from calibrant.planning.leaderboard import leaderboard

if TYPE_CHECKING:
    from calibrant.planning.block import verification_block, verification_of
    from calibrant.planning.designs import DEFAULT_DESIGN, DESIGNS, LabelPool, choose_batch
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
    from calibrant.planning.leaderboard import LEADERBOARD_METRICS, rank_intervals, tie_groups
    from calibrant.planning.monitor import (
        CalibrationMonitor,
        GapRegion,
        perfect_region,
        verified_region,
    )
    from calibrant.planning.plan import Goal, plan_document
    from calibrant.planning.pool import PoolEstimate, pool_estimate, stop_decision
    from calibrant.planning.ppi import JudgedEstimate, judged_estimates, judged_mean
    from calibrant.planning.presets import PRESETS, Preset
    from calibrant.planning.refusal import require_labels
    from calibrant.planning.sequential import SequentialAudit
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
            ".block": ("verification_block", "verification_of"),
            ".designs": ("DEFAULT_DESIGN", "DESIGNS", "LabelPool", "choose_batch"),
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
            ".leaderboard": ("LEADERBOARD_METRICS", "rank_intervals", "tie_groups"),
            ".monitor": ("CalibrationMonitor", "GapRegion", "perfect_region", "verified_region"),
            ".plan": ("Goal", "plan_document"),
            ".pool": ("PoolEstimate", "pool_estimate", "stop_decision"),
            ".ppi": ("JudgedEstimate", "judged_estimates", "judged_mean"),
            ".presets": ("PRESETS", "Preset"),
            ".refusal": ("require_labels",),
            ".sequential": ("SequentialAudit",),
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
    "Dynamics",
    "GapRegion",
    "Goal",
    "JudgedEstimate",
    "LabelPool",
    "PoolEstimate",
    "Preset",
    "SequentialAudit",
    "accuracy_floor",
    "active_floor",
    "active_gain",
    "choose_batch",
    "data_rate",
    "deepest_pipeline",
    "detection_labels",
    "detection_limit",
    "group_labels",
    "half_life",
    "judged_estimates",
    "judged_mean",
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
    "rank_intervals",
    "recalibration_rounds",
    "require_labels",
    "stop_decision",
    "tie_groups",
    "transfer_labels",
    "verification_block",
    "verification_dynamics",
    "verification_horizon",
    "verification_of",
    "verified_region",
]
