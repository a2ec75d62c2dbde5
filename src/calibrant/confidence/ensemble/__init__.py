"""Several methods made into one, tuned on graded questions and saved as JSON."""

from calibrant.confidence.ensemble.stack import Ensemble, cross_fit, load_ensemble

__all__ = ["Ensemble", "cross_fit", "load_ensemble"]
