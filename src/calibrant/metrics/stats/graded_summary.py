"""What checks say about a grader and its grades, and the summary of both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import chdtrc

from calibrant.core.arrays import Indices
from calibrant.metrics.stats.graded_checks import CheckedGrades, Graded, foreseen_width
from calibrant.metrics.stats.graded_estimates import (
    FACTOR,
    GradedEstimate,
    cell_gaps,
    cells_for,
    graded_accuracy,
    graded_auroc,
    graded_difference,
    graded_error,
    graded_gap,
    unchecked_accuracy,
    unchecked_auroc,
    unchecked_difference,
    unchecked_error,
    unchecked_gap,
)

_DRAWS = 1000
# Strata whose grade says right, as in `Graded.strata`.
_ACCEPTED = np.array([False, False, True, True])


def grader_report(checked: CheckedGrades, rng: np.random.Generator) -> dict[str, object]:
    """Return how often grades are wrong in all answers, and how far they agree with people.

    Every check counts for as many answers as it stands for.

    Returns
    -------
    report
        ``wrong`` (grades found wrong), ``error`` (share of all grades, with its interval),
        ``accepted_wrong`` and ``rejected_right`` (shares of accepted and rejected answers) and
        ``kappa``.

    Examples
    --------
    >>> from calibrant.metrics.stats.graded_checks import Graded
    >>> graded = Graded.of_chances(np.full(100, 0.7), np.repeat([1.0, 0.0], 50), np.full(100, 0.5))
    >>> rows = np.arange(0, 100, 2)
    >>> found = grader_report(CheckedGrades(graded, rows, rows < 45), np.random.default_rng(0))
    >>> found["wrong"], round(found["error"]["value"], 2), round(found["kappa"], 2)
    (2, 0.04, 0.92)
    """
    size = checked.graded.counts
    used = (size > 0) & (checked.checks > 0)
    rate = np.where(used, checked.errors / np.maximum(checked.checks, 1.0), 0.0)
    draws = checked.drawn_rates(_DRAWS, rng)[:, used] @ size[used] / size[used].sum()
    low, high = np.quantile(draws, [0.025, 0.975])
    wrong = size * rate
    mask = [float((size - wrong)[used & side].sum()) for side in (_ACCEPTED, ~_ACCEPTED)]
    missing = [float(wrong[used & side].sum()) for side in (_ACCEPTED, ~_ACCEPTED)]
    value = float(wrong[used].sum() / size[used].sum()) if used.any() else float("nan")
    return {
        "wrong": int(checked.wrong.sum()),
        "error": {"value": value, "low": min(float(low), value), "high": max(float(high), value)},
        "accepted_wrong": _share(missing[0], mask[0]),
        "rejected_right": _share(missing[1], mask[1]),
        "kappa": _kappa(mask, missing),
    }


def _share(part: float, remainder: float) -> float | None:
    return part / (part + remainder) if part + remainder else None


def _kappa(selection: list[float], missing: list[float]) -> float | None:
    """Return Cohen's kappa of grades and people, by weighted counts."""
    whole = sum(selection) + sum(missing)
    if not whole:
        return None
    accepted, right = (selection[0] + missing[0]) / whole, (selection[0] + missing[1]) / whole
    chance = accepted * right + (1 - accepted) * (1 - right)
    return None if chance == 1.0 else (sum(selection) / whole - chance) / (1 - chance)


# With fewer checks there is no interval, only what follows if the grader's odds are off.
FEWEST_CHECKS = 30
# What is foretold where nothing was checked; cells of the error there.
FORETOLD_CHECKS, _CELLS = 60, 10


def grading_summary(
    checked: CheckedGrades,
    rng: np.random.Generator,
    *,
    probability: bool = True,
    level: float = 0.95,
) -> dict[str, Any]:
    """Return accuracy, gap, error and AUROC with grading error, and what more checks would do.

    Parameters
    ----------
    checked
        Grades of one model and method, and the checks; there may be none.
    rng, level
        Randomness and level of the intervals.
    probability
        Whether the confidence is one: only then are there gap and error.

    Returns
    -------
    summary
        ``answers``, ``doubtful`` (share), ``checked``; ``accuracy``, ``gap``, ``error`` and
        ``auroc``, each ``value``, ``low`` and ``high``. With fewer than 30 checks there is no
        value, and the ends hold if the grader's odds are off by up to ``odds_factor``.
        ``foretold`` says how wide the interval of the accuracy is after so many ``checks``.

    Examples
    --------
    >>> graded = Graded.of_chances(np.full(400, 0.8), np.ones(400), np.full(400, 0.9))
    >>> found = grading_summary(CheckedGrades(graded, np.zeros(0, dtype=int), []), rng=None)
    >>> found["doubtful"], found["checked"], round(found["accuracy"]["low"], 2)
    (1.0, 0, 0.71)
    """
    graded, checks = checked.graded, len(checked.rows)
    entry = {"answers": graded.size, "doubtful": graded.doubtful_share, "checked": checks}
    if checks < FEWEST_CHECKS:
        return entry | _unchecked(graded, probability)
    accuracy = graded_accuracy(checked, rng, level)
    halved = accuracy.checks_to_halve
    labels_needed = math.ceil(halved) if halved <= graded.size else None
    foretold = None
    if labels_needed is not None:
        foretold = {"checks": labels_needed - checks, "width": accuracy.width_at(labels_needed)}
    area, gap, error = graded_auroc(checked, level), None, None
    if probability:
        cell = equal_cells(graded, cells_for(checks))
        gap = _estimate(graded_gap(checked, rng, level))
        # 'No cell has a gap', from the gaps and their standard errors.
        deviation, variance, share, _ = cell_gaps(checked, cell)
        p_calibrated = float(chdtrc(share.size, float((deviation**2 / variance).sum())))
        error = _estimate(graded_error(checked, cell, level))
        error |= {"cells": share.size, "p_calibrated": p_calibrated}
    return entry | {
        "odds_factor": None,
        "accuracy": _estimate(accuracy),
        "gap": gap,
        "error": error,
        "auroc": _estimate(area),
        "foretold": foretold,
    }


def difference_summary(
    first: CheckedGrades, second: CheckedGrades, rng: np.random.Generator
) -> dict[str, object]:
    """Return how far grading error leaves open the first model minus the second.

    Parameters
    ----------
    first, second
        Grades and checks of two models on the same questions, in the same order.
    rng
        Randomness of the interval.

    Returns
    -------
    summary
        ``doubtful``, ``checked`` and ``odds_factor`` as of one model; ``low`` and ``high`` of the
        difference of ``accuracy`` and of calibration ``error``.
    """
    checks = [len(each.rows) for each in (first, second)]
    graded = (first.graded, second.graded)
    doubtful = float(np.mean([each.doubtful_share for each in graded]))
    entry = {"doubtful": doubtful, "checked": sum(checks)}
    if min(checks) < FEWEST_CHECKS:
        (low, high), (other_low, other_high) = (
            unchecked_error(each, equal_cells(each, _CELLS)) for each in graded
        )
        return entry | {
            "odds_factor": FACTOR,
            "accuracy": _ends(unchecked_difference(*graded)),
            "error": _ends((low - other_high, high - other_low)),
        }
    a, b = (
        graded_error(each, equal_cells(each.graded, cells_for(len(each.rows))))
        for each in (first, second)
    )
    # The errors of both are told independently: distances to the ends add as squares.
    down = math.hypot(a.value - a.low, b.high - b.value)
    up = math.hypot(a.high - a.value, b.value - b.low)
    return entry | {
        "odds_factor": None,
        "accuracy": _estimate(graded_difference(first, second, rng)),
        "error": {"value": (step := a.value - b.value), "low": step - down, "high": step + up},
    }


def equal_cells(graded: Graded, cells: int) -> Indices:
    """Return cells of about equal size along the confidence; equal confidences share one."""
    edges = np.unique(np.quantile(graded.confidence, np.arange(1, cells) / cells))
    place = np.searchsorted(edges, graded.confidence)
    return np.asarray(np.unique(place, return_inverse=True)[1], dtype=np.intp)


def _unchecked(graded: Graded, probability: bool) -> dict[str, object]:
    checks = min(FORETOLD_CHECKS, graded.size)
    cell = equal_cells(graded, _CELLS)
    return {
        "odds_factor": FACTOR,
        "accuracy": _ends(unchecked_accuracy(graded)),
        "gap": _ends(unchecked_gap(graded)) if probability else None,
        "error": _ends(unchecked_error(graded, cell)) if probability else None,
        "auroc": _ends(unchecked_auroc(graded)),
        "foretold": {"checks": checks, "width": foreseen_width(graded, checks)},
    }


def _estimate(estimate: GradedEstimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _ends(ends: tuple[float, float]) -> dict[str, float | None]:
    return {"value": None, "low": ends[0], "high": ends[1]}
