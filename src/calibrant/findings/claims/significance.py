"""The tests behind the claims of an audit, and the levels that they share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from scipy.special import logit, ndtr, ndtri, stdtr, stdtrit

from calibrant.core.arrays import Estimate, Floats
from calibrant.findings.claims import ALPHA
from calibrant.findings.claims.margins import gap_within
from calibrant.metrics.stats.clusters import FEWEST
from calibrant.metrics.stats.multiplicity import holm
from calibrant.metrics.stats.perfect_law import rank_p_value

if TYPE_CHECKING:
    from calibrant.findings.documents.audits import (
        ClassicTest,
        ErrorTest,
        MissingEntry,
        Significance,
        Test,
    )
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.row_block import RowBlock

_NOTHING_TESTED: ClassicTest = {
    "expected_ece": None, "high_ece": None, "p_value": None, "simulations": 0,
}  # fmt: skip
SEPARATION_MARGIN = 0.05


def gap_p_value(gap: Estimate, other: float) -> float:
    """Return the p-value of 'confidence equals accuracy on average': the larger of two.

    Student's, from the spread between units, is 0 where a rare outcome is absent by chance. The
    other takes its spread from the very confidences that are in doubt.

    Examples
    --------
    >>> round(gap_p_value(Estimate(0.1, 0.0, 0.2, n=1_000), 0.01), 3)
    0.05
    """
    # The end towards 0 decides: where it reaches 0, p is what the interval leaves out.
    reach = gap.value - gap.low if gap.value > 0 else gap.high - gap.value
    if not math.isfinite(reach) or reach <= 0:
        return other
    degrees = max(gap.n - 1, 1)
    error = reach / float(stdtrit(degrees, (1 + gap.level) / 2))
    student = 2 * float(stdtr(degrees, -abs(gap.value) / error))
    return student if math.isnan(other) else max(student, other)


def block_tests(
    block: RowBlock | CellBlock,
    metrics: Mapping[str, Estimate],
    margin: float,
    missing: MissingEntry | None = None,
) -> Significance:
    """Return the tests of one block, each with its own p-value.

    Parameters
    ----------
    block
        Rows or sums.
    metrics
        Its estimates; those of the mean gap and of the AUROC are used.
    margin
        Errors and mean gaps below it do not matter.
    missing
        What is known about answers without a confidence, see `calibrant.findings.claims.margins`.
    """
    cells, gap, auroc = block.cell_error, metrics["confidence_gap"], metrics["auroc"]
    few = cells.clusters is not None and cells.clusters.count < FEWEST
    agrees = None if few else gap_within(gap, margin)
    within, alike = cells.within(margin), block.independent and block.shares is None
    p_gap = math.nan
    if not few:
        one_sided = block.one_class and alike
        p_gap = cells.p_one_sided if one_sided else gap_p_value(gap, cells.p_gap)
    # Elsewhere that of the interval stands.
    ranks = rank_p_value(cells.sums.rows, cells.sums.right, auroc.value) if alike else 0.0
    return {
        "calibration": None if few else _test(cells.p_calibrated),
        "gap": _with_missing(p_gap, missing),
        "within_margin": {
            "gap": None if agrees is None else {"p_value": agrees},
            "error": {
                "p_value": within.p_value,
                "upper": cells.interval(0.95)[1],
                "at_best": cells.at_best(),
                "reachable": within.reachable,
                "accuracy_agrees": within.agrees and not few,
                "smooth": within.smooth,
                "values": cells.table.count - cells.table.slices,
                "slices": cells.table.slices,
            },
        },
        "separation": separation_test(auroc, ranks),
    }


def stricter_tests(one: Significance, other: Significance) -> Significance:
    """Return tests that stand under both of two groupings: of each the larger p-value."""
    gaps = [tests["within_margin"]["gap"] for tests in (one, other)]
    first, second = one["within_margin"]["error"], other["within_margin"]["error"]
    return {
        "calibration": _larger(one["calibration"], other["calibration"]),
        "gap": _larger(one["gap"], other["gap"]),
        "within_margin": {
            "gap": _larger(*gaps),
            "error": {
                **first,
                "p_value": max(first["p_value"], second["p_value"]),
                "upper": max(first["upper"] or 0.0, second["upper"] or 0.0),
                "at_best": max(first["at_best"] or 0.0, second["at_best"] or 0.0),
                "reachable": max(first["reachable"] or 0.0, second["reachable"] or 0.0),
                "accuracy_agrees": first["accuracy_agrees"] and second["accuracy_agrees"],
                "smooth": first["smooth"] and second["smooth"],
            },
        },
        "separation": _larger(one["separation"], other["separation"]),
    }


def _larger(item: Test | None, peer: Test | None) -> Test | None:
    """Return the larger of each p-value; None where one grouping cannot be tested."""
    if item is None or peer is None:
        return None
    return cast("Test", {name: max(p, peer.get(name, p)) for name, p in item.items()})  # type: ignore[call-overload]


def without_within(tests: Significance) -> Significance:
    """Return tests that leave 'calibrated' and 'agrees on average' unsaid."""
    within = tests["within_margin"]
    error: ErrorTest = {**within["error"], "accuracy_agrees": False}
    return {**tests, "within_margin": {"gap": None, "error": error}}


def of_these_alone(tests: Significance) -> Significance:
    """Return tests that say nothing of other groups than these: there are too few of them."""
    return {**without_within(tests), "calibration": None, "gap": None}


def classic_test(block: RowBlock | CellBlock) -> ClassicTest:
    """Return what a calibrated model would show in bins of equal width: a number, no claim."""
    if not block.independent:
        return _NOTHING_TESTED
    test = block.calibration_test
    return {
        "expected_ece": test.expected,
        "high_ece": test.high,
        "p_value": test.p_value,
        "simulations": test.simulations,
    }


def _test(p_value: float) -> Test | None:
    return None if math.isnan(p_value) else {"p_value": p_value}


def _with_missing(p_value: float, missing: MissingEntry | None) -> Test | None:
    """Return the test of the mean gap of all answers, those without a confidence too.

    It holds whatever they would have said, or else on the rows with a confidence and on all rows,
    reweighted by outcome.
    """
    if missing is None or math.isnan(p_value):
        return _test(p_value)
    likely = missing["reweighted"]
    pair = 1.0
    if likely and (likely["value"] or 0.0) * (missing["with_confidence"]["value"] or 0.0) > 0:
        pair = max(p_value, likely["p_value"])
    return {"p_value": min(pair, missing["worst_case"]["p_value"]), "p_rows": p_value}


def separation_test(auroc: Estimate, rank_p: float = 0.0) -> Test | None:
    """Return the p-values of 'the AUROC is not 0.5' and of 'it is within a margin of 0.5'.

    The first is the larger of that of ranks and that of the interval of the AUROC, taken as
    normal on the logit scale; the second follows from the interval.

    Examples
    --------
    >>> found = separation_test(Estimate(0.7, 0.65, 0.745, n=500))
    >>> found["p_value"] < 1e-9, found["p_within"] > 0.99
    (True, True)
    """
    ends = (auroc.value, auroc.low, auroc.high)
    if not all(map(math.isfinite, ends)) or not 0 < auroc.low < auroc.high < 1:
        return None
    quantile = float(ndtri((1 + auroc.level) / 2))
    place, low, high = (float(logit(min(max(end, 1e-9), 1 - 1e-9))) for end in ends)
    error = max((high - low) / (2 * quantile), 1e-12)
    reach = float(logit(0.5 + SEPARATION_MARGIN))
    within = max(ndtr(-(reach - place) / error), ndtr(-(reach + place) / error))
    p_interval = 2 * float(ndtr(-abs(place) / error))
    return {"p_value": max(p_interval, rank_p), "p_within": float(within)}


CONTROL = "holm"
# The chance of any false sentence among 'error shown', 'over-confident' and 'separates'.
DOCUMENT_LEVEL = 0.045
# 'Calibrated within the margin' and 'agrees on average' have a level of their own; where the first
# could have been said and was not, so much is taken off that of the direction.
WITHIN_LEVEL, RESERVED = 0.025, 0.015
HARDLY_SEPARATES_LEVEL = 0.03
# Calibration has the larger part of the level, separation the rest until calibration is shown.
_CALIBRATION, _SEPARATION = 0.7, 0.3
# Where groups are looked at, whole models keep so much of the level.
_WHOLE = 2 / 3
_MARGIN_TESTS: tuple[Literal["gap", "error"], ...] = ("gap", "error")
_Tested: TypeAlias = Literal["calibration", "gap", "separation"]
_NAMES: tuple[_Tested, ...] = ("calibration", "gap", "separation")


def adjust_p_values(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give every test of every entry its adjusted p-value, in place, and say what was done.

    Whole models keep two thirds of the level where groups are looked at too.

    Returns
    -------
    dict
        ``control``, ``alpha``, and per family the number of ``confidences`` and ``tests``.

    Examples
    --------
    >>> tests = {"calibration": {"p_value": 0.01}, "gap": {"p_value": 0.02}, "separation": None,
    ...          "within_margin": {"gap": None, "error": None}}
    >>> entry = {"probability": True, "group": None, "significance": tests}
    >>> adjust_p_values([entry])["whole"]
    {'confidences': 1, 'tests': 2}
    >>> round(tests["calibration"]["p_adjusted"], 4), round(tests["gap"]["p_adjusted"], 4)
    (0.0111, 0.0222)
    """
    tested = [entry for entry in entries if entry["probability"]]
    whole, groups = (
        [entry["significance"] for entry in tested if bool(entry.get("group")) == grouped]
        for grouped in (False, True)
    )
    share = _WHOLE if whole and groups else 1.0
    return {
        "control": CONTROL,
        "alpha": ALPHA,
        "whole": _adjust_family(whole, share),
        "groups": _adjust_family(groups, 1 - share if whole else 1.0),
    }


def _adjust_family(family: Sequence[Significance], share: float) -> dict[str, int]:
    """Adjust the tests of one family, which has this share of every level."""
    for name in _MARGIN_TESTS:
        tested = [test for tests in family if (test := tests["within_margin"][name])]
        for test, p in zip(tested, holm([test["p_value"] for test in tested]), strict=True):
            test["p_adjusted"] = _scaled(float(p), share * WITHIN_LEVEL)
    for tests in family:
        _judge_within(tests["within_margin"]["error"], share * WITHIN_LEVEL / len(family))
    separations = [tests["separation"] for tests in family if tests["separation"]]
    for test, p in zip(separations, holm([t["p_within"] for t in separations]), strict=True):
        test["p_within"] = _scaled(float(p), share * HARDLY_SEPARATES_LEVEL)
    level = share * DOCUMENT_LEVEL
    # A model all of whose tests are shown frees its level. A direction needs the error shown too:
    # if the confidences are calibrated, both are false.
    labels_needed = np.array([_needed_levels(tests) for tests in family]).reshape(-1, len(_NAMES))
    for tests, levels in zip(family, _among_models(labels_needed), strict=True):
        for part, need in zip(_NAMES, levels, strict=True):
            if (tested_part := tests[part]) is not None:
                tested_part["p_adjusted"] = _scaled(float(need), level)
    number = sum(tests[name] is not None for tests in family for name in _NAMES)
    for tests in family:
        tests["tests"] = number
    return {"confidences": sum(t["gap"] is not None for t in family), "tests": number}


def _scaled(p: float, level: float) -> float:
    """Return a p-value that is at most 5 % where `p` is at most the level."""
    return min(p * ALPHA / level, 1.0)


def _judge_within(test: ErrorTest | None, level: float) -> None:
    """Say whether the rows could show it, and whether all four conditions hold."""
    if test is None:
        return
    test["tested"] = test["reachable"] is not None and test["reachable"] <= level
    low = test["p_adjusted"] <= ALPHA
    test["holds"] = test["tested"] and low and test["accuracy_agrees"] and test["smooth"]


def _needed_levels(tests: Significance) -> tuple[float, ...]:
    """Return the least level of this model at which each of its three tests is shown."""
    error, gap, ranks = (
        math.nan if (test := tests[name]) is None else test["p_value"] for name in _NAMES
    )
    deviation, separates = weighted_holm(error, ranks)
    direction, still = weighted_holm(gap, ranks)
    within = tests["within_margin"]["error"]
    selection = within is not None and within["tested"] and not within["holds"]
    factor = DOCUMENT_LEVEL / (DOCUMENT_LEVEL - RESERVED) if selection else 1.0
    if math.isnan(error):
        return error, factor * direction, separates
    return deviation, max(deviation, factor * direction), max(separates, factor * still)


def weighted_holm(first: float, second: float) -> tuple[float, float]:
    """Return adjusted p-values of two tests with 70 and 30 % of the level; NaN is no test.

    Examples
    --------
    >>> weighted_holm(0.007, 0.5)
    (0.01, 0.5)
    >>> weighted_holm(0.02, float("nan"))
    (0.02, nan)
    """
    if math.isnan(first) or math.isnan(second):
        return first, second
    parts = (first / _CALIBRATION, second / _SEPARATION)
    if parts[0] <= parts[1]:
        return parts[0], max(parts[0], second)
    return max(parts[1], first), parts[1]


def _among_models(needed: Floats) -> Floats:
    """Return the level of the whole document at which each test of each model is shown.

    Every model that has anything open gets an equal part of the level. The model that needs least
    to have everything shown comes first, and leaves its part to the others.
    """
    models = needed.shape[0]
    if models < 2:
        return needed
    whole = np.nan_to_num(needed, nan=0.0).max(axis=1)
    order = np.argsort(whole, kind="stable")
    remaining = models - np.arange(models)
    freed = np.append(0.0, np.maximum.accumulate(whole[order] * remaining)[:-1])
    # Shown as soon as so many models before it were done with: what they freed rises with their
    # number and what is needed falls, so that the least of both lies where they meet.
    ordered, last = needed[order], np.arange(models)[:, None]
    meet = np.searchsorted(freed / remaining, ordered)
    steps = [np.clip(meet + key, 0, last) for key in (-1, 0, 1)]
    levels = np.empty_like(needed)
    levels[order] = np.min(
        [np.maximum(freed[place], ordered * remaining[place]) for place in steps], axis=0
    )
    return levels
