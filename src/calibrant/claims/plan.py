"""What a plan may say: labels that a claim needs, what labels can claim, who leads by how far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, declare
from calibrant.claims.words import count, joined, percent, points, points_range, subject_name


def _started(facts: Mapping[str, Any], text: str) -> str:
    return f"{facts['name']}: {text}" if facts["named"] else text[0].upper() + text[1:]


def _rounded(labels: int) -> str:
    # Coarser rounding would make it look like another number of the table beside it.
    unit = 10 if labels < 10_000 else 100
    return f"{-(-labels // unit) * unit:,}"


def _needed(facts: Mapping[str, Any]) -> str:
    first = (
        f"about {_rounded(facts['calibrated'])} labels show a calibration error below "
        f"{points(facts['margin'])} with a chance of {percent(facts['power'])}, if the model is "
        "calibrated."
    )
    if facts["half"] is None:
        return f"{first} If its error is {points(facts['margin'] / 2)}, all of the pool is needed."
    half = f"about {_rounded(facts['half'])} if its error is {points(facts['margin'] / 2)}."
    return f"{first} It takes {half}"


NEEDED = declare(
    ClaimRule(
        "plan.labels_needed",
        "How many labels show that the calibration error is below the threshold?",
        "P(upper bound < t) >= power at this many labels",
        "1,000 simulated pools with these confidences, by the bound that labelling itself uses",
        "none: a forecast, no test",
        {
            "depends": lambda facts: _started(facts, _needed(facts)),
            "undecided": lambda facts: _started(
                facts,
                f"no number of labels short of all {count(facts['items'], 'answer')} shows a "
                f"calibration error below {points(facts['margin'])}. Label all of them, or take a "
                "larger pool.",
            ),
        },
    )
)

SHOWS = declare(
    ClaimRule(
        "plan.labels_show",
        "How small a calibration error can these labels show?",
        "P(upper bound < t) >= power at the labels given",
        "1,000 simulated pools with these confidences, by the bound that labelling itself uses",
        "none: a forecast, no test",
        {
            "depends": lambda facts: _started(
                facts,
                f"{count(facts['labels'], 'label')} can show a calibration error below "
                f"{points(facts['margin'])} with a chance of {percent(facts['power'])}, if the "
                f"model is calibrated{facts['otherwise']}.",
            ),
            "undecided": lambda facts: _started(
                facts,
                f"{count(facts['labels'], 'label')} show no bound on the calibration error. Plan "
                "for more labels.",
            ),
        },
    )
)


_METRICS = {"accuracy": "accuracy", "brier": "Brier score", "ece": "calibration error"}


def _ahead(facts: Mapping[str, Any]) -> str:
    others = facts["models"] - 1
    rest = f", ahead of all {others} others" if others > 1 else ""
    return (
        f"{facts['model']} leads by {facts['metric']}{rest}: {facts['second']} is "
        f"{points(abs(facts['value']))} behind ({points_range(facts['near'], facts['far'])}; "
        f"{count(facts['n'], 'question')})."
    )


LEADER = declare(
    ClaimRule(
        "plan.leader",
        "Which model leads?",
        "the best model's metric is better than that of every other, on questions like these",
        "difference beyond the band of all pairs at once (studentised bootstrap maximum over "
        "questions); for the calibration error: interval from those of the two models (Newcombe)",
        "one band for all pairs; Bonferroni over pairs for the calibration error",
        {
            "shown": _ahead,
            "undecided": lambda facts: (
                f"Undecided who leads by {facts['metric']}: {joined(facts['first'])} cannot be "
                f"told apart with {count(facts['n'], 'question')}. More questions would decide."
            ),
        },
    )
)

ORDER = declare(
    ClaimRule(
        "plan.order",
        "Which models are told apart?",
        "in every pair told apart the model ranked higher is better, on questions like these",
        "as for who leads",
        "one band for all pairs; Bonferroni over pairs for the calibration error",
        {
            "shown": lambda facts: (
                f"{_pairs(facts)} told apart by {facts['metric']}{_ties(facts)}."
            ),
            "undecided": lambda facts: (
                f"No two of the {facts['models']} models can be told apart by {facts['metric']} "
                f"with {count(facts['n'], 'question')}. More questions would."
            ),
        },
    )
)


def _pairs(facts: Mapping[str, Any]) -> str:
    if facts["pairs"] == 1:
        return "The two models are"
    if facts["apart"] == facts["pairs"]:
        return f"All {facts['pairs']:,} pairs of models are"
    return f"{facts['apart']:,} of {facts['pairs']:,} pairs of models are"


def _ties(facts: Mapping[str, Any]) -> str:
    left = facts["pairs"] - facts["apart"]
    return f"; {left:,} {'is a tie' if left == 1 else 'are ties'}" if left else ""


def leaderboard_claims(board: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of a ``calibrant.leaderboard/1`` document, as plain data."""
    first, second = (entry["model"] for entry in board["results"][:2])
    pairs = board["pairs"]
    nearest = next(pair for pair in pairs if pair["a"] == first and pair["b"] == second)["gap"]
    ends = sorted(abs(nearest[end]) for end in ("low", "high"))
    facts = {
        "metric": _METRICS[board["metric"]],
        "models": len(board["results"]),
        "model": first,
        "second": second,
        "first": [entry["model"] for entry in board["results"] if entry["rank_low"] == 1],
        "n": board["questions"],
        "near": ends[0] if nearest["low"] * nearest["high"] > 0 else 0.0,
        "far": ends[1],
        "value": nearest["value"],
        "pairs": len(pairs),
        "apart": sum(not pair["tie"] for pair in pairs),
    }
    shared = {"metric": board["metric"]}
    leads = board["results"][0]["rank_high"] == 1
    return [
        LEADER.claim(
            "shown" if leads else "undecided",
            facts,
            subject={"model": first, **shared},
            estimate=nearest,
            n=board["questions"],
        ),
        ORDER.claim(
            "shown" if facts["apart"] else "undecided", facts, subject=shared, n=board["questions"]
        ),
    ]


def plan_claims(entries: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of a plan, from its entries as plain data."""
    named = len(entries) > 1
    return [claim for entry in entries for claim in _entry_claims(entry, named=named)]


def _entry_claims(entry: Mapping[str, Any], *, named: bool) -> Iterable[Claim]:
    subject = {name: entry[name] for name in ("model", "method", "group")}
    shared = {"name": subject_name(subject), "named": named, "items": entry["items"]}
    needed, shows = entry["needed"], entry["shows"]
    if needed is not None:
        first, half = needed["calibrated"]["one_look"], needed["half"]["one_look"]
        facts = {
            **shared,
            "calibrated": first,
            "half": half,
            "margin": needed["threshold"],
            "power": needed["power"],
        }
        yield NEEDED.claim(
            "undecided" if first is None else "depends",
            facts,
            subject=subject,
            estimate={"value": first, "low": first, "high": half, "n": entry["items"]},
            margin=needed["threshold"],
        )
    if shows is not None:
        reach, half = shows["calibrated"], shows["half"]
        otherwise = "" if half is None else f"; below {points(half)}, if its error is half of that"
        facts = {**shared, **shows, "margin": reach, "otherwise": otherwise}
        yield SHOWS.claim(
            "undecided" if reach is None else "depends",
            facts,
            subject=subject,
            estimate={"value": reach, "low": reach, "high": half, "n": shows["labels"]},
        )


def no_error_warning(rate: float) -> dict[str, Any]:
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
    return {"id": "data.no_error", "subject": {}, "text": text}


def labelled_warning(rows: int) -> dict[str, Any]:
    """Say that nothing is left to label, so that the labels themselves answer.

    Examples
    --------
    >>> labelled_warning(1200)["text"]
    'All 1,200 rows have a label already. An audit says what they show; this plan is for more rows.'
    """
    whole = "The one row has" if rows == 1 else f"All {count(rows, 'row')} have"
    text = f"{whole} a label already. An audit says what they show; this plan is for more rows."
    return {"id": "data.all_labelled", "subject": {}, "text": text}
