"""Where confidence is wrong, what it costs, when to ask someone else, when to answer alone."""

from calibrant.epistemic.deferral.answers import Answers, gather_answers
from calibrant.epistemic.deferral.cascade import Cascade, Choice, Step, choose
from calibrant.epistemic.deferral.router import Router
from calibrant.epistemic.guard import GuardCheck
from calibrant.epistemic.loss import (
    BinnedGroupingLoss,
    BrierDecomposition,
    DecisionRisk,
    GroupingLoss,
    TreeGroupingLoss,
)
from calibrant.epistemic.loss.decision import (
    CostMatrix,
    calibration_risk,
    expected_cost,
    grouping_risk,
    pointwise_risk,
)
from calibrant.epistemic.policies import load_policy
from calibrant.epistemic.policy import Policy
from calibrant.epistemic.segments import ConfidenceGroups, Group, GroupCorrector, gap_difference
from calibrant.epistemic.selective import AskingCosts, Selective, SelectivePolicy
from calibrant.epistemic.trees.honest import HonestTree
from calibrant.epistemic.trees.partition import partition_loss
from calibrant.epistemic.trees.residuals import BoostedResiduals, HonestForest

__all__ = [
    "Answers",
    "AskingCosts",
    "BinnedGroupingLoss",
    "BoostedResiduals",
    "BrierDecomposition",
    "Cascade",
    "Choice",
    "ConfidenceGroups",
    "CostMatrix",
    "DecisionRisk",
    "Group",
    "GroupCorrector",
    "GroupingLoss",
    "GuardCheck",
    "HonestForest",
    "HonestTree",
    "Policy",
    "Router",
    "Selective",
    "SelectivePolicy",
    "Step",
    "TreeGroupingLoss",
    "calibration_risk",
    "choose",
    "expected_cost",
    "gap_difference",
    "gather_answers",
    "grouping_risk",
    "load_policy",
    "partition_loss",
    "pointwise_risk",
]
