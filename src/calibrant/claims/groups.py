"""What `groups` may say: for whom the confidence is wrong, and what recalibration mends."""

import math

from msgspec.structs import asdict

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome, Subject
from calibrant.claims.margins import more_rows
from calibrant.claims.words import count, rule, subject_name
from calibrant.core.estimate import EstimateEntry
from calibrant.documents.groups import GroupDifference, GroupEntry, GroupsEntry

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


def groups_claims(entry: GroupsEntry, *, named: bool, costs: bool) -> list[Claim]:
    """Return the claims of one model and method, in the order of a headline.

    Parameters
    ----------
    entry
        Entry of a groups document.
    named
        Whether the sentences name the model: there are several.
    costs
        Whether costs were given; without them nobody asked for decisions.
    """
    subject = {"model": entry.model, "method": entry.method}
    facts = {"name": subject_name(subject), "named": named}
    # The question of the verb first: for whom is it wrong? Then what would mend it.
    # Whoever names a group asks about it: the answer comes before what was searched for.
    made = [_group(NAMED, group, facts, subject) for group in entry.groups if group.kind == "named"]
    made += [_difference(pair, facts, subject) for pair in entry.differences]
    made += _stands_out(entry, facts, subject)
    made += [_recalibration(entry, facts, subject), _grouping(entry, facts, subject)]
    if costs:
        made.append(_decision_risk(entry, facts, subject))
    return made


def _recalibration(entry: GroupsEntry, facts: Facts, subject: Subject) -> Claim:
    loss = entry.calibration_loss
    return RECALIBRATION.claim(
        "shown" if loss.numbers[1] > 0 else "undecided",
        {**facts, **asdict(loss), "said": entry.mean_confidence, "right": entry.rate},
        subject=subject,
        estimate=loss,
    )


def _grouping(entry: GroupsEntry, facts: Facts, subject: Subject) -> Claim:
    loss = entry.grouping_loss
    # The ratio grows with the root of the labels; a ratio near 0 says nothing about the rest.
    more = None if loss.numbers[0] <= 0 else entry.n * 2.0
    return GROUPING.claim(
        "shown" if entry.grouping_loss_at_least > 0 else "undecided",
        {**facts, **asdict(loss), "more": more},
        subject=subject,
        estimate=loss,
        p_adjusted=entry.grouping_loss_p,
    )


def _stands_out(entry: GroupsEntry, facts: Facts, subject: Subject) -> list[Claim]:
    found = [group for group in entry.groups if group.kind == "found"]
    if found:
        return [
            _group(STANDS_OUT, group, {**facts, "before": place}, subject)
            for place, group in enumerate(found)
        ]
    critical, more = entry.multiplicity.critical, None
    if critical is not None and math.isfinite(critical):
        spread = entry.rate * (1 - entry.rate) / 0.09
        more = max(spread * ((critical + 0.84) / GROUP_MARGIN) ** 2 - entry.n, 0)
    told = {**facts, "tested": entry.multiplicity.tested, "more": more}
    return [STANDS_OUT.claim("undecided", told, subject=subject, margin=GROUP_MARGIN, n=entry.n)]


def _group(rule: ClaimRule, group: GroupEntry, facts: Facts, subject: Subject) -> Claim:
    value, low, high = group.beyond.numbers
    outcome: Outcome = "shown" if group.flagged else "undecided"
    if not group.flagged and low > -GROUP_MARGIN and high < GROUP_MARGIN:
        outcome = "equivalent"
    told = {**facts, "rule": group.rule, "rows": group.n}
    about = {**subject, "rule": group.rule}
    return _gap_claim(rule, outcome, group.beyond, value, told, about, group.p_adjusted)


def _difference(pair: GroupDifference, facts: Facts, subject: Subject) -> Claim:
    value, low, high = pair.gap.numbers
    narrow = (high - low) / 2 * 1.645 / 1.96
    outcome: Outcome = "undecided"
    if pair.p_adjusted <= 0.05:
        outcome = "shown"
    elif value - narrow > -GROUP_MARGIN and value + narrow < GROUP_MARGIN:
        outcome = "equivalent"
    first, second = (pair.a, pair.b) if value >= 0 else (pair.b, pair.a)
    told, about = {**facts, "a": first, "b": second}, {**subject, "a": pair.a, "b": pair.b}
    return _gap_claim(DIFFERENCE, outcome, pair.gap, value, told, about, pair.p_adjusted)


def _gap_claim(
    rule: ClaimRule,
    outcome: Outcome,
    gap: EstimateEntry,
    value: float,
    facts: Facts,
    subject: Subject,
    p_adjusted: float,
) -> Claim:
    """Return what is said of a gap; of one that is shown, how large it is either way."""
    _, low, high = gap.numbers
    size = sorted((abs(low), abs(high))) if outcome == "shown" else (low, high)
    more = more_rows(gap, GROUP_MARGIN)
    return rule.claim(
        outcome,
        {**facts, "value": value, "range": tuple(size), "more": more, "margin": GROUP_MARGIN},
        subject=subject,
        estimate=gap,
        p_adjusted=p_adjusted,
        margin=GROUP_MARGIN,
    )


def _decision_risk(entry: GroupsEntry, facts: Facts, subject: Subject) -> Claim:
    saved, more = entry.decision.saved, None
    value, low, _ = saved.numbers
    if value > 0:
        more = max(entry.n * (((value - low) / value) ** 2 - 1), 0)
    return DECISION_RISK.claim(
        "shown" if low > 0 else "undecided",
        {**facts, **asdict(saved), "today": entry.decision.today.value, "more": more},
        subject=subject,
        estimate=saved,
    )
