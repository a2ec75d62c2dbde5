"""Worlds with a known truth for losses, groups and decisions."""

from __future__ import annotations

import numpy as np
import polars as pl

EFFECT = np.array([-0.12, -0.04, 0.04, 0.12])
SAID = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0])
RIGHT = np.array([0.45, 0.3, 0.4, 0.38, 0.6, 0.55, 0.8, 0.7])
OFTEN = [0.03, 0.05, 0.07, 0.15, 0.15, 0.25, 0.2, 0.1]


def _sigmoid(z):
    return 1 / (1 + np.exp(-z))


def _wave(f):
    return np.clip(0.5 + 0.35 * np.sin(6 * f), 0.02, 0.98)


def loss_world(kind, n, rng):
    """Return features, confidence, outcome and the true grouping loss."""
    group, z, other = rng.integers(0, 4, n), rng.normal(size=n), rng.normal(size=n)
    exact = 0.0
    if kind == "coin":
        f = rng.beta(2, 2, n)
        p, x = np.clip(f - 0.1, 0.01, 0.99), {"coin": rng.integers(0, 2, n)}
    elif kind == "copy of the confidence, wavy truth":
        f = rng.beta(2, 2, n)
        p, x = _wave(f), {"copy": f.copy()}
    elif kind == "copy with noise, wavy truth":
        f = rng.beta(2, 2, n)
        p, x = _wave(f), {"copy": f + 0.1 * other, "group": group}
    elif kind == "200 noise categories":
        f = rng.beta(2, 2, n)
        p, x = np.clip(f - 0.1, 0.01, 0.99), {"noise": rng.integers(0, 200, n).astype(str)}
    elif kind == "verbal values, jumpy truth":
        at = rng.choice(8, n, p=OFTEN)
        f, p = SAID[at], RIGHT[at]
        x = {"copy": f + 0.03 * other, "group": group}
    elif kind == "four groups":
        f = 0.15 + 0.7 * _sigmoid(z)
        p, x, exact = f + EFFECT[group], {"group": group, "z": z}, float(np.mean(EFFECT**2))
    elif kind == "four groups, cubed confidence":
        q = 0.15 + 0.7 * _sigmoid(z)
        p, f, x = q + EFFECT[group], q**3, {"group": group, "x": other}
        exact = float(np.mean(EFFECT**2))
    elif kind == "four groups, verbal values":
        at = rng.choice(8, n, p=OFTEN)
        f, p = SAID[at], RIGHT[at] + EFFECT[group]
        x, exact = {"group": group, "copy": f + 0.03 * other}, float(np.mean(EFFECT**2))
    else:  # small effects
        f = 0.15 + 0.7 * _sigmoid(z)
        p = f + np.array([-0.05, 0, 0, 0.05])[group]
        x, exact = {"group": group, "x": other}, 0.00125
    return x, f, (rng.random(n) < p).astype(float), exact


NULLS = (
    "coin",
    "copy of the confidence, wavy truth",
    "200 noise categories",
    "copy with noise, wavy truth",
    "verbal values, jumpy truth",
)
LOSSES = (
    "four groups",
    "four groups, cubed confidence",
    "four groups, verbal values",
    "small effects",
)


def people(n, rng, overall, plant, *, wavy=False):
    """Return features, confidence, outcome and who is in the planted group."""
    table = pl.DataFrame(
        {
            "dept": rng.choice([f"d{i}" for i in range(8)], n),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
        }
    )
    f = np.clip(rng.beta(5, 2, n), 0.02, 0.98)
    inside = ((table["dept"] == "d3") & (table["age"] <= 40)).to_numpy()
    base = 0.25 + 0.5 * np.sin(3 * f) ** 2 if wavy else f - overall
    p = np.clip(base - plant * inside, 0.01, 0.99)
    return table, f, (rng.random(n) < p).astype(float), inside


def decision_world(kind, n, rng):
    """Return features, confidence, true chance and outcome."""
    z, group, other = rng.normal(size=n), rng.integers(0, 4, n), rng.normal(size=n)
    q = 0.15 + 0.7 * _sigmoid(z)
    x = {"group": group, "z": z}
    if kind == "groups":
        f, p = q, q + EFFECT[group]
    elif kind == "nothing to save":
        f, p, x = q, q, {"group": group, "x": other}
    elif kind == "what matters is not given":
        f, p = q, q + 0.12 * np.sign(other)
    else:  # rare outcomes
        f = _sigmoid(z - 2.5)
        p = np.clip(f * np.array([0.3, 0.8, 1.2, 1.7])[group], 0, 0.99)
    return x, f, p, (rng.random(n) < p).astype(float)
