"""Calibrant inside what keeps running: browser app, serving front, Inspect, pytest."""
