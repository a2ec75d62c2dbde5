"""Where confidence is wrong, what it costs, when to ask someone else, when to answer alone."""

from typing import TYPE_CHECKING

from calibrant.core.imports import lazy_exports

if TYPE_CHECKING:
    from calibrant.epistemic.deferral.answers import Answers as Answers
    from calibrant.epistemic.deferral.answers import gather_answers as gather_answers
    from calibrant.epistemic.deferral.cascade import Cascade as Cascade
    from calibrant.epistemic.deferral.cascade import Choice as Choice
    from calibrant.epistemic.deferral.cascade import choose as choose
    from calibrant.epistemic.deferral.router import Router as Router
    from calibrant.epistemic.guard import GuardCheck as GuardCheck
    from calibrant.epistemic.loss.decision import CostMatrix as CostMatrix
    from calibrant.epistemic.loss.decision import DecisionRisk as DecisionRisk
    from calibrant.epistemic.loss.decision import calibration_risk as calibration_risk
    from calibrant.epistemic.loss.decision import expected_cost as expected_cost
    from calibrant.epistemic.loss.decision import grouping_risk as grouping_risk
    from calibrant.epistemic.loss.decision import pointwise_risk as pointwise_risk
    from calibrant.epistemic.loss.grouping import GroupingLoss as GroupingLoss
    from calibrant.epistemic.loss.tree_loss import BinnedGroupingLoss as BinnedGroupingLoss
    from calibrant.epistemic.loss.tree_loss import BrierDecomposition as BrierDecomposition
    from calibrant.epistemic.loss.tree_loss import TreeGroupingLoss as TreeGroupingLoss
    from calibrant.epistemic.policies import load_policy as load_policy
    from calibrant.epistemic.policy import Policy as Policy
    from calibrant.epistemic.saved import Step as Step
    from calibrant.epistemic.segments.confidence_groups import ConfidenceGroups as ConfidenceGroups
    from calibrant.epistemic.segments.confidence_groups import GroupCorrector as GroupCorrector
    from calibrant.epistemic.segments.group import Group as Group
    from calibrant.epistemic.segments.group import gap_difference as gap_difference
    from calibrant.epistemic.selective.certify import AskingCosts as AskingCosts
    from calibrant.epistemic.selective.fit import Selective as Selective
    from calibrant.epistemic.selective.policy import SelectivePolicy as SelectivePolicy
    from calibrant.epistemic.trees.honest import HonestTree as HonestTree
    from calibrant.epistemic.trees.honest import partition_loss as partition_loss
    from calibrant.epistemic.trees.residuals import BoostedResiduals as BoostedResiduals
    from calibrant.epistemic.trees.residuals import HonestForest as HonestForest
else:
    # Loaded when asked for: a command that groups rows needs no cascade.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
