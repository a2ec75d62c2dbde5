"""What a label budget can and cannot show."""

from calibrant.planning.block import verification_block
from calibrant.planning.refusal import require_labels
from calibrant.planning.verdict import claim_verdict, verdict_word
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

__all__ = [
    "accuracy_floor",
    "active_floor",
    "active_gain",
    "claim_verdict",
    "detection_labels",
    "detection_limit",
    "labels_needed",
    "le_cam_constant",
    "optimal_bins",
    "passive_floor",
    "precision_reached",
    "require_labels",
    "verdict_word",
    "verification_block",
]
