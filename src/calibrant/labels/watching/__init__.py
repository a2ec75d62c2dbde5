"""Watching calibration over time: a detector of change, its channels, its state."""
