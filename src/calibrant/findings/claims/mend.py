"""What `mend` may say: how far off the corrected confidence is, and what it gains."""

from collections.abc import Iterator

from msgspec.structs import asdict

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.claims.claim import About, Claim, ClaimRule, Facts, Outcome
from calibrant.findings.claims.words import about_model, rule
from calibrant.findings.documents.decisions import MendEntry, MendPromise

TOO_FEW_GROUPS = "too few groups"
"""Verdict of a map whose labels hang together in groups too few to speak of others like them."""

_OUTCOME: dict[str, Outcome] = {
    "mended": "shown",
    "not worth it": "equivalent",
    "too few": "undecided",
    TOO_FEW_GROUPS: "undecided",
}


def _open(facts: Facts) -> str:
    if facts["verdict"] == TOO_FEW_GROUPS:
        return "groups"
    return "few" if facts["n"] < 200 else "open"


OFF_BY = rule("mend.off_by", shown=lambda facts: "rising" if facts["rising"] else "turning")
GAIN = rule("mend.gain", margin=0.01, undecided=_open)
COLUMNS = rule(
    "mend.columns", margin=0.01, undecided=lambda facts: "open" if facts["promise"] else "few"
)


def mend_claims(entry: MendEntry, *, named: bool) -> Iterator[Claim]:
    """Yield the claims of one map.

    Parameters
    ----------
    entry
        Entry of a mend document.
    named
        Whether the sentences name the model: there are several.
    """
    about = about_model(entry.model, entry.method, named=named, n=entry.n)
    promise, columns = entry.promise, entry.columns
    if promise.off_by is not None:
        deviation = EstimateEntry(value=promise.off_by, n=entry.n)
        yield OFF_BY.claim("shown", about, {"rising": entry.rising}, estimate=deviation)
    yield _gain(GAIN, entry.verdict, promise, about, {})
    if columns is not None:
        facts = {"names": columns.names, "promise": columns.promise}
        yield _gain(COLUMNS, columns.verdict, columns.promise, about, facts)


def _gain(
    rule: ClaimRule, verdict: str, promise: MendPromise | None, about: About, facts: Facts
) -> Claim:
    """Return what a map gains: beyond the confidence, or by columns beyond another map."""
    values = promise or MendPromise(off_by=None, certainty=0.0, gain=None, gain_low=None)
    return rule.claim(
        _OUTCOME[verdict],
        about,
        {**facts, **asdict(values), "verdict": verdict},
        estimate=EstimateEntry(value=values.gain, low=values.gain_low, n=about.facts["n"]),
    )
