"""What `mend` may say: how far off the mended confidence is, and what it gains."""

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim
from calibrant.claims.words import rule, subject_name

_OUTCOME = {"mended": "shown", "not worth it": "equivalent", "too few": "undecided"}


OFF_BY = rule("mend.off_by", shown=lambda facts: "rising" if facts["rising"] else "turning")
GAIN = rule("mend.gain", margin=0.01)
COLUMNS = rule(
    "mend.columns", margin=0.01, undecided=lambda facts: "open" if facts["promise"] else "few"
)


def mend_claims(entry: Mapping[str, Any], *, named: bool) -> list[Claim]:
    """Return the claims of one map.

    Parameters
    ----------
    entry
        Entry of a mend document, as plain data.
    named
        Whether the sentences name the model: there are several.
    """
    subject = {"model": entry["model"], "method": entry["method"]}
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
    return made if entry["columns"] is None else [*made, _columns(entry, named=named)]


def _columns(entry: Mapping[str, Any], *, named: bool) -> Claim:
    """Return what other columns of the rows gain beyond the confidence."""
    columns, subject = entry["columns"], {"model": entry["model"], "method": entry["method"]}
    promise = columns["promise"] or {}
    return COLUMNS.claim(
        _OUTCOME[columns["verdict"]],  # type: ignore[arg-type]
        {
            "name": subject_name(subject),
            "named": named,
            "n": entry["n"],
            **columns,
            "off_by": promise.get("off_by"),
            "gain": promise.get("gain"),
            "low": promise.get("gain_low"),
            "margin": COLUMNS.margin,
        },
        subject=subject,
        estimate={"value": promise.get("gain"), "low": promise.get("gain_low")},
        margin=COLUMNS.margin,
        n=entry["n"],
    )
