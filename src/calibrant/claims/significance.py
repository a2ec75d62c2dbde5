"""Which confidences are shown to be miscalibrated, when many are looked at together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scipy import special

from calibrant.claims.claim import ALPHA
from calibrant.claims.margins import error_within, gap_within
from calibrant.core.estimate import Estimate
from calibrant.metrics import CalibrationTest
from calibrant.stats.few.draws import Stream
from calibrant.stats.multiplicity import holm

if TYPE_CHECKING:
    from calibrant.metrics.cell_block import CellBlock
    from calibrant.metrics.row_block import RowBlock

CONTROL = "holm"
_NOTHING_TESTED = {"expected_ece": None, "high_ece": None, "p_value": None, "simulations": 0}
_TESTS = ("calibration", "gap")
_BESIDE = ("within_margin", "separation")
SEPARATION_MARGIN = 0.05


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


def adjust_p_values(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give every test of every entry its adjusted p-value, in place, and say what was done.

    The confidences of whole models are one family and those of groups another, so that looking
    into groups does not blur what is known of the whole. In each family the chance of any false
    claim is at most 5 %.

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
    >>> adjust_p_values(entries)["whole"]
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
    _adjust(tests)
    for entry, own in zip(entries, found, strict=True):
        more = {name: entry["significance"].get(name) for name in _BESIDE}
        entry["significance"] = {name: own.get(name) for name in _TESTS} | {"tests": len(tests)}
        entry["significance"] |= {name: test for name, test in more.items() if test is not None}
    # Being within a margin and separating answers are questions of their own: families of theirs.
    margins = [entry["significance"].get("within_margin") or {} for entry in entries]
    _adjust([test for margin in margins for test in margin.values() if test is not None])
    _adjust([t for entry in entries if (t := entry["significance"].get("separation"))])
    return {"confidences": sum(bool(own) for own in found), "tests": len(tests)}


def _adjust(tests: Sequence[dict[str, Any]]) -> None:
    for test, p_adjusted in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["p_adjusted"] = float(p_adjusted)


def block_tests(
    block: RowBlock | CellBlock, metrics: Mapping[str, Any], rng: Stream, margin: float
) -> dict[str, Any]:
    """Return the tests of perfect calibration, of the mean gap and of being within a margin."""
    gap = metrics["confidence_gap"]
    if block.independent:
        test, mean = (block.calibration_test(bins, rng) for bins in (block.bins, 1))
        found = tests_of_rows(test, mean, gap)
    else:
        shown = {"calibration": None, "gap": {"p_value": gap_p_value(gap)}}
        found = {"calibration_test": dict(_NOTHING_TESTED), "significance": shown}
    within = gap_within(gap, margin)
    gaps = block.gaps
    error = error_within(gaps.residual, gaps.error(), margin, block.lean, gaps.shares_variance)
    found["significance"] |= {
        "within_margin": {
            "gap": None if within is None else {"p_value": within},
            "error": error if block.independent else None,
        },
        "separation": separation_test(metrics["auroc"]),
    }
    return found


def separation_test(auroc: Estimate, margin: float = SEPARATION_MARGIN) -> dict[str, Any] | None:
    """Return the p-values of 'the AUROC is not 0.5' and of 'it is within a margin of 0.5'.

    Both follow from the interval of the AUROC, taken as normal on the logit scale.

    Examples
    --------
    >>> found = separation_test(Estimate(0.7, 0.65, 0.745, n=500))
    >>> found["p_value"] < 1e-9, found["p_within"] > 0.99
    (True, True)
    """
    ends = (auroc.value, auroc.low, auroc.high)
    if not all(map(math.isfinite, ends)) or not 0 < auroc.low < auroc.high < 1:
        return None
    quantile = float(special.ndtri((1 + auroc.level) / 2))
    at, low, high = (float(special.logit(min(max(end, 1e-9), 1 - 1e-9))) for end in ends)
    error = max((high - low) / (2 * quantile), 1e-12)
    reach = float(special.logit(0.5 + margin))
    within = max(special.ndtr(-(reach - at) / error), special.ndtr(-(reach + at) / error))
    return {"p_value": 2 * float(special.ndtr(-abs(at) / error)), "p_within": float(within)}
