"""Calibration in the manners of scikit-learn: base class, classifier and display."""
