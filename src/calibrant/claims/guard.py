"""What may be said of unlabelled traffic: it is no longer what a promise was made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, declare
from calibrant.claims.words import count, joined, percent

_LABELS = 100


def _moved(facts: Facts) -> str:
    change = next(c for c in facts["changes"] if c["name"] is not None)
    return f"{change['name']} {percent(change['before'])} -> {percent(change['now'])}"


def _new(facts: Facts) -> str:
    groups = facts["new_groups"]
    if not groups:
        return ""
    share = percent(sum(groups.values()))
    return f" Groups never labelled are asked: {joined(list(groups))} ({share} of the traffic)."


def _changed(facts: Facts) -> str:
    if facts["outcome"] == "mix changed":
        return (
            f"The mix changed: {_moved(facts)}. The promise is about the old mix; certify again "
            f"for the new one.{_new(facts)}"
        )
    names = joined([change["column"] for change in facts["changes"]])
    return (
        f"The promise has expired: {names} of the traffic changed since the labels were made. "
        f"Label {_LABELS} rows of it and certify again.{_new(facts)}"
    )


def _like_before(facts: Facts) -> str:
    unseen = facts["unchecked"]
    blind = f" Not checked, because the rows lack it: {joined(unseen)}." if unseen else ""
    return (
        f"Nothing shows that {count(facts['rows'], 'row')} of traffic differ from what the promise "
        f"was made for.{_new(facts)}{blind} Only labels show whether answers are still as right."
    )


TRAFFIC = declare(
    ClaimRule(
        "monitor.traffic",
        "Is the traffic still what the promise was made for?",
        "groups, confidence or length are distributed otherwise than in the fit",
        "two-sample chi-square test on groups, and on ten cells of every number inside groups",
        "Bonferroni over columns and 52 looks",
        {"shown": _changed, "undecided": _like_before},
    )
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
