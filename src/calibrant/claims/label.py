"""What labelling may say: how precisely the accuracy is known, and which claim is decided."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim
from calibrant.claims.margins import ROUNDING
from calibrant.claims.words import percent, rule, subject_name


def _range(facts: Mapping[str, Any]) -> str:
    return f"{percent(facts['low'])} to {percent(facts['high'])}"


PRECISION = rule("label.precision_reached", range=_range)
THRESHOLD = rule("label.claim", decides=lambda facts: "labels" if facts["more"] else "more")


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
