"""What labelling may say: how precisely the accuracy is known, and which claim is decided."""

from collections.abc import Iterable, Sequence

from calibrant.claims.claim import Claim, Facts
from calibrant.claims.margins import ROUNDING
from calibrant.claims.words import percent, rule, subject_name
from calibrant.documents.plain.head import Subject
from calibrant.documents.plain.labels import LabelEntry, LabelGoals


def _range(facts: Facts) -> str:
    return f"{percent(facts['low'])} to {percent(facts['high'])}"


PRECISION = rule("label.precision_reached", range=_range)
THRESHOLD = rule("label.claim", decides=lambda facts: "labels" if facts["more"] else "more")


def label_claims(entries: Sequence[LabelEntry], goals: LabelGoals) -> list[Claim]:
    """Return the claims of a pool that is being labelled, from its entries as plain data."""
    named = len(entries) > 1
    return [
        claim
        for entry in entries
        if entry["labelled"]
        for claim in _entry_claims(entry, goals, named=named)
    ]


def _entry_claims(entry: LabelEntry, goals: LabelGoals, *, named: bool) -> Iterable[Claim]:
    subject: Subject = {"model": entry["model"], "method": entry["method"]}
    shared = {"name": subject_name(subject), "named": named, "labels": entry["labelled"]}
    stop = entry["stop"]
    precision, threshold = goals.get("precision"), goals.get("threshold")
    if precision is not None:
        reached = stop["half_width"] <= precision and stop["stop"]
        accuracy = entry["claimed_accuracy"]
        facts = {
            **shared,
            **accuracy,
            "more": entry["more_for_precision"],
            "goal": precision,
        }
        yield PRECISION.claim(
            "shown" if reached else "undecided",
            facts,
            subject=subject,
            estimate=accuracy,
            margin=precision,
        )
    bounds = stop.get("bounds")
    if threshold is not None and bounds is not None:
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
