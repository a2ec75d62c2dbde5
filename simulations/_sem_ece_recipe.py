"""The plain computation that the estimate and the test were designed from, on the same pools."""

from __future__ import annotations

import importlib
import sys
from functools import cache

import numpy as np
from benchmarks.harness import DATA

FOLDER = DATA.parent / "recipes" / "sem_ece_star"
SEED = 11


@cache
def scripts():
    """Return the scripts' modules (estimate, test), or None where they are not at hand."""
    if not FOLDER.is_dir():
        return None
    sys.path.insert(0, str(FOLDER))
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return importlib.import_module("np2"), importlib.import_module("perm")
    finally:
        sys.path.remove(str(FOLDER))
        sys.dont_write_bytecode = written


def plain_estimate(pool, n):
    """Estimate and interval of the error with unlimited draws: value, low, high."""
    if scripts() is None:
        return np.nan, np.nan, np.nan
    fit, _ = scripts()
    means, resampled = fit.np_fit(
        pool.counts, np.nan_to_num(pool.labels), np.random.default_rng(SEED), B=80, its=(20,), Sg=10
    )[0]
    value, low, high = fit.ray(means, resampled)
    slack = 0.03 * np.sqrt(20 / n)
    return value, max(low - slack, 0.0), high + slack


def plain_test(pool):
    """P-values of Sem1-ECE and Sem2-ECE."""
    if scripts() is None:
        return np.nan, np.nan
    right = np.nan_to_num(pool.labels)
    truth = np.where(right.any(axis=1), right.argmax(axis=1), -1)
    found = scripts()[1].perm_test(pool.counts, truth, np.random.default_rng(SEED), B=199, R=6)
    return found[0][3], found[2][3]
