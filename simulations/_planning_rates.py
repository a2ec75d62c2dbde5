"""Synthetic audits with a known gap: A sin(2 pi k p), scores Beta((1 - eps) / eps, 1)."""

from functools import lru_cache

import numpy as np
from scipy.stats import beta

from calibrant.metrics.stats.floors import optimal_bins

WINDOW = 1.0  # of the exploring windows; half or twice as wide changes little


def gap(p, amplitude, waves):
    return amplitude * np.sin(2 * np.pi * waves * p)


def right(p, amplitude, waves):
    return np.clip(p + gap(p, amplitude, waves), 0.0, 1.0)


@lru_cache(maxsize=64)
def true_ece(eps, amplitude, waves, points=400_001):
    """Integral of the absolute gap over the law of the scores, by quantiles."""
    p = beta.ppf((np.arange(points) + 0.5) / points, (1 - eps) / eps, 1)
    return float(np.abs(right(p, amplitude, waves) - p).mean())


def passive_error(m, eps, amplitude, waves, repetitions, rng, bins=None):
    """Mean error of the plug-in ECE with the optimal number of bins."""
    lipschitz = 2 * np.pi * waves * amplitude
    target = true_ece(eps, amplitude, waves)
    count = bins or optimal_bins(error_rate=eps, labels=m, lipschitz=lipschitz)
    errors = []
    for _ in range(repetitions):
        p = rng.beta((1 - eps) / eps, 1, m)
        y = rng.random(m) < right(p, amplitude, waves)
        cell = np.minimum((p * count).astype(int), count - 1)
        estimate = np.abs(np.bincount(cell, weights=y - p, minlength=count)).sum() / m
        errors.append(abs(estimate - target))
    return float(np.mean(errors))


def active_error(m, eps, amplitude, waves, repetitions, rng):
    """Mean error of the two-phase strategy that may ask for any confidence.

    Half of the labels explore levels of equal mass and find the sign of the gap, on windows as
    wide as its steepness allows. The other half measures the gap with the sign held fixed, so
    that its absolute value costs no bias; a level whose sign is a toss-up adds next to nothing.
    """
    lipschitz = 2 * np.pi * waves * amplitude
    target = true_ece(eps, amplitude, waves)
    levels = min(max(2, int(lipschitz * np.sqrt(m / eps))), m // 2)
    p = beta.ppf((np.arange(levels) + 0.5) / levels, (1 - eps) / eps, 1)
    rate = right(p, amplitude, waves)
    first = m // (2 * levels)
    budget = m - first * levels
    # Window in units of mass: noise sqrt(eps / (w m / 2)) equal to the change L dp over it.
    width = WINDOW * (eps / (lipschitz**2 * m / 2)) ** (1 / 3) / eps ** (2 / 3)
    window = int(np.clip(np.ceil(width * levels), 1, levels))
    kernel = np.ones(window)
    errors = []
    for _ in range(repetitions):
        seen = rng.binomial(first, rate) / first - p
        sign = np.sign(np.convolve(seen, kernel, mode="same"))
        chosen = rng.integers(0, levels, budget)
        outcome = rng.random(budget) < rate[chosen]
        estimate = float((sign[chosen] * (outcome - p[chosen])).mean())
        errors.append(abs(estimate - target))
    return float(np.mean(errors))


def slope(sizes, errors):
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
