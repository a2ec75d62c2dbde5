"""Where one model may answer alone: thresholds with a promise, or the cheapest ones."""

from calibrant.epistemic.selective.certify import Certified, certify
from calibrant.epistemic.selective.costs import AskingCosts
from calibrant.epistemic.selective.fit import Selective
from calibrant.epistemic.selective.policy import SelectivePolicy

__all__ = ["AskingCosts", "Certified", "Selective", "SelectivePolicy", "certify"]
