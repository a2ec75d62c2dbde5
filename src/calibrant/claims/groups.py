"""What `groups` may say: for whom the confidence is wrong, and what recalibration mends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome, declare
from calibrant.claims.words import count, labels_text, percent, points, points_range, subject_name

# Differences between groups below this are not worth a correction of their own.
GROUP_MARGIN = 0.05


def _lead(facts: Facts) -> str:
    return f"{facts['name']}: " if facts["named"] else ""


def _typical(square: float) -> str:
    """Return a squared error as the size of error it stands for."""
    return points(max(square, 0.0) ** 0.5)


RECALIBRATION = declare(
    ClaimRule(
        "groups.recalibration",
        "Does one recalibration over all rows mend part of the error?",
        "Brier(f) - Brier(c(f)) > 0",
        "mean saving on rows that the recalibration has not seen, two-sided at 5 %",
        "none: one claim per model and method",
        {
            "shown": lambda facts: (
                f"{_lead(facts)}Says {percent(facts['said'])}, is right "
                f"{percent(facts['right'])}. One recalibration over all rows mends a typical error "
                f"of {_typical(facts['value'])}."
            ),
            "undecided": lambda facts: (
                f"{_lead(facts)}Says {percent(facts['said'])}, is right {percent(facts['right'])}. "
                "Undecided whether one recalibration over all rows improves it. More labels would "
                "decide."
            ),
        },
    )
)


GROUPING = declare(
    ClaimRule(
        "groups.grouping_loss",
        "Is there an error that no recalibration can mend?",
        "E[(P(y = 1 | x, f) - P(y = 1 | f))^2] > 0",
        "cross-fitted prediction from the features, cleared of the confidence, against the "
        "outcomes of rows it has not seen; 95 % lower bound",
        "none: one claim per model and method",
        {
            "shown": lambda facts: (
                f"{_lead(facts)}Answers of equal confidence are not equally often right: by these "
                f"columns the confidence is typically off by at least {_typical(facts['low'])}. "
                "No recalibration mends that."
            ),
            "undecided": lambda facts: (
                f"{_lead(facts)}Undecided whether answers of equal confidence are equally often "
                f"right. {labels_text(facts['more']).capitalize()} or other columns would decide."
            ),
        },
    )
)


def _stands(facts: Facts) -> str:
    word = "less" if facts["value"] > 0 else "more"
    # A later group is measured beyond those found before it, and its sentence says so.
    before = facts.get("before", 0)
    after = f", after allowing for {count(before, 'group')} found before it" if before else ""
    return (
        f"{_lead(facts)}{facts['rule']} is right {points(abs(facts['value']))} {word} often than "
        f"other answers of equal confidence{after} (95 % interval "
        f"{points_range(*facts['range'])}, {count(facts['rows'], 'row')})."
    )


def _none_stands(facts: Facts) -> str:
    if not facts["tested"]:
        return (
            f"{_lead(facts)}These columns make no group to test: one needs enough rows, and must "
            "not follow from the confidence alone. Other columns would make some."
        )
    return (
        f"{_lead(facts)}None of {count(facts['tested'], 'group')} stands out beyond the overall "
        f"error. {labels_text(facts['more']).capitalize()} would show a gap of "
        f"{points(GROUP_MARGIN)} in a tenth of the rows."
    )


STANDS_OUT = declare(
    ClaimRule(
        "groups.stands_out",
        "Is a group over- or under-confident beyond what all rows share?",
        "E[G' (y - c(f))] != 0, G' the group cleared of the confidence",
        "ratio to its standard error against the largest ratio over all rules in data redrawn from "
        "the recalibrated confidence",
        "the critical value holds for all rules at once; found groups join what is explained",
        {
            "shown": _stands,
            "undecided": _none_stands,
        },
        margin=GROUP_MARGIN,
    )
)


NAMED = declare(
    ClaimRule(
        "groups.named",
        "Is a group that was named beforehand over- or under-confident at equal confidence?",
        "E[G' (y - c(f))] != 0, G' the group cleared of the confidence",
        "ratio to its standard error against the largest ratio over the named groups in data "
        "redrawn from the recalibrated confidence; 'equivalent' when the interval lies within the "
        "margin",
        "the critical value holds for all named groups at once",
        {
            "shown": _stands,
            "equivalent": lambda facts: (
                f"{_lead(facts)}{facts['rule']} is as well calibrated as answers of equal "
                f"confidence, within {points(facts['margin'])} ({count(facts['rows'], 'row')})."
            ),
            "undecided": lambda facts: (
                f"{_lead(facts)}Undecided whether {facts['rule']} differs from answers of "
                f"equal confidence ({points_range(*facts['range'])} points). "
                f"{labels_text(facts['more']).capitalize()} would decide."
            ),
        },
        margin=GROUP_MARGIN,
    )
)


DIFFERENCE = declare(
    ClaimRule(
        "groups.difference",
        "Is one named group more over-confident than another at equal confidence?",
        "gap(a | f) - gap(b | f) != 0",
        "regression on the confidence and the group, jackknife standard error; 'equivalent' when "
        "the 90 % interval lies within the margin",
        "Holm over all pairs of named groups",
        {
            "shown": lambda facts: (
                f"{_lead(facts)}{facts['a']} is more over-confident than {facts['b']} by "
                f"{points(abs(facts['value']))} at equal confidence "
                f"(95 % interval {points_range(*facts['range'])})."
            ),
            "equivalent": lambda facts: (
                f"{_lead(facts)}{facts['a']} and {facts['b']} are equally calibrated within "
                f"{points(facts['margin'])}."
            ),
            "undecided": lambda facts: (
                f"{_lead(facts)}Undecided whether {facts['a']} and {facts['b']} differ "
                f"({points_range(*facts['range'])} points). "
                f"{labels_text(facts['more']).capitalize()} would decide."
            ),
        },
        margin=GROUP_MARGIN,
    )
)


DECISION_RISK = declare(
    ClaimRule(
        "groups.decision_risk",
        "Do decisions by this confidence cost more than they need to?",
        "E[cost(f at t)] - E[cost(P(y = 1 | x, f) at t*)] > 0",
        "mean saving of decisions by a corrected confidence learned without the row, one-sided at "
        "5 %",
        "none: one claim per model and method",
        {
            "shown": lambda facts: (
                f"{_lead(facts)}Deciding by this confidence costs at least {facts['low']:.3g} more "
                f"per decision than it needs to (today {facts['today']:.3g})."
            ),
            "undecided": lambda facts: (
                f"{_lead(facts)}Undecided whether better decisions would save anything; at most "
                f"{facts['high']:.3g} per decision. {labels_text(facts['more']).capitalize()} "
                "would decide."
            ),
        },
    )
)


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
