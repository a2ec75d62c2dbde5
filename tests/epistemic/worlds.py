"""Small worlds with a known truth."""

import numpy as np

GRID = np.linspace(-1, 1, 1001)


def truth(x):
    """The chance of outcome 1: depends on both features."""
    return 1 / (1 + np.exp(-(1.5 * x[:, 0] + 1.5 * np.sin(4 * x[:, 1]) * (1 + x[:, 0]))))


def _seen_by_first_feature():
    other = np.linspace(-1, 1, 401)
    return np.array([truth(np.c_[np.full(401, value), other]).mean() for value in GRID])


SEEN = _seen_by_first_feature()


def draw(n, rng):
    """Features, a calibrated confidence that knows the first feature only, outcomes."""
    x = rng.uniform(-1, 1, size=(n, 2))
    confidence = np.interp(x[:, 0], GRID, SEEN)
    return x, confidence, (rng.random(n) < truth(x)).astype(float)


def true_grouping_loss():
    x, confidence, _ = draw(400_000, np.random.default_rng(12345))
    return float(np.mean((truth(x) - confidence) ** 2))
