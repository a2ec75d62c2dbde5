"""What `mend` may say: how far off the mended confidence is, and what it gains."""

from msgspec.structs import asdict

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome, Subject
from calibrant.claims.words import rule, subject_name
from calibrant.core.estimate import EstimateEntry
from calibrant.documents.decisions import MendEntry, MendPromise

_OUTCOME: dict[str, Outcome] = {
    "mended": "shown",
    "not worth it": "equivalent",
    "too few": "undecided",
}


OFF_BY = rule("mend.off_by", shown=lambda facts: "rising" if facts["rising"] else "turning")
GAIN = rule("mend.gain", margin=0.01)
COLUMNS = rule(
    "mend.columns", margin=0.01, undecided=lambda facts: "open" if facts["promise"] else "few"
)


def mend_claims(entry: MendEntry, *, named: bool) -> list[Claim]:
    """Return the claims of one map.

    Parameters
    ----------
    entry
        Entry of a mend document.
    named
        Whether the sentences name the model: there are several.
    """
    subject = {"model": entry.model, "method": entry.method}
    facts = {"name": subject_name(subject), "named": named, "n": entry.n, "rising": entry.rising}
    facts["advice"] = (
        "200 are enough for most models." if entry.n < 200 else "More labels would decide."
    )
    made = []
    off_by = entry.promise.off_by
    if off_by is not None:
        told, off = {**facts, **asdict(entry.promise)}, EstimateEntry(value=off_by, n=entry.n)
        made.append(OFF_BY.claim("shown", told, subject=subject, estimate=off))
    made.append(_gain(GAIN, entry.verdict, entry.promise, facts, subject))
    if entry.columns is not None:
        columns = entry.columns
        told = {**facts, "names": columns.names, "promise": columns.promise}
        made.append(_gain(COLUMNS, columns.verdict, columns.promise, told, subject))
    return made


def _gain(
    rule: ClaimRule, verdict: str, promise: MendPromise | None, facts: Facts, subject: Subject
) -> Claim:
    """Return what a map gains: beyond the confidence, or by columns beyond another map."""
    given = promise or MendPromise(off_by=None, certainty=0.0, gain=None, gain_low=None)
    return rule.claim(
        _OUTCOME[verdict],
        {**facts, **asdict(given), "low": given.gain_low, "margin": rule.margin},
        subject=subject,
        estimate=EstimateEntry(value=given.gain, low=given.gain_low, n=facts["n"]),
        margin=rule.margin,
    )
