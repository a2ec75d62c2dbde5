"""The plain sentences of an audit, derived from its numbers and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.document import plain

__all__ = ["audit_verdict"]


def audit_verdict(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return three sentences: how calibrated, how sure we are, what to do next.

    ``calibration`` is a word for programs: over-confident, under-confident, miscalibrated,
    no-evidence, not-a-probability.
    """
    entry = plain(entry)
    if not entry["probability"]:
        return {
            "calibration": "not-a-probability",
            "how": "This score ranks answers but is not a probability, so it cannot be calibrated.",
            "sure": "Ranking metrics are given with their intervals.",
            "next": "Use --recalibrate platt (cross-fitted) to turn it into a probability first.",
        }
    word = _word(entry)
    gap = entry["metrics"]["mean_confidence"]["value"] - entry["metrics"]["accuracy"]["value"]
    return {
        "calibration": word,
        "how": _how(word, gap, entry["metrics"]["ece"]),
        "sure": _sure(entry),
        "next": _next(word, entry),
    }


def _word(entry: Mapping[str, Any]) -> str:
    gap = entry["metrics"]["confidence_gap"]
    if gap["low"] is not None and gap["low"] > 0:
        return "over-confident"
    if gap["high"] is not None and gap["high"] < 0:
        return "under-confident"
    p_value = entry["calibration_test"]["p_value"]
    return "miscalibrated" if p_value is not None and p_value < 0.05 else "no-evidence"


def _how(word: str, gap: float, ece: Mapping[str, Any]) -> str:
    size = f"the binned calibration error is {ece['value']:.3f}"
    if word in ("over-confident", "under-confident"):
        side = "above" if gap > 0 else "below"
        return f"On average {word}: confidence is {abs(gap):.3f} {side} accuracy, and {size}."
    if word == "miscalibrated":
        return f"Right on average but wrong in places: {size}."
    return f"No evidence of miscalibration: {size}, as a calibrated model could show."


def _sure(entry: Mapping[str, Any]) -> str:
    ece, test = entry["metrics"]["ece"], entry["calibration_test"]
    interval = (
        f"the interval is {ece['low']:.3f} to {ece['high']:.3f}"
        if ece["low"] is not None
        else "no interval can be given"
    )
    text = f"With {entry['questions']:,} questions {interval}"
    if test["expected_ece"] is None:
        return text + "; grades between 0 and 1 allow no test of perfect calibration."
    return f"{text}; a perfectly calibrated model would show {test['expected_ece']:.3f} here."


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
