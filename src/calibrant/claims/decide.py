"""What `decide` may say: an error limit that is kept, and what a threshold saves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, declare
from calibrant.claims.grades import depending, grades_sentence
from calibrant.claims.words import count, joined, labels_text, percent, subject_name


def _where(facts: Facts) -> str:
    """Say which answers are given, in the words of the score in use."""
    if facts["score"] == "confidence":
        return f"with a confidence of at least {facts['threshold']:.3g}"
    return f"with a score of at least {facts['threshold']:.2f}"


def _limit(share: float) -> str:
    """Return a limit as it was asked for: one below 0.1 % has more digits."""
    return f"{100 * share:.2g} %" if share < 0.001 else percent(share)


def _kept(facts: Facts) -> str:
    if facts["threshold"] is None and facts["for"] != "each":
        limit = f"an error of at most {_limit(facts['limit'])}"
        return f"{_lead(facts)}Labels certify {limit}, but at these costs asking is always cheaper."
    name = f"{facts['name']} may" if facts["named"] else "May"
    where = "" if facts["for"] == "each" else f", {_where(facts)}"
    return (
        f"{name} answer {percent(facts['share'])} of the questions alone{where}. "
        f"At most {_limit(facts['limit'])} of those answers are wrong, {_scope(facts)}; such a "
        f"promise fails in at most {percent(facts['delta'])} of cases.{_not_per_group(facts)}"
        f"{_asked(facts)}"
    )


def _scope(facts: Facts) -> str:
    """Say what the promise is about."""
    if facts["for"] == "traffic":
        return f"for the mix of {count(facts['traffic_rows'], 'row')} of traffic"
    like = f"for questions like the {facts['kept']:,} labelled ones"
    return f"in every group of {facts['group']}, {like}" if facts["for"] == "each" else like


def _not_per_group(facts: Facts) -> str:
    return "" if facts["for"] == "each" else " Nothing is promised per group."


def _asked(facts: Facts) -> str:
    asked = facts["asked"]
    if not asked:
        return ""
    share = percent(sum(group["share"] for group in asked))
    few = all(group["n"] for group in asked)
    why = "with under 15 labels" if few else "without enough labels"
    return f" Groups {why} are asked: {joined([g['group'] for g in asked])} ({share})."


def _nothing(facts: Facts) -> str:
    start = (
        f"No threshold is certified for an error of at most {_limit(facts['limit'])}"
        f"{' for ' + facts['name'] if facts['named'] else ''}."
    )
    if facts["n"] < facts["fewest"]:
        least = count(facts["fewest"], "label")
        return f"{start} Even without an error that takes {least}; there are {facts['n']:,}."
    if facts["needed"] is not None:
        more = max(facts["needed"] - facts["n"], 0)
        return f"{start} {labels_text(more).capitalize()} would likely certify one."
    if facts["lowest"] is None:
        return f"{start} {count(facts['n'], 'label')} are too few; more labels would decide."
    if facts["for"] == "each":
        return f"{start} No group of {facts['group']} has enough labels; label more of each."
    if facts["lowest"] > facts["limit"]:
        return (
            f"{start} The lowest error seen is {percent(facts['lowest'])}; allow a higher one, or "
            "give more columns."
        )
    few = f"{count(facts['n'], 'label')} are too few for so low a limit"
    return f"{start} {few}: label more, or allow a higher one."


ERROR_LIMIT = declare(
    ClaimRule(
        "decide.error_limit",
        "Is the error among the answers given below the limit?",
        "P(wrong | score >= t) <= alpha",
        "thresholds are loosened in a fixed order, each tested by the exact binomial law, up to "
        "the first failure; once strictest first with all labels, once from where a pilot starts",
        "none within an order, which is fixed beforehand; the two share delta as 70 to 30",
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
                f"({percent(facts['share'])} of the questions). That costs "
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
        "kept": entry["n"],
        **entry["promise"],
    }
    made = []
    if entry["max_error"] is not None:
        made.append(_limit_claim(entry, facts, subject))
    if entry["cost"] is not None:
        made.append(_cost_claim(entry, facts, subject))
    return made


def _limit_claim(entry: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    shown = entry["certified"]
    errors = [point["error"]["value"] for point in entry["curve"] if point["error"]["n"] >= 40]
    claim = ERROR_LIMIT.claim(
        "shown" if shown else "undecided",
        {
            **facts,
            "share": entry["answered"]["value"],
            "limit": entry["max_error"],
            "delta": entry["delta"],
            "needed": entry["labels_needed"],
            "lowest": min(errors, default=None),
            "fewest": math.ceil(math.log(entry["delta"]) / math.log1p(-entry["max_error"]) - 1e-9),
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
