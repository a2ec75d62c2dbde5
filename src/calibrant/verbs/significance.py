"""Which confidences are shown to be miscalibrated, when many are looked at together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import special

from calibrant.core.estimate import Estimate
from calibrant.metrics import CalibrationTest
from calibrant.planning.block import miscalibration_verdict
from calibrant.stats.multiplicity import holm

__all__ = ["ALPHA", "CONTROL", "correct_for_number", "gap_p_value", "own_tests", "tests_of_rows"]

ALPHA = 0.05
CONTROL = "holm"
_TESTS = ("calibration", "gap")


def gap_p_value(gap: Estimate, exact: CalibrationTest | None = None) -> float | None:
    """Return the p-value of 'confidence equals accuracy on average', or None without a spread.

    The larger of two: Student's, from the spread between units, and, where given, that of the
    mean gap under perfect calibration (`calibration_test` with one bin). The first alone is 0
    where a rare outcome is absent by chance; the second alone takes the spread from the very
    confidences that are in doubt.

    Examples
    --------
    >>> round(gap_p_value(Estimate(0.1, 0.0, 0.2, n=1_000)), 3)
    0.05
    """
    # The end towards 0 decides: where it reaches 0, p is what the interval leaves out.
    reach = gap.value - gap.low if gap.value > 0 else gap.high - gap.value
    if not math.isfinite(reach) or reach <= 0:
        return None if exact is None else exact.p_value
    degrees = max(gap.n - 1, 1)
    error = reach / float(special.stdtrit(degrees, (1 + gap.level) / 2))
    student = 2 * float(special.stdtr(degrees, -abs(gap.value) / error))
    return student if exact is None else max(student, exact.p_value)


def tests_of_rows(test: CalibrationTest, mean: CalibrationTest, gap: Estimate) -> dict[str, Any]:
    """Return what a block says about perfect calibration and the mean gap of independent rows.

    Parameters
    ----------
    test, mean
        `calibration_test` with the bins of the audit, and with one bin.
    gap
        Mean confidence minus accuracy.
    """
    return {
        "calibration_test": {
            "expected_ece": test.expected,
            "high_ece": test.high,
            "p_value": test.p_value,
            "simulations": test.simulations,
        },
        "significance": {
            "calibration": {"p_value": test.p_value, "p_low": test.p_low, "p_high": test.p_high},
            "gap": {"p_value": gap_p_value(gap, mean)},
        },
    }


def own_tests(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tests of one entry by name, each with its `p_value`; those undefined are absent.

    An entry has them under ``significance``; one that does not is read from its calibration test
    and its mean gap.
    """
    found: Mapping[str, Any] = entry.get("significance") or {
        "calibration": {"p_value": entry.get("calibration_test", {}).get("p_value")},
        "gap": {"p_value": gap_p_value(entry["metrics"]["confidence_gap"])},
    }
    return {
        name: dict(found[name])
        for name in _TESTS
        if found.get(name) is not None and found[name]["p_value"] is not None
    }


def correct_for_number(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give every test of every entry its adjusted p-value, in place, and say what was done.

    The confidences of whole models are one family and those of groups another, so that looking
    into groups does not blur what is known of the whole. In each family the chance of any false
    claim is at most 5 %. What a verification block says follows the corrected tests.

    Returns
    -------
    dict
        ``control``, ``alpha``, and per family the number of ``confidences`` and ``tests``.

    Examples
    --------
    >>> entries = [
    ...     {"probability": True, "group": None,
    ...      "significance": {"calibration": {"p_value": p}, "gap": None}}
    ...     for p in (0.01, 0.04)
    ... ]
    >>> correct_for_number(entries)["whole"]
    {'confidences': 2, 'tests': 2}
    >>> [entry["significance"]["calibration"]["p_adjusted"] for entry in entries]
    [0.02, 0.04]
    """
    tested = [entry for entry in entries if entry["probability"]]
    whole = [entry for entry in tested if not entry.get("group")]
    groups = [entry for entry in tested if entry.get("group")]
    return {
        "control": CONTROL,
        "alpha": ALPHA,
        "whole": _family(whole),
        "groups": _family(groups),
    }


def _family(entries: Sequence[dict[str, Any]]) -> dict[str, int]:
    found = [own_tests(entry) for entry in entries]
    tests = [test for own in found for test in own.values()]
    for test, p_adjusted in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["p_adjusted"] = float(p_adjusted)
    for entry, own in zip(entries, found, strict=True):
        entry["significance"] = {name: own.get(name) for name in _TESTS} | {"tests": len(tests)}
        if "verification" in entry:
            # The block judged this confidence alone; both verdicts must say the same.
            shown = any(test["p_adjusted"] <= ALPHA for test in own.values())
            verdict = miscalibration_verdict(entry["verification"], shown=shown, tests=len(tests))
            entry["verification"] = {**entry["verification"], **verdict}
    return {"confidences": sum(bool(own) for own in found), "tests": len(tests)}
