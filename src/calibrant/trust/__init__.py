"""Where confidence is wrong, what it costs, when to ask someone else, when to answer alone.

Start with `selective.fit.Selective` (a threshold that keeps a limit),
`confidence_groups.ConfidenceGroups` (groups beyond the confidence) and
`policies.load_policy` (what a program asks).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.trust.confidence_groups import ConfidenceGroups as ConfidenceGroups
    from calibrant.trust.confidence_groups import GroupCorrector as GroupCorrector
    from calibrant.trust.confidence_groups import gap_difference as gap_difference
    from calibrant.trust.decision_risk import CostMatrix as CostMatrix
    from calibrant.trust.decision_risk import DecisionRisk as DecisionRisk
    from calibrant.trust.decision_risk import calibration_risk as calibration_risk
    from calibrant.trust.decision_risk import expected_cost as expected_cost
    from calibrant.trust.decision_risk import grouping_risk as grouping_risk
    from calibrant.trust.decision_risk import pointwise_risk as pointwise_risk
    from calibrant.trust.deferral.answers import Answers as Answers
    from calibrant.trust.deferral.answers import gather_answers as gather_answers
    from calibrant.trust.deferral.cascade import Cascade as Cascade
    from calibrant.trust.deferral.cascade import Choice as Choice
    from calibrant.trust.deferral.cascade import choose as choose
    from calibrant.trust.deferral.router import Router as Router
    from calibrant.trust.group_search import Group as Group
    from calibrant.trust.grouping_loss import GroupingLoss as GroupingLoss
    from calibrant.trust.honest_trees import HonestTree as HonestTree
    from calibrant.trust.honest_trees import partition_loss as partition_loss
    from calibrant.trust.policies import load_policy as load_policy
    from calibrant.trust.policy import Policy as Policy
    from calibrant.trust.policy import SelectivePolicy as SelectivePolicy
    from calibrant.trust.policy import Step as Step
    from calibrant.trust.residual_models import BoostedResiduals as BoostedResiduals
    from calibrant.trust.residual_models import HonestForest as HonestForest
    from calibrant.trust.selective.certify import AskingCosts as AskingCosts
    from calibrant.trust.selective.fit import Selective as Selective
    from calibrant.trust.traffic_shift import GuardCheck as GuardCheck
    from calibrant.trust.tree_loss import BinnedGroupingLoss as BinnedGroupingLoss
    from calibrant.trust.tree_loss import BrierDecomposition as BrierDecomposition
    from calibrant.trust.tree_loss import TreeGroupingLoss as TreeGroupingLoss
else:
    # Loaded when asked for: a command that groups rows needs no cascade.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
