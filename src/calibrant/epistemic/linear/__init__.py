"""Small linear models whose coefficients are stored as plain numbers."""

from calibrant.epistemic.linear.columns import Columns
from calibrant.epistemic.linear.ridge import ridge_linear, ridge_logistic

__all__ = ["Columns", "ridge_linear", "ridge_logistic"]
