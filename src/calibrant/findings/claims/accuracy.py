"""What is said of graded answers that have no confidence."""

from collections.abc import Iterator, Sequence

from calibrant.findings.claims.claim import ALPHA, About, Claim
from calibrant.findings.claims.words import rule, subject_name
from calibrant.findings.documents.accuracies import AccuracyEntry, AccuracyPair

SHARE = rule("accuracy.share", between=lambda facts: "clusters" if facts["clusters"] else "rows")
REPEATS = rule("accuracy.repeats")
BETTER = rule("accuracy.better")


def accuracy_claims(
    entries: Sequence[AccuracyEntry], pairs: Sequence[AccuracyPair], level: float
) -> Iterator[Claim]:
    """Yield the differences that are shown, the shares right, and the pairs that stay open."""
    compared = list(_differences(pairs, level))
    yield from (claim for claim in compared if claim.outcome == "shown")
    for entry in entries:
        subject = {"model": entry.model, "group": entry.group}
        name = subject_name({**subject, "method": None})
        about = About(subject, {"name": name.replace("The confidence", "It"), "level": level})
        facts = {"clusters": entry.clusters}
        yield SHARE.claim("shown", about, facts, estimate=entry.accuracy, n=entry.n)
        if entry.disagree is not None:
            yield REPEATS.claim("shown", about, estimate=entry.disagree)
    yield from (claim for claim in compared if claim.outcome != "shown")


def _differences(pairs: Sequence[AccuracyPair], level: float) -> Iterator[Claim]:
    for pair in pairs:
        value, low, high = pair.difference.numbers
        half = (high - low) / 2
        # Intervals shrink with the root of the number of questions.
        more = pair.questions * ((half / abs(value)) ** 2 - 1) if value else None
        facts = {"questions": pair.questions, "more": None if more is None else max(more, 0.0)}
        yield BETTER.claim(
            "shown" if pair.p_adjusted <= ALPHA else "undecided",
            About({"a": pair.a, "b": pair.b}, {"a": pair.a, "b": pair.b, "level": level}),
            facts,
            estimate=pair.difference,
            p_adjusted=pair.p_adjusted,
            n=pair.questions,
        )
