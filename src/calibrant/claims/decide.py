"""What `decide` may say: an error limit that is kept, and what a threshold saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, declare
from calibrant.claims.grades import depending, grades_sentence
from calibrant.claims.words import count, labels_text, percent, subject_name


def _where(facts: Facts) -> str:
    """Say which answers are given, in the words of the score in use."""
    if facts["score"] == "confidence":
        return f"with a confidence of at least {facts['threshold']:.3g}"
    return f"with a score of at least {facts['threshold']:.2f}"


def _limit(share: float) -> str:
    """Return a limit as it was asked for: one below 0.1 % has more digits."""
    return f"{100 * share:.2g} %" if share < 0.001 else percent(share)


def _kept(facts: Facts) -> str:
    name = f"{facts['name']} may" if facts["named"] else "May"
    return (
        f"{name} answer {percent(facts['share'])} of the questions alone, {_where(facts)} (on "
        f"{count(facts['kept'], 'row')} kept for it). "
        f"At most {_limit(facts['limit'])} of those answers are wrong; such a promise fails in "
        f"at most {percent(facts['delta'])} of cases."
    )


def _nothing(facts: Facts) -> str:
    start = (
        f"No threshold is certified for an error of at most {_limit(facts['limit'])}"
        f"{' for ' + facts['name'] if facts['named'] else ''}."
    )
    if facts["needed"] is None and facts["lowest"] is None:
        return f"{start} {count(facts['n'], 'label')} are too few; more labels would decide."
    if facts["needed"] is None and facts["lowest"] <= facts["limit"]:
        few = f"{count(facts['n'], 'label')} are too few for so low a limit"
        return f"{start} {few}: label more, or allow a higher one."
    if facts["needed"] is None:
        return (
            f"{start} The lowest error seen is {percent(facts['lowest'])}; allow a higher one, or "
            "give more columns."
        )
    more = max(facts["needed"] - facts["n"], 0)
    return f"{start} {labels_text(more).capitalize()} would likely certify one."


ERROR_LIMIT = declare(
    ClaimRule(
        "decide.error_limit",
        "Is the error among the answers given below the limit?",
        "P(wrong | score >= t) <= alpha",
        "thresholds are loosened from a start that other labels chose, each tested by the exact "
        "binomial law at level delta, up to the first failure",
        "none needed: the order of the tests is fixed beforehand",
        {"shown": _kept, "undecided": _nothing, "depends": grades_sentence},
    )
)


def _amount(value: float) -> str:
    return f"{value:.3g}"


def _lead(facts: Facts) -> str:
    return f"{facts['name']}: " if facts["named"] else ""


def _not_cheaper(facts: Facts) -> str:
    always = "always answering" if facts["answering"] else "always asking"
    if facts["low"] == facts["high"] == 0:
        # The threshold answers everything or nothing: there is no saving to estimate.
        cost = _amount(facts["cost"])
        return (
            f"{_lead(facts)}No threshold was found that is cheaper than {always} ({cost} per "
            "question)."
        )
    return (
        f"{_lead(facts)}Undecided whether this threshold is cheaper than {always}: it saves "
        f"{_amount(facts['low'])} to {_amount(facts['high'])} per question. "
        f"{labels_text(facts['more']).capitalize()} would decide."
    )


CHEAPER = declare(
    ClaimRule(
        "decide.cheaper",
        "Is the threshold cheaper than always answering and always asking?",
        "E[cost of the policy] < min(E[cost of answering], cost of asking)",
        "mean saving on rows that did not choose the threshold, one-sided at 2.5 %",
        "none: one claim per model",
        {
            "shown": lambda facts: (
                f"{_lead(facts)}Cheapest is to answer alone {_where(facts)} "
                f"({percent(facts['share'])} of the questions, on {count(facts['kept'], 'row')} "
                f"kept for it). That costs "
                f"{_amount(facts['cost'])} per question, {_amount(facts['value'])} less than "
                f"the cheaper of always answering and always asking "
                f"(95 % interval {_amount(facts['low'])} to {_amount(facts['high'])})."
            ),
            "undecided": _not_cheaper,
        },
    )
)


def decide_claims(entry: Mapping[str, Any], *, named: bool) -> list[Claim]:
    """Return the claims of one model.

    Parameters
    ----------
    entry
        Entry of a decide document, as plain data.
    named
        Whether the sentences name the model: there are several.
    """
    subject = {"model": entry.get("model"), "method": entry.get("method")}
    facts = {
        "name": subject_name(subject),
        "named": named,
        "score": entry["score"],
        "threshold": entry["threshold"],
        "n": entry["n"],
        # A part of the labels chose where to start; the numbers are those of the others.
        "kept": entry["answered"]["n"],
    }
    made = []
    if entry["max_error"] is not None:
        made.append(_limit_claim(entry, facts, subject))
    if entry["cost"] is not None:
        made.append(_cost_claim(entry, facts, subject))
    return made


def _limit_claim(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    shown = entry["certified"]
    errors = [point["error"]["value"] for point in entry["curve"] if point["error"]["n"] >= 25]
    claim = ERROR_LIMIT.claim(
        "shown" if shown else "undecided",
        {
            **facts,
            "share": entry["answered"]["value"],
            "limit": entry["max_error"],
            "delta": entry["delta"],
            "needed": entry["labels_needed"],
            "lowest": min(errors, default=None),
        },
        subject=subject,
        estimate=entry["error"] if shown else None,
        margin=entry["max_error"],
        n=entry["answered"]["n"],
    )
    grading = entry.get("grading")
    if shown and grading and grading["error"]["high"] > entry["max_error"]:
        return depending(ERROR_LIMIT, claim, grading, "error")
    return claim


def _cost_claim(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    saved = entry["cost"]["saved"]
    shown = saved["low"] > 0
    half = (saved["high"] - saved["low"]) / 2
    size = abs(saved["value"])
    more = entry["n"] * ((half / size) ** 2 - 1) if size > 0 else None
    return CHEAPER.claim(
        "shown" if shown else "undecided",
        {
            **facts,
            **saved,
            "share": entry["answered"]["value"],
            "cost": entry["cost"]["policy"]["value"],
            "answering": entry["cost"]["always_answer"]["value"] < entry["cost"]["always_ask"],
            "more": more,
        },
        subject=subject,
        estimate=saved,
        n=saved["n"],
    )
