"""Where one model may answer alone: thresholds with a promise, or the cheapest ones."""
