"""What a confidence cannot tell: grouping loss and decision risk."""

from calibrant.epistemic.loss.grouping import GroupingLoss

__all__ = ["GroupingLoss"]
