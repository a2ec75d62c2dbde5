"""What `mend` may say: how far off the mended confidence is, and what it gains."""

from calibrant.claims.claim import Claim
from calibrant.claims.words import rule, subject_name
from calibrant.documents.plain.head import Subject
from calibrant.documents.plain.policy import MendColumns, MendEntry

_OUTCOME = {"mended": "shown", "not worth it": "equivalent", "too few": "undecided"}


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
        Entry of a mend document, as plain data.
    named
        Whether the sentences name the model: there are several.
    """
    subject: Subject = {"model": entry["model"], "method": entry["method"]}
    promise, n = entry["promise"], entry["n"]
    facts = {
        "name": subject_name(subject),
        "named": named,
        "n": n,
        "rising": entry["rising"],
        "off_by": promise["off_by"],
        "gain": promise["gain"],
        "low": promise["gain_low"],
        "margin": GAIN.margin,
        "advice": "200 are enough for most models." if n < 200 else "More labels would decide.",
    }
    made = []
    if promise["off_by"] is not None:
        made.append(
            OFF_BY.claim(
                "shown", facts, subject=subject, estimate={"value": promise["off_by"]}, n=n
            )
        )
    outcome = _OUTCOME[entry["verdict"]]
    made.append(
        GAIN.claim(
            outcome,  # type: ignore[arg-type]
            facts,
            subject=subject,
            estimate={"value": promise["gain"], "low": promise["gain_low"]},
            margin=GAIN.margin,
            n=n,
        )
    )
    columns = entry["columns"]
    return made if columns is None else [*made, _columns(columns, n, subject, named=named)]


def _columns(columns: MendColumns, n: int, subject: Subject, *, named: bool) -> Claim:
    """Return what other columns of the rows gain beyond the confidence."""
    promise = columns["promise"]
    off_by, gain, low = (
        (None, None, None)
        if promise is None
        else (promise["off_by"], promise["gain"], promise["gain_low"])
    )
    return COLUMNS.claim(
        _OUTCOME[columns["verdict"]],  # type: ignore[arg-type]
        {
            "name": subject_name(subject),
            "named": named,
            "n": n,
            **columns,
            "off_by": off_by,
            "gain": gain,
            "low": low,
            "margin": COLUMNS.margin,
        },
        subject=subject,
        estimate={"value": gain, "low": low},
        margin=COLUMNS.margin,
        n=n,
    )
