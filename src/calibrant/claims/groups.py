"""What `groups` may say: for whom the confidence is wrong, and what recalibration mends."""

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome
from calibrant.claims.words import count, rule, subject_name

# Differences between groups below this are not worth a correction of their own.
GROUP_MARGIN = 0.05


RECALIBRATION = rule("groups.recalibration")
GROUPING = rule("groups.grouping_loss")


def _after(facts: Facts) -> str:
    # A later group is measured beyond those found before it, and its sentence says so.
    before = facts.get("before", 0)
    return f", after allowing for {count(before, 'group')} found before it" if before else ""


STANDS_OUT = rule(
    "groups.stands_out",
    margin=GROUP_MARGIN,
    undecided=lambda facts: "some" if facts["tested"] else "none",
    after=_after,
)
NAMED = rule("groups.named", margin=GROUP_MARGIN, after=_after)
DIFFERENCE = rule("groups.difference", margin=GROUP_MARGIN)
DECISION_RISK = rule("groups.decision_risk")


def groups_claims(entry: Mapping[str, Any], *, named: bool, costs: bool) -> list[Claim]:
    """Return the claims of one model and method, in the order of a headline.

    Parameters
    ----------
    entry
        Entry of a groups document, as plain data.
    named
        Whether the sentences name the model: there are several.
    costs
        Whether costs were given; without them nobody asked for decisions.
    """
    subject = {"model": entry.get("model"), "method": entry.get("method")}
    facts = {"name": subject_name(subject), "named": named}
    # The question of the verb first: for whom is it wrong? Then what would mend it.
    # Whoever names a group asks about it: the answer comes before what was searched for.
    made = [_group(NAMED, g, facts, subject) for g in entry["groups"] if g["kind"] == "named"]
    made += [_difference(pair, facts, subject) for pair in entry["differences"]]
    made += _stands_out(entry, facts, subject)
    made += [_recalibration(entry, facts, subject), _grouping(entry, facts, subject)]
    if costs:
        made.append(_decision_risk(entry, facts, subject))
    return made


def _recalibration(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    loss = entry["calibration_loss"]
    return RECALIBRATION.claim(
        "shown" if loss["low"] > 0 else "undecided",
        {**facts, **loss, "said": entry["mean_confidence"], "right": entry["rate"]},
        subject=subject,
        estimate=loss,
    )


def _grouping(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    loss, p = entry["grouping_loss"], entry["grouping_loss_p"]
    # The ratio grows with the root of the labels; a ratio near 0 says nothing about the rest.
    more = None if loss["value"] <= 0 else entry["n"] * 2.0
    return GROUPING.claim(
        "shown" if entry["grouping_loss_at_least"] > 0 else "undecided",
        {**facts, **loss, "more": more},
        subject=subject,
        estimate=loss,
        p_adjusted=p,
    )


def _stands_out(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> list[Claim]:
    found = [group for group in entry["groups"] if group["kind"] == "found"]
    made = [
        _group(STANDS_OUT, group, {**facts, "before": place}, subject)
        for place, group in enumerate(found)
    ]
    if not found:
        tested, critical = entry["multiplicity"]["tested"], entry["multiplicity"]["critical"]
        more = None
        if critical is not None:
            spread = entry["rate"] * (1 - entry["rate"]) / 0.09
            more = max(spread * ((critical + 0.84) / GROUP_MARGIN) ** 2 - entry["n"], 0)
        made.append(
            STANDS_OUT.claim(
                "undecided",
                {**facts, "tested": tested, "more": more},
                subject=subject,
                margin=GROUP_MARGIN,
                n=entry["n"],
            )
        )
    return made


def _group(
    rule: ClaimRule, group: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]
) -> Claim:
    beyond = group["beyond"]
    low, high = beyond["low"], beyond["high"]
    outcome: Outcome = "shown" if group["flagged"] else "undecided"
    if not group["flagged"] and low > -GROUP_MARGIN and high < GROUP_MARGIN:
        outcome = "equivalent"
    half = (high - low) / 2
    distance = max(abs(beyond["value"]), GROUP_MARGIN - abs(beyond["value"]), 1e-9)
    more = max(group["n"] * ((half / distance) ** 2 - 1), 0)
    size = sorted((abs(low), abs(high))) if group["flagged"] else (low, high)
    return rule.claim(
        outcome,
        {
            **facts,
            "rule": group["rule"],
            "value": beyond["value"],
            "range": tuple(size),
            "rows": group["n"],
            "more": more,
            "margin": GROUP_MARGIN,
        },
        subject={**subject, "rule": group["rule"]},
        estimate=beyond,
        p_adjusted=group["p_adjusted"],
        margin=GROUP_MARGIN,
    )


def _difference(pair: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    gap = pair["gap"]
    value, half = gap["value"], (gap["high"] - gap["low"]) / 2
    narrow = half * 1.645 / 1.96
    outcome: Outcome = "undecided"
    if pair["p_adjusted"] <= 0.05:
        outcome = "shown"
    elif value - narrow > -GROUP_MARGIN and value + narrow < GROUP_MARGIN:
        outcome = "equivalent"
    first, second = (pair["a"], pair["b"]) if value >= 0 else (pair["b"], pair["a"])
    size = sorted((abs(gap["low"]), abs(gap["high"]))) if outcome == "shown" else None
    distance = max(abs(value), GROUP_MARGIN - abs(value), 1e-9)
    return DIFFERENCE.claim(
        outcome,
        {
            **facts,
            "a": first,
            "b": second,
            "value": value,
            "range": tuple(size or (gap["low"], gap["high"])),
            "margin": GROUP_MARGIN,
            "more": max(gap["n"] * ((half / distance) ** 2 - 1), 0),
        },
        subject={**subject, "a": pair["a"], "b": pair["b"]},
        estimate=gap,
        p_adjusted=pair["p_adjusted"],
        margin=GROUP_MARGIN,
    )


def _decision_risk(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    saved, today = entry["decision"]["saved"], entry["decision"]["today"]["value"]
    half = saved["value"] - saved["low"]
    more = None
    if saved["value"] > 0:
        more = max(entry["n"] * ((half / saved["value"]) ** 2 - 1), 0)
    return DECISION_RISK.claim(
        "shown" if saved["low"] > 0 else "undecided",
        {**facts, **saved, "today": today, "more": more},
        subject=subject,
        estimate=saved,
    )
