"""What checks say about a grader and its grades, and the summary of both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import chdtrc, expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.stats.graded_estimates import (
    STRATA,
    CheckedGrades,
    Graded,
    GradedEstimate,
    cell_gaps,
    graded_accuracy,
    graded_auroc,
    graded_difference,
    graded_error,
    graded_gap,
    soft_area,
)
from calibrant.metrics.stats.intervals import normal_quantile
from calibrant.metrics.stats.units import systematic_sample

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
    >>> from calibrant.metrics.stats.graded_estimates import Graded
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


FACTOR = 3.0
_CLIP = 0.02


def unchecked_accuracy(graded: Graded) -> tuple[float, float]:
    """Return the least and the most accuracy if the grader's odds are off by up to `FACTOR`.

    Examples
    --------
    >>> graded = Graded(np.full(400, 0.8), np.ones(400), np.full(400, 0.9), np.zeros(400))
    >>> [round(end, 2) for end in unchecked_accuracy(graded)]
    [0.71, 0.98]
    """
    down, up = _odds_ends(graded)
    low, high = float(down.mean()) - _noise(down, 0.0), float(up.mean()) + _noise(up, 0.0)
    return max(low, 0.0), min(high, 1.0)


def unchecked_gap(graded: Graded) -> tuple[float, float]:
    """Return the least and the most gap of confidence and accuracy."""
    down, up = _odds_ends(graded)
    low, high = float((graded.confidence - up).mean()), float((graded.confidence - down).mean())
    return low - _noise(up, graded.confidence), high + _noise(down, graded.confidence)


def unchecked_difference(first: Graded, second: Graded) -> tuple[float, float]:
    """Return the least and the most accuracy of the first minus that of the second."""
    spread = float((first.grade - second.grade).std())
    noise = normal_quantile(0.95) * spread / math.sqrt(first.size)
    (down, up), (other_down, other_up) = _odds_ends(first), _odds_ends(second)
    return float((down - other_up).mean()) - noise, float((up - other_down).mean()) + noise


def unchecked_error(graded: Graded, cell: Indices) -> tuple[float, float]:
    """Return the least and the most calibration error over cells, each up to its own noise."""
    down, up = _odds_ends(graded)
    size = np.bincount(cell).astype(np.float64)
    right = np.clip(np.bincount(cell, graded.chance) / size, _CLIP, 1.0 - _CLIP)
    noise = normal_quantile(0.95) * np.sqrt(right * (1.0 - right) / size)
    low = np.bincount(cell, graded.confidence - up) / size - noise
    high = np.bincount(cell, graded.confidence - down) / size + noise
    inside = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    outside = np.maximum(np.abs(low), np.abs(high))
    share = size / graded.size
    return float(share @ inside), min(float(share @ outside), 1.0)


def unchecked_auroc(graded: Graded) -> tuple[float, float]:
    """Return the AUROC if confident answers were graded too kindly, and if too harshly.

    Only a verdict on 0.5 may rest on these ends: as bounds of the AUROC itself they often fail.
    """
    down, up = _odds_ends(graded)
    confident = graded.confidence > np.median(graded.confidence)
    low, _, spread = soft_area(graded.confidence, np.where(confident, down, up))
    high, _, peer = soft_area(graded.confidence, np.where(confident, up, down))
    reach = normal_quantile(0.95) / math.sqrt(graded.size)
    return max(low - reach * float(spread.std()), 0.0), min(high + reach * float(peer.std()), 1.0)


def _odds_ends(graded: Graded) -> tuple[Floats, Floats]:
    odds = logit(np.clip(graded.chance, _CLIP, 1.0 - _CLIP))
    step = math.log(FACTOR)
    return np.asarray(expit(odds - step)), np.asarray(expit(odds + step))


def _noise(chance: Floats, confidence: Floats | float) -> float:
    """Return the reach of a sample's mean of confidence minus outcome."""
    variance = float(np.var(confidence - chance) + (chance * (1.0 - chance)).mean())
    return normal_quantile(0.95) * math.sqrt(variance / chance.size)


_LEAST_ERROR, _LEAST_CHECKS = 0.05, 3.0
# Share of the checks that goes by expected error; the rest is spread in proportion.
_BY_ERROR = 0.7


def foreseen_width(graded: Graded, checks: int) -> float:
    """Return how wide the interval of the accuracy will be after so many checks.

    Examples
    --------
    >>> chance = np.repeat([0.98, 0.7, 0.03], [500, 300, 200])
    >>> graded = Graded.of_chances(np.full(1000, 0.8), np.round(chance), chance)
    >>> [round(foreseen_width(graded, checks), 2) for checks in (60, 200)]
    [0.15, 0.09]
    """
    used, error = graded.counts > 0, _expected_errors(graded)
    number = _checks_of_strata(graded, checks)
    share = graded.counts / graded.size
    variance = float((share**2 * error * (1.0 - error) / (number + 1.0))[used].sum())
    noise = float(np.var(graded.chance)) / graded.size
    return 2.0 * normal_quantile(0.95) * math.sqrt(variance + noise)


def choose_checks(graded: Graded, checks: int, rng: np.random.Generator) -> Indices:
    """Return the answers to check: more of those that are likely graded wrong, some of all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = np.repeat([0.99, 0.7, 0.02], [50, 30, 20])
    >>> graded = Graded(rng.random(100), chance > 0.5, chance, np.abs(chance - 0.5) < 0.4)
    >>> picked = choose_checks(graded, 20, rng)
    >>> len(picked), int((graded.strata[picked] == 3).sum())
    (20, 8)
    """
    number = _checks_of_strata(graded, checks)
    order = np.lexsort((rng.random(graded.size), graded.confidence, graded.strata))
    share = number / np.maximum(graded.counts, 1.0)
    return systematic_sample(share[graded.strata], order, rng)


def _expected_errors(graded: Graded) -> Floats:
    unlikely = np.minimum(graded.chance, 1.0 - graded.chance)
    error = np.bincount(graded.strata, unlikely, STRATA)
    return np.maximum(error / np.maximum(graded.counts, 1.0), _LEAST_ERROR)


def _checks_of_strata(graded: Graded, checks: int) -> Floats:
    """Return how many of each stratum to check, some of each."""
    error, counts = _expected_errors(graded), graded.counts
    size = counts * np.sqrt(error * (1.0 - error))
    share = _BY_ERROR * size / size.sum() + (1.0 - _BY_ERROR) * counts / counts.sum()
    floor = np.minimum(_LEAST_CHECKS, counts)
    number = np.clip(checks * share, floor, counts)
    for _ in range(20):
        free = (number > floor + 1e-9) & (number < counts - 1e-9)
        missing = checks - number.sum()
        if abs(missing) < 1e-6 or not free.any():
            break
        moved = number[free] + missing * share[free] / share[free].sum()
        number[free] = np.clip(moved, floor[free], counts[free])
    return np.asarray(number, dtype=np.float64)


_CHECKS_PER_CELL, _FEWEST, _MOST = 12, 3, 10


def cells_for(checks: int) -> int:
    """Return how many cells of equal size so many checks can carry.

    Examples
    --------
    >>> cells_for(30), cells_for(60), cells_for(500)
    (3, 5, 10)
    """
    return int(np.clip(checks // _CHECKS_PER_CELL, _FEWEST, _MOST))
