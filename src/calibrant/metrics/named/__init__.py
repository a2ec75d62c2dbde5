"""Calibration metrics that papers and leaderboards ask for by name."""
