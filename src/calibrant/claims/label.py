"""What labelling may say: how precisely the accuracy is known, and which claim is decided."""

from collections.abc import Sequence

from msgspec.structs import asdict

from calibrant.claims.claim import Claim, Facts, Outcome
from calibrant.claims.margins import ROUNDING
from calibrant.claims.words import percent, rule, subject_name
from calibrant.documents.labels import LabelEntry


def _range(facts: Facts) -> str:
    return f"{percent(facts['low'])} to {percent(facts['high'])}"


PRECISION = rule("label.precision_reached", range=_range)
THRESHOLD = rule("label.claim", decides=lambda facts: "labels" if facts["more"] else "more")


def label_claims(
    entries: Sequence[LabelEntry], *, precision: float | None, threshold: float | None
) -> list[Claim]:
    """Return the claims of a pool that is being labelled, by its goals."""
    named = len(entries) > 1
    made = []
    for entry in entries:
        if entry.stop is None:
            continue
        subject = {"model": entry.model, "method": entry.method}
        shared = {"name": subject_name(subject), "named": named, "labels": entry.labelled}
        if precision is not None:
            reached = entry.stop.half_width <= precision and entry.stop.stop
            outcome: Outcome = "shown" if reached else "undecided"
            accuracy = entry.claimed_accuracy
            more = {"more": entry.more_for_precision, "goal": precision}
            facts = {**shared, **asdict(accuracy), **more}
            made.append(
                PRECISION.claim(
                    outcome, facts, subject=subject, estimate=accuracy, margin=precision
                )
            )
        if threshold is not None and (bounds := entry.stop.bounds):
            _, low, high = bounds.ends
            below, above = high < threshold - ROUNDING, low > threshold + ROUNDING
            outcome = "shown" if below or above else "undecided"
            side = {"side": "below" if below else "above", "margin": threshold}
            facts = {**shared, **asdict(bounds), **side, "more": entry.more_labels}
            made.append(
                THRESHOLD.claim(outcome, facts, subject=subject, estimate=bounds, margin=threshold)
            )
    return made
