"""Where confidence is wrong, what it costs and when to defer."""

from calibrant.epistemic.answers import Answers, gather_answers
from calibrant.epistemic.binned import BinnedGroupingLoss
from calibrant.epistemic.cascade import Cascade, Choice, Step, choose
from calibrant.epistemic.decision import (
    CostMatrix,
    calibration_risk,
    expected_cost,
    grouping_risk,
    pointwise_risk,
)
from calibrant.epistemic.decision_risk import DecisionRisk
from calibrant.epistemic.grouping_loss import BrierDecomposition, GroupingLoss
from calibrant.epistemic.groups import ConfidenceGroups, Group
from calibrant.epistemic.honest import HonestTree
from calibrant.epistemic.partition import partition_loss
from calibrant.epistemic.policies import load_policy
from calibrant.epistemic.residuals import BoostedResiduals, HonestForest
from calibrant.epistemic.router import Router

__all__ = [
    "Answers",
    "BinnedGroupingLoss",
    "BoostedResiduals",
    "BrierDecomposition",
    "Cascade",
    "Choice",
    "ConfidenceGroups",
    "CostMatrix",
    "DecisionRisk",
    "Group",
    "GroupingLoss",
    "HonestForest",
    "HonestTree",
    "Router",
    "Step",
    "calibration_risk",
    "choose",
    "expected_cost",
    "gather_answers",
    "grouping_risk",
    "load_policy",
    "partition_loss",
    "pointwise_risk",
]
