"""What a confidence cannot tell: grouping loss and decision risk."""

from calibrant.epistemic.loss.binned import BinnedGroupingLoss
from calibrant.epistemic.loss.decision import DecisionRisk
from calibrant.epistemic.loss.grouping import GroupingLoss
from calibrant.epistemic.loss.tree_loss import BrierDecomposition, TreeGroupingLoss

__all__ = [
    "BinnedGroupingLoss",
    "BrierDecomposition",
    "DecisionRisk",
    "GroupingLoss",
    "TreeGroupingLoss",
]
