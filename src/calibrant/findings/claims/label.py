"""What labelling may say: how precisely the accuracy is known, and which claim is decided."""

from collections.abc import Iterator, Sequence

from calibrant.findings.claims.claim import Claim, Outcome
from calibrant.findings.claims.margins import ROUNDING
from calibrant.findings.claims.words import about_model, rule
from calibrant.findings.documents.labels import LabelEntry

PRECISION = rule("label.precision_reached")
THRESHOLD = rule("label.claim", decides=lambda facts: "labels" if facts["more"] else "more")


def label_claims(
    entries: Sequence[LabelEntry], *, precision: float | None, threshold: float | None
) -> Iterator[Claim]:
    """Yield the claims of a pool that is being labelled, by its goals."""
    several = len(entries) > 1
    for entry in entries:
        if entry.stop is None:
            continue
        about = about_model(entry.model, entry.method, named=several, labels=entry.labelled)
        if precision is not None:
            reached = entry.stop.half_width <= precision and entry.stop.stop
            outcome: Outcome = "shown" if reached else "undecided"
            more, claimed = {"more": entry.more_for_precision}, entry.claimed_accuracy
            yield PRECISION.claim(outcome, about, more, estimate=claimed, margin=precision)
        if threshold is not None and (bounds := entry.stop.bounds):
            _, low, high = bounds.ends
            below, above = high < threshold - ROUNDING, low > threshold + ROUNDING
            outcome = "shown" if below or above else "undecided"
            facts = {"side": "below" if below else "above", "more": entry.more_labels}
            yield THRESHOLD.claim(outcome, about, facts, estimate=bounds, margin=threshold)
