"""What may be said of unlabelled traffic: it is no longer what a promise was made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, Facts
from calibrant.claims.rule import rule
from calibrant.claims.words import joined, percent

_LABELS = 100


def _moved(facts: Facts) -> str:
    change = next(c for c in facts["changes"] if c["name"] is not None)
    return f"{change['name']} {percent(change['before'])} -> {percent(change['now'])}"


def _new(facts: Facts) -> str:
    groups = facts["new_groups"]
    if not groups:
        return ""
    share = percent(sum(groups.values()))
    return f"Groups never labelled are asked: {joined(list(groups))} ({share} of the traffic)."


def _unchecked(facts: Facts) -> str:
    unseen = facts["unchecked"]
    return f"Not checked, because the rows lack it: {joined(unseen)}." if unseen else ""


TRAFFIC = rule(
    "monitor.traffic",
    shown=lambda facts: "mix" if facts["outcome"] == "mix changed" else "expired",
    moved=_moved,
    new=_new,
    columns=lambda facts: joined([change["column"] for change in facts["changes"]]),
    unchecked=_unchecked,
)


def traffic_claim(check: Mapping[str, Any]) -> Claim:
    """Return the claim of a look at unlabelled traffic, from its plain data."""
    changes = check["changes"]
    return TRAFFIC.claim(
        "shown" if changes else "undecided",
        check,
        subject={"columns": [change["column"] for change in changes]},
        p_adjusted=min((change["p"] for change in changes), default=None),
        n=check["rows"],
    )


def traffic_step(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what to do next after a look at the traffic, in words and as a command."""
    seen = document.get("traffic") or {}
    if not seen.get("next"):
        return None
    certify = seen["outcome"] == "mix changed"
    return "Certify for the new mix" if certify else "Label rows of the traffic", seen["next"]
