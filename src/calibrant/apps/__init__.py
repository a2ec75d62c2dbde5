"""Calibrant inside what keeps running: browser, serving front, Inspect, pytest.

Start with `browser.server.AppServer`, `serving.engine.ServingEngine` (a policy, its models, and
what was served) and `trusted.trusted` (the same without a server).
"""
