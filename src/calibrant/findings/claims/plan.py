"""What a plan, and labelling, may say: labels that a claim needs, and what labels can claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calibrant.findings.claims.claim import (
    About,
    Claim,
    Facts,
    Outcome,
    about_model,
    count,
    percent,
    points,
    points_range,
    rule,
    subject_name,
)
from calibrant.findings.claims.data import warning
from calibrant.findings.claims.margins import ROUNDING
from calibrant.findings.documents.entries import DataWarning, EstimateEntry
from calibrant.findings.documents.fields import LeaderboardFields
from calibrant.findings.documents.labels import LabelEntry
from calibrant.findings.documents.plans import ClaimPlanEntry


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


def plan_claims(entries: Sequence[ClaimPlanEntry]) -> list[Claim]:
    """Return the claims of a plan."""
    several = len(entries) > 1
    return [claim for entry in entries for claim in _entry_claims(entry, named=several)]


def _entry_claims(entry: ClaimPlanEntry, *, named: bool) -> Iterable[Claim]:
    subject = {"model": entry.model, "method": entry.method, "group": entry.group}
    about = About(subject, {"name": subject_name(subject), "named": named})
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


PRECISION = rule("label.precision_reached")
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
            more, claimed = {"more": entry.more_for_precision}, entry.claimed_accuracy
            yield PRECISION.claim(outcome, about, more, estimate=claimed, margin=precision)
        if threshold is not None and (bounds := entry.stop.bounds):
            _, low, high = bounds.ends
            below, above = high < threshold - ROUNDING, low > threshold + ROUNDING
            outcome = "shown" if below or above else "undecided"
            facts = {"side": "below" if below else "above", "more": entry.more_labels}
            yield THRESHOLD.claim(outcome, about, facts, estimate=bounds, margin=threshold)
