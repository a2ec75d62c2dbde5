"""What `groups` may say: for whom the confidence is wrong, and what recalibration mends."""

import math
from collections.abc import Iterator

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims import (
    About,
    Claim,
    ClaimRule,
    Facts,
    Outcome,
    about_model,
    rule,
)
from calibrant.findings.claims.margins import more_rows
from calibrant.findings.documents.groups import GroupDifference, GroupEntry, GroupsEntry

# Differences between groups below this are not worth a correction of their own.
GROUP_MARGIN = 0.05


RECALIBRATION = rule("groups.recalibration")
GROUPING = rule("groups.grouping_loss")


def _after(facts: Facts) -> str:
    # A later group is measured beyond those found before it, and its sentence says so.
    before = facts["before"]
    above = "the group above" if before == 1 else f"the {before} groups above"
    return f", beyond {above}" if before else ""


def _beside(facts: Facts) -> str:
    """Name what would stand out, were it not for a jump of the curve."""
    stretches = facts["stretches"]
    if not stretches:
        return ""
    first = f"{stretches[0]} is a stretch of the confidence"
    return f"{first}: nothing beyond it can be tested."


STANDS_OUT = rule(
    "groups.stands_out",
    margin=GROUP_MARGIN,
    undecided=lambda facts: "some" if facts["tested"] else "none",
    after=_after,
    beside=_beside,
)
NAMED = rule(
    "groups.named",
    margin=GROUP_MARGIN,
    after=_after,
    undecided=lambda facts: "stretch" if facts["stretch"] else "open",
)
DIFFERENCE = rule(
    "groups.difference",
    margin=GROUP_MARGIN,
    undecided=lambda facts: "stretch" if facts["stretch"] else "open",
)
DECISION_RISK = rule("groups.decision_risk")


def groups_claims(entry: GroupsEntry, *, named: bool, costs: bool) -> Iterator[Claim]:
    """Yield the claims of one model and method, in the order of a headline.

    Parameters
    ----------
    entry
        Entry of a groups document.
    named
        Whether the sentences name the model: there are several.
    costs
        Whether costs were given; without them nobody asked for decisions.
    """
    about = about_model(entry.model, entry.method, named=named)
    # The question of the verb first: for whom is it wrong? Then what would mend it.
    # Whoever names a group asks about it: the answer comes before what was searched for.
    yield from (_group(NAMED, group, about) for group in entry.groups if group.kind == "named")
    yield from (_difference(pair, about) for pair in entry.differences)
    matches = [group for group in entry.groups if group.kind == "found"]
    yield from (_group(STANDS_OUT, group, about, place) for place, group in enumerate(matches))
    if not matches:
        yield _nothing_found(entry, about)
    corrected, left = entry.calibration_loss, entry.grouping_loss
    facts = {"said": entry.mean_confidence, "right": entry.rate}
    yield RECALIBRATION.claim(corrected.numbers[1] > 0, about, facts, estimate=corrected)
    reaches, p_adjusted = entry.grouping_loss_at_least > 0, entry.grouping_loss_p
    # The ratio grows with the root of the labels; a ratio near 0 says nothing about the rest.
    more = {"more": None if left.numbers[0] <= 0 else entry.n * 2.0}
    yield GROUPING.claim(reaches, about, more, estimate=left, p_adjusted=p_adjusted)
    if costs:
        yield _decision_risk(entry, about)


def _nothing_found(entry: GroupsEntry, about: About) -> Claim:
    critical, more = entry.multiplicity.critical, None
    if critical is not None and math.isfinite(critical):
        spread = entry.rate * (1 - entry.rate) / 0.09
        more = max(spread * ((critical + 0.84) / GROUP_MARGIN) ** 2 - entry.n, 0)
    stretches = entry.stretches
    facts = {"tested": entry.multiplicity.tested, "more": more, "stretches": stretches}
    return STANDS_OUT.claim("undecided", about, facts, n=entry.n)


def _group(rule: ClaimRule, group: GroupEntry, about: About, before: int = 0) -> Claim:
    _, low, high = group.beyond.numbers
    outcome: Outcome = "shown" if group.flagged else "undecided"
    if not (group.flagged or group.stretch) and low > -GROUP_MARGIN and high < GROUP_MARGIN:
        outcome = "equivalent"
    facts = {**about.facts, "rule": group.rule, "rows": group.n, "before": before}
    facts |= {"stretch": group.stretch, "stretches": []}
    about = About({**about.subject, "rule": group.rule}, facts)
    return _gap_claim(rule, outcome, about, group.beyond, group.p_adjusted)


def _difference(pair: GroupDifference, about: About) -> Claim:
    value, low, high = pair.gap.numbers
    narrow = (high - low) / 2 * 1.645 / 1.96
    outcome: Outcome = "undecided"
    if pair.p_adjusted <= 0.05:
        outcome = "shown"
    elif not pair.stretch and abs(value) + narrow < GROUP_MARGIN:
        outcome = "equivalent"
    first, second = (pair.a, pair.b) if value >= 0 else (pair.b, pair.a)
    subject = {**about.subject, "a": pair.a, "b": pair.b}
    about = About(subject, {**about.facts, "a": first, "b": second, "stretch": pair.stretch})
    return _gap_claim(DIFFERENCE, outcome, about, pair.gap, pair.p_adjusted)


def _gap_claim(
    rule: ClaimRule, outcome: Outcome, about: About, gap: EstimateEntry, p_adjusted: float
) -> Claim:
    """Return what is said of a gap; of one that is shown, how large it is either way."""
    _, low, high = gap.numbers
    sizes = sorted((abs(low), abs(high))) if outcome == "shown" else (low, high)
    facts = {"range": sizes, "more": more_rows(gap, GROUP_MARGIN)}
    return rule.claim(outcome, about, facts, estimate=gap, p_adjusted=p_adjusted)


def _decision_risk(entry: GroupsEntry, about: About) -> Claim:
    saved, more = entry.decision.saved, None
    value, low, _ = saved.numbers
    if value > 0:
        more = max(entry.n * (((value - low) / value) ** 2 - 1), 0)
    facts = {"today": entry.decision.today.value, "more": more}
    return DECISION_RISK.claim(low > 0, about, facts, estimate=saved)
