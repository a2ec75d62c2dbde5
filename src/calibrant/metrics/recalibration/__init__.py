"""Recalibration on arrays: curves from scores to probabilities, fitted and cross-fitted."""
