"""The plain sentences of an audit, derived from its numbers and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.document import plain
from calibrant.report.blocks import estimate_cell, p_value_text
from calibrant.verbs.significance import ALPHA, correct_for_number

__all__ = ["audit_verdict"]

# Tests of one confidence: perfect calibration, and the mean gap.
_OWN_TESTS = 2


def audit_verdict(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return three sentences: how calibrated, how sure we are, what to do next.

    ``calibration`` is a word for programs: over-confident, under-confident, miscalibrated,
    no-evidence, not-a-probability. It rests on p-values that are corrected for the number of
    tests in the audit, or, before the other entries are known, for the entry's own.
    """
    if not entry["probability"]:
        return {
            "calibration": "not-a-probability",
            "how": "This score ranks answers but is not a probability, so it cannot be calibrated.",
            "sure": "Ranking metrics are given with their intervals.",
            "next": "Use --recalibrate platt (cross-fitted) to turn it into a probability first.",
        }
    if "tests" not in entry.get("significance", {}):
        entry = dict(entry)
        correct_for_number([entry])
    entry = plain(entry)
    word = _word(entry)
    return {
        "calibration": word,
        "how": _how(word, entry),
        "sure": _sure(entry),
        "next": _next(word, entry),
    }


def _word(entry: Mapping[str, Any]) -> str:
    if _shown(entry["significance"]["gap"]):
        above = entry["metrics"]["confidence_gap"]["value"] > 0
        return "over-confident" if above else "under-confident"
    return "miscalibrated" if _shown(entry["significance"]["calibration"]) else "no-evidence"


def _shown(test: Mapping[str, Any] | None, key: str = "p_adjusted") -> bool:
    return test is not None and bool(test[key] <= ALPHA)


def _how(word: str, entry: Mapping[str, Any]) -> str:
    """Answer in one sentence, with interval and number of questions."""
    metrics = entry["metrics"]
    gap = metrics["confidence_gap"]
    size = (
        f"the binned calibration error is {estimate_cell(metrics['ece'])} "
        f"on {entry['questions']:,} questions"
    )
    if word in ("over-confident", "under-confident"):
        off = _turned(gap) if gap["value"] < 0 else gap
        return (
            f"On average {word} by {estimate_cell(off)}: it says "
            f"{metrics['mean_confidence']['value']:.3f} and is right in "
            f"{metrics['accuracy']['value']:.3f}; {size}."
        )
    if word == "miscalibrated":
        return f"Miscalibrated without a clear direction: {size}."
    tests = entry["significance"]
    if any(_shown(tests[name], "p_value") for name in ("calibration", "gap")):
        return (
            f"Not shown to be miscalibrated: {size}; one test alone speaks against it, but among "
            f"{tests['tests']:,} tests chance does as much."
        )
    return f"No evidence of miscalibration: {size}, as a calibrated model could show."


def _turned(gap: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gap as a positive size."""
    low, high = gap["low"], gap["high"]
    turned = {"low": high and -high, "high": low and -low}
    return {**gap, "value": -gap["value"], **turned}


def _sure(entry: Mapping[str, Any]) -> str:
    test = entry["calibration_test"]
    if test["expected_ece"] is None:
        reason = (
            "Repeated rows of a question"
            if entry["questions"] < entry["n"]
            else "Grades between 0 and 1"
        )
        return f"{reason} allow no test of perfect calibration; the mean gap is tested."
    return (
        f"A perfectly calibrated model would show {test['expected_ece']:.3f} here "
        f"({_p_text(entry['significance'])})."
    )


def _p_text(tests: Mapping[str, Any]) -> str:
    test = tests["calibration"]
    text = p_value_text(test["p_value"])
    if tests["tests"] <= _OWN_TESTS:
        return text
    corrected = p_value_text(test["p_adjusted"])
    return f"{text}, corrected for {tests['tests']:,} tests {corrected}"


def _next(word: str, entry: Mapping[str, Any]) -> str:
    floor = entry["verification"]["passive_floor"]
    value = floor["value"] if isinstance(floor, Mapping) else floor
    if word == "no-evidence":
        if value is None:
            return "More labels are needed to say how small the error is: see `calibrant plan`."
        return (
            f"Claims finer than {value:.3f} are beyond these labels: see `calibrant plan` for how "
            "many are needed."
        )
    return (
        "Recalibrate on held-out labels (--recalibrate), and see `calibrant groups` for where it "
        "is wrong."
    )
