"""What labelling may say: how precisely the accuracy is known, and which claim is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, declare
from calibrant.claims.margins import ROUNDING
from calibrant.claims.words import count, labels_text, percent, points, points_range, subject_name


def _started(facts: Mapping[str, Any], text: str) -> str:
    """Return a sentence with its subject in front, or with a capital letter."""
    return f"{facts['name']}: {text}" if facts["named"] else text[0].upper() + text[1:]


def _range(facts: Mapping[str, Any]) -> str:
    return f"{percent(facts['low'])} to {percent(facts['high'])}"


PRECISION = declare(
    ClaimRule(
        "label.precision_reached",
        "Is the accuracy of the whole pool known as precisely as was asked?",
        "low <= E[y] <= high, with (high - low) / 2 as told",
        "normal interval at 97 %, weighted by the chances of the draw; looked at after every label",
        "none: one sentence per model and method about its own pool",
        {
            "shown": lambda facts: _started(
                facts,
                f"right in {percent(facts['value'])} of all answers ({_range(facts)}), by "
                f"{count(facts['labels'], 'label')}: precise enough to stop.",
            ),
            "undecided": lambda facts: _started(
                facts,
                f"right in {percent(facts['value'])} of all answers ({_range(facts)}). "
                f"{labels_text(facts['more']).capitalize()} would tell it to within "
                f"{points(facts['goal'])}.",
            ),
        },
    )
)

THRESHOLD = declare(
    ClaimRule(
        "label.claim",
        "Is the calibration error of the whole pool below the threshold?",
        "sum_b P(b) |E[c - y | b]| < t for 'shown'; > t is told as well",
        "bounds that hold after every label at once: upper by inversion, lower with signs chosen "
        "before each label",
        "none: one threshold per model and method",
        {
            "shown": lambda facts: _started(
                facts,
                f"the calibration error is {facts['side']} {points(facts['margin'])} "
                f"({points(facts['value'])}, by {count(facts['labels'], 'label')}).",
            ),
            "undecided": lambda facts: _started(
                facts,
                f"undecided whether the calibration error is below {points(facts['margin'])} (now "
                f"{points_range(facts['low'], facts['high'])} points). {_what_decides(facts)}",
            ),
        },
    )
)


def _what_decides(facts: Mapping[str, Any]) -> str:
    if not facts["more"]:
        return "More labels would decide."
    return f"{labels_text(facts['more']).capitalize()} would decide if it is calibrated."


def label_claims(entries: Sequence[Mapping[str, Any]], goals: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of a pool that is being labelled, from its entries as plain data."""
    named = len(entries) > 1
    return [
        claim
        for entry in entries
        if entry["labelled"]
        for claim in _entry_claims(entry, goals, named=named)
    ]


def _entry_claims(
    entry: Mapping[str, Any], goals: Mapping[str, Any], *, named: bool
) -> Iterable[Claim]:
    subject = {name: entry[name] for name in ("model", "method")}
    shared = {"name": subject_name(subject), "named": named, "labels": entry["labelled"]}
    stop = entry["stop"]
    if goals.get("precision") is not None:
        reached = stop["half_width"] <= goals["precision"] and stop["stop"]
        accuracy = entry["claimed_accuracy"]
        facts = {
            **shared,
            **accuracy,
            "more": entry["more_for_precision"],
            "goal": goals["precision"],
        }
        yield PRECISION.claim(
            "shown" if reached else "undecided",
            facts,
            subject=subject,
            estimate=accuracy,
            margin=goals["precision"],
        )
    bounds = stop.get("bounds")
    if goals.get("threshold") is not None and bounds is not None:
        threshold = goals["threshold"]
        below, above = (
            bounds["high"] < threshold - ROUNDING,
            bounds["low"] > threshold + ROUNDING,
        )
        facts = {
            **shared,
            **bounds,
            "side": "below" if below else "above",
            "margin": threshold,
            "more": entry["more_labels"],
        }
        yield THRESHOLD.claim(
            "shown" if below or above else "undecided",
            facts,
            subject=subject,
            estimate=bounds,
            margin=threshold,
        )
