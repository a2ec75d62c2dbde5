"""Intervals of the calibration errors."""
