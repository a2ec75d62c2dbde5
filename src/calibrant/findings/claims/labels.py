"""What plan, label and monitor may say: labels that are needed, changes, broken promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from calibrant.findings.claims import (
    About,
    Claim,
    Facts,
    Outcome,
    about_model,
    count,
    joined,
    percent,
    point_number,
    points,
    points_range,
    rule,
    subject_name,
)
from calibrant.findings.claims.data import warning
from calibrant.findings.claims.margins import ROUNDING
from calibrant.findings.documents.entries import DataWarning, EstimateEntry
from calibrant.findings.documents.fields import LeaderboardFields
from calibrant.findings.documents.labels import LabelEntry, MonitorEntry
from calibrant.findings.documents.plans import ClaimPlanEntry


def _mix_moved(facts: Facts) -> str:
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
    moved=_mix_moved,
    new=_new,
    columns=lambda facts: joined([change["column"] for change in facts["changes"]]),
    unchecked=_unchecked,
)


def traffic_claim(check: Mapping[str, Any]) -> Claim:
    """Return the claim of a look at unlabelled traffic, from its plain data."""
    changes = check["changes"]
    return TRAFFIC.claim(
        "shown" if changes else "undecided",
        About({"columns": [change["column"] for change in changes]}, check),
        p_adjusted=min((change["p"] for change in changes), default=None),
        n=check["rows"],
    )


def traffic_step(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what to do next after a look at the traffic, in words and as a command."""
    observed = document.get("traffic") or {}
    if not observed.get("next"):
        return None
    certify = observed["outcome"] == "mix changed"
    return "Certify for the new mix" if certify else "Label rows of the traffic", observed["next"]


# What a table without columns of models and methods holds.
_UNNAMED = ("model", "confidence")
_CONFIDENCE = "its confidence says"


def _where(facts: Facts) -> str:
    if facts["bin"] is None:
        return ""
    low, high = facts["bin"]
    return f" at confidences from {percent(low)} to {percent(high)}"


def _moved(facts: Facts) -> str:
    fewer = "fewer" if facts["shift"] < 0 else "more"
    size = point_number(abs(facts["shift"]))
    group = facts.get("group")
    most = "" if group is None else f", most in {group} ({point_number(facts['group_shift'])})"
    return f"{size} points {fewer} right answers{_where(facts)}{most}"


def _times(facts: Facts) -> str:
    """Say how often: after an alarm the monitor learns anew and may find another change."""
    several = len(facts["alarms"])
    return f" (the last of {several} times)" if several > 1 else ""


def _changed(facts: Facts) -> str:
    """Without a baseline nobody knows whether it was ever better."""
    return "is off" if facts["before"] == _CONFIDENCE else "has changed"


ALARM = rule(
    "monitor.alarm",
    changed=_changed,
    times=_times,
    moved=_moved,
    looks=lambda facts: f"{facts['batches']:,} batch{'' if facts['batches'] == 1 else 'es'}",
)


def _errors(facts: Facts) -> str:
    error, values = facts["error"], count(facts["given"], "answer")
    if error is None:
        return "no answer given alone has a label yet"
    return f"{percent(error.value)} of {values} given alone were wrong"


PROMISE = rule("monitor.promise", errors=_errors)
MIX = rule("monitor.mix", same=lambda facts: "yes" if facts["quality"] else "no")


def _before(reference: str, alarms: int) -> str:
    """Say what an alarm is held against: after one it is what was learnt since."""
    return _CONFIDENCE if reference.startswith("perfect") and alarms < 2 else "before"


def monitor_claims(entries: Sequence[MonitorEntry]) -> Iterator[Claim]:
    """Yield the claims of a watch."""
    for entry in entries:
        about = about_model(entry.model, entry.method, named=len(entries) > 1, n=entry.n)
        yield _alarm_claim(entry, about)
        if mix := entry.mix:
            change, size, facts = mix.alarm, None, {"quality": entry.alarm is None}
            outcome: Outcome = "undecided"
            if change is not None:
                size = {"value": change.now - change.before}
                outcome, facts = "shown", {**facts, **asdict(change)}
            yield MIX.claim(outcome, about, facts, estimate=size, p_adjusted=mix.p_value, n=entry.n)
        if promise := entry.promise:
            yield PROMISE.claim(
                "undecided" if promise.broken is None else "shown", about, asdict(promise),
                estimate=promise.error, p_adjusted=promise.p_value, margin=promise.max_error,
                n=promise.given,
            )  # fmt: skip


def _alarm_claim(entry: MonitorEntry, about: About) -> Claim:
    alarm, before = entry.alarm, _before(entry.reference, len(entry.alarms))
    facts: Facts = {"batches": entry.batches, "alarms": entry.alarms, "before": before}
    outcome: Outcome = "undecided"
    size = None
    if alarm is not None:
        outcome, facts, size = "shown", {**facts, **asdict(alarm)}, {"value": alarm.shift}
    return ALARM.claim(outcome, about, facts, estimate=size, p_adjusted=entry.p_value, n=entry.n)


def waiting_warnings(entries: Sequence[MonitorEntry]) -> Iterator[DataWarning]:
    """Yield what a reader has to know of labels that wait until their day is complete."""
    for entry in entries:
        waits, days, until = entry.waiting.labels, entry.waiting.days, entry.waiting.until
        if waits and days:
            text = (
                f"Labels take up to {count(days, 'day')} here, so {count(waits, 'label')} of the "
                "last days wait until their day is complete."
            )
            if until is not None:
                text += (
                    f" Until {until} the watch learns how long labels take and judges complete "
                    "days alone. Give that number of days to judge sooner."
                )
            yield warning("waiting_labels", text, models=[entry.model])


def day_warnings(entries: Sequence[MonitorEntry]) -> Iterator[DataWarning]:
    """Yield what a reader has to know of days that differ by themselves."""
    for entry in entries:
        usual = entry.ordinary_days
        if usual is None or usual.spread is None:
            known_values = 0 if usual is None else usual.days
            text = (
                f"The baseline shows {known_values} of 14 days that tell how much days differ: a "
                "usual day may raise an alarm. Give it with its times."
            )
            yield warning("days_unknown", text, models=[entry.model])
        elif usual.wander:
            text = (
                f"Days wander: neighbouring days are alike, and stray {usual.spread:.1f} times as "
                "far as their labels explain. False alarms are more frequent than promised; a "
                "baseline of 84 days or more lowers them."
            )
            yield warning("days_wander", text, models=[entry.model])
        elif usual.differ:
            text = (
                f"Days differ more than their labels explain ({usual.spread:.1f} x): changes are "
                "found later."
            )
            yield warning("days_differ", text, models=[entry.model])


def late_warnings(late: int) -> Iterator[DataWarning]:
    """Yield what a reader has to know of labels that came late."""
    if late:
        text = (
            f"{count(late, 'label')} came late and count on the day they came. If wrong answers "
            "are labelled later than right ones, that may look like a change."
        )
        yield warning("late_labels", text, models=[])


def announcement(event: Mapping[str, Any]) -> str:
    """Return the line about a batch that decides: an alarm, or a promise that is broken."""
    owner = "" if (event["model"], event["method"]) == _UNNAMED else f" ({subject_name(event)})"
    broken = event.get("promise")
    if broken is not None:
        return (
            f"ALARM at {broken['when']}{owner}: the promise has expired. Since about "
            f"{broken['since']}, {percent(broken['error'])} of the answers given alone are wrong."
        )
    before = _before(event["reference"], event["alarms"])
    return (
        f"ALARM at {event['when']}{owner}: calibration {_changed({'before': before})}. Since about "
        f"{event['since']}, {_moved(event)}."
    )


def _rounded(labels: int) -> str:
    # Coarser rounding would make it look like another number of the table beside it.
    unit = 10 if labels < 10_000 else 100
    return f"{-(-labels // unit) * unit:,}"


NEEDED = rule(
    "plan.labels_needed",
    depends=lambda facts: "pool" if facts["high"] is None else "half",
    first=lambda facts: _rounded(facts["low"]),
    second=lambda facts: _rounded(facts["high"]),
    half_margin=lambda facts: points(facts["margin"] / 2),
)
SHOWS = rule(
    "plan.labels_show", otherwise=lambda facts: "none" if facts["high"] is None else "half"
)

_METRICS = {"accuracy": "accuracy", "brier": "Brier score", "ece": "calibration error"}


def _ahead(facts: Facts) -> str:
    others = facts["models"] - 1
    return f", ahead of all {others} others" if others > 1 else ""


LEADER = rule(
    "plan.leader", ahead=_ahead, apart=lambda facts: points_range(facts["near"], facts["far"])
)


def _pairs(facts: Facts) -> str:
    if facts["pairs"] == 1:
        return "two"
    return "all" if facts["apart"] == facts["pairs"] else "some"


def _ties(facts: Facts) -> str:
    remaining = facts["pairs"] - facts["apart"]
    return f"; {remaining:,} {'is a tie' if remaining == 1 else 'are ties'}" if remaining else ""


ORDER = rule("plan.order", which=_pairs, ties=_ties)


def leaderboard_claims(board: LeaderboardFields) -> list[Claim]:
    """Return the claims of a ``calibrant.leaderboard/1`` document."""
    first, second = (entry.model for entry in board.results[:2])
    nearest = next(p.gap for p in board.pairs if (p.a, p.b) == (first, second))
    _, low, high = nearest.ends
    ends = sorted((abs(low), abs(high)))
    facts = {
        "metric": _METRICS[board.metric],
        "models": len(board.results),
        "model": first,
        "second": second,
        "first": [entry.model for entry in board.results if entry.rank_low == 1],
        "n": board.questions,
        "near": ends[0] if low * high > 0 else 0.0,
        "far": ends[1],
        "pairs": len(board.pairs),
        "apart": sum(not pair.tie for pair in board.pairs),
    }
    leading = About({"model": first, "metric": board.metric})
    leads: Outcome = "shown" if board.results[0].rank_high == 1 else "undecided"
    difference: Outcome = "shown" if facts["apart"] else "undecided"
    return [
        LEADER.claim(leads, leading, facts, estimate=nearest, n=board.questions),
        ORDER.claim(difference, About({"metric": board.metric}), facts, n=board.questions),
    ]


def plan_claims(entries: Sequence[ClaimPlanEntry]) -> Iterator[Claim]:
    """Yield the claims of a plan."""
    for entry in entries:
        subject = {"model": entry.model, "method": entry.method, "group": entry.group}
        about = About(subject, {"name": subject_name(subject), "named": len(entries) > 1})
        if labels_needed := entry.needed:
            first, half = labels_needed.calibrated.one_look, labels_needed.half.one_look
            outcome: Outcome = "undecided" if first is None else "depends"
            size = EstimateEntry(value=first, low=first, high=half, n=entry.items)
            facts, margin = {"power": labels_needed.power}, labels_needed.threshold
            yield NEEDED.claim(outcome, about, facts, estimate=size, margin=margin)
        if shows := entry.shows:
            reach, half_reach = shows.calibrated, shows.half
            outcome = "undecided" if reach is None else "depends"
            size = EstimateEntry(value=reach, low=reach, high=half_reach, n=shows.labels)
            yield SHOWS.claim(outcome, about, {"power": shows.power}, estimate=size)


def no_error_warning(rate: float) -> DataWarning:
    """Say which error rate the worst case takes where no answer is wrong.

    Examples
    --------
    >>> no_error_warning(0.06)["text"][:74]
    'No labelled answer is wrong. The worst case takes an error rate of 6 %, wh'
    """
    text = (
        f"No labelled answer is wrong. The worst case takes an error rate of {percent(rate)}, "
        "which is still possible."
    )
    return warning("no_error", text)


def labelled_warning(rows: int) -> DataWarning:
    """Say that nothing is left to label, so that the labels themselves answer.

    Examples
    --------
    >>> labelled_warning(1200)["text"]
    'All 1,200 rows have a label already. An audit says what they show; this plan is for more rows.'
    """
    whole = "The one row has" if rows == 1 else f"All {count(rows, 'row')} have"
    text = f"{whole} a label already. An audit says what they show; this plan is for more rows."
    return warning("all_labelled", text)


PRECISION = rule(
    "label.precision_reached", shown=lambda facts: "all" if facts["complete"] else "enough"
)
THRESHOLD = rule("label.claim", decides=lambda facts: "labels" if facts["more"] else "more")


def label_claims(
    entries: Sequence[LabelEntry], *, precision: float | None, threshold: float | None
) -> Iterator[Claim]:
    """Yield the claims of a pool that is being labelled, by its goals."""
    several = len(entries) > 1
    for entry in entries:
        if entry.stop is None:
            continue
        about = about_model(entry.model, entry.method, named=several, labels=entry.labelled)
        if precision is not None:
            reached = entry.stop.half_width <= precision and entry.stop.stop
            outcome: Outcome = "shown" if reached else "undecided"
            facts: Facts = {
                "more": entry.more_for_precision,
                "complete": entry.labelled == entry.n,
            }
            claimed = entry.claimed_accuracy
            yield PRECISION.claim(outcome, about, facts, estimate=claimed, margin=precision)
        if threshold is not None and (bounds := entry.stop.bounds):
            _, low, high = bounds.ends
            below, above = high < threshold - ROUNDING, low > threshold + ROUNDING
            outcome = "shown" if below or above else "undecided"
            facts = {"side": "below" if below else "above", "more": entry.more_labels}
            yield THRESHOLD.claim(outcome, about, facts, estimate=bounds, margin=threshold)
