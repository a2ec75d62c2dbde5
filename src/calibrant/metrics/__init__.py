"""Calibration, scoring and discrimination metrics on arrays."""
