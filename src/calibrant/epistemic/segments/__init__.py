"""Groups of rows whose confidence is off beyond the overall error."""

from calibrant.epistemic.segments.confidence_groups import ConfidenceGroups
from calibrant.epistemic.segments.corrector import GroupCorrector
from calibrant.epistemic.segments.differences import Difference, gap_difference
from calibrant.epistemic.segments.group import Group

__all__ = ["ConfidenceGroups", "Difference", "Group", "GroupCorrector", "gap_difference"]
