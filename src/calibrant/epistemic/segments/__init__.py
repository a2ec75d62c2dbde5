"""Groups of rows whose confidence is off beyond the overall error."""

from calibrant.epistemic.segments.confidence_groups import ConfidenceGroups
from calibrant.epistemic.segments.corrector import GroupCorrector
from calibrant.epistemic.segments.group import Difference, Group, gap_difference

__all__ = ["ConfidenceGroups", "Difference", "Group", "GroupCorrector", "gap_difference"]
