"""Smooth calibration error, its interval and its bootstrap."""
