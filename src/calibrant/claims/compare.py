"""What a comparison may say of two models: better calibrated, only more accurate, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, declare
from calibrant.claims.margins import COMPARISON_MARGIN
from calibrant.claims.words import count, joined, percent, point_number, points, points_range
from calibrant.core.method_words import method_name

LEAST_QUESTIONS = 20
"""Questions that two models must share. With 10, intervals of equal models exclude 0 in up to 15 %
of data sets, and some have no width at all; with 20 in 6 to 11 %."""

WHERE = {
    "raw": "on their own answers",
    "os_weakest": "at the weaker accuracy",
    "os_strongest": "at the stronger accuracy",
    "sda": "with right and wrong in equal shares",
}
"""How sentences call the footings."""


def place(facts: Facts) -> str:
    """Return method and group for the start of a sentence, where they say more."""
    names = [method_name(str(facts["method"]))] if facts.get("method") else []
    names += [f"{name} {value}" for name, value in (facts.get("group") or {}).items()]
    return f"{', '.join(names)}: " if names else ""


def _certain(facts: Facts) -> str:
    """Say what part of a gap comes from the statements, at least."""
    if not facts["at_least"]:
        return ""
    if facts["at_least"] >= facts["value"]:
        return f" At equal accuracy the difference is no smaller ({points(facts['at_least'])})."
    return (
        f" At least {points(facts['at_least'])} come from how it states its confidence; the rest "
        "is accuracy or cannot be separated."
    )


def _better(facts: Facts) -> str:
    return (
        f"{place(facts)}{facts['winner']} is better calibrated than {facts['loser']}, on its own "
        f"answers ({point_number(facts['error'])} against {points(facts['other_error'])} of error) "
        f"and at equal accuracy, however that is made ({count(facts['n'], 'question')})."
        f"{_certain(facts)}"
    )


def _undecided(facts: Facts) -> str:
    start = f"{place(facts)}Undecided whether {facts['a']} or {facts['b']} is better calibrated"
    if facts["n"] < LEAST_QUESTIONS:
        return (
            f"{start}: they share {count(facts['n'], 'question')}, an interval needs "
            f"{LEAST_QUESTIONS}."
        )
    if facts["shown_if_alone"]:
        return f"{start}: among {facts['pairs']:,} pairs chance alone could show as much."
    if not facts["not_shown_on"]:
        return f"{start} ({count(facts['n'], 'question')}): the footings do not agree."
    where = joined([WHERE[name] for name in facts["not_shown_on"]], most=4)
    return f"{start} ({count(facts['n'], 'question')}): no difference is shown {where}."


BETTER = declare(
    ClaimRule(
        "compare.better_calibrated",
        "Is one model better calibrated than the other?",
        "E|c - r(c)| is smaller on its own answers, after the odds shift to either accuracy with "
        "near-certain statements at .995 or at their word, and with right and wrong in equal "
        "shares; no root mean squared error is larger by half the margin",
        "on all six footings the 98 % paired bootstrap interval, moved by its largest bias, "
        "excludes 0 on one side",
        "the largest of six p-values; Holm at 2 % over all pairs of whole methods, and apart from "
        "them over pairs of groups",
        {"shown": _better, "undecided": _undecided},
        margin=COMPARISON_MARGIN,
    )
)


def _only_accurate(facts: Facts) -> str:
    start = (
        f"{place(facts)}{facts['winner']} is only more accurate than {facts['loser']} "
        f"(by {points(facts['lead'])}, {count(facts['graded'], 'question')})"
    )
    within = points(facts["margin"])
    if facts["rests_on"] == "laws":
        return f"{start}. Right or wrong, both state their confidence alike, within {within}."
    text = f"{start}; both are equally well calibrated within {within}."
    if facts["mixed"] > facts["margin"]:
        text += f" With right and wrong in equal shares the difference is {points(facts['mixed'])}."
    return text


ONLY_MORE_ACCURATE = declare(
    ClaimRule(
        "compare.only_more_accurate",
        "Or is it only more accurate?",
        "E[z] is larger, and either the errors of both lie within the margin on five footings, or "
        "the laws of confidence given right and given wrong do",
        "paired difference of grades beyond 3 standard errors; each model's own 90 % interval of "
        "the error, or the 95 % bootstrap quantile of the integrated distance of the laws",
        "Holm over all pairs for accuracy; the rest of each pair by itself",
        {"shown": _only_accurate},
        margin=COMPARISON_MARGIN,
    )
)

EQUIVALENT = declare(
    ClaimRule(
        "compare.equivalent",
        "Are two models equally well calibrated?",
        "the errors of both differ by less than the margin as answered and after the odds shift",
        "each model's own 90 % interval of the error on five footings",
        "each pair by itself",
        {
            "equivalent": lambda facts: (
                f"{place(facts)}{facts['a']} and {facts['b']} are equally well calibrated within "
                f"{points(facts['margin'])}: the error of {facts['a']} is "
                f"{points(abs(facts['value']))} {'smaller' if facts['value'] < 0 else 'larger'} "
                f"({percent(facts['level'])} interval of the difference "
                f"{points_range(facts['low'], facts['high'])})."
            )
        },
        margin=COMPARISON_MARGIN,
    )
)

REVERSAL = declare(
    ClaimRule(
        "compare.reversal",
        "Does one look better, and is worse at equal accuracy?",
        "the error is smaller as answered by half the margin, and larger on every footing of equal "
        "accuracy, by half the margin on average",
        "98 % intervals as for 'better', the means beyond half the margin",
        "each pair by itself",
        {
            "shown": lambda facts: (
                f"{place(facts)}{facts['winner']} looks better than {facts['loser']} on its own "
                f"answers (by {points(facts['looks'])}), and is worse at equal accuracy (by "
                f"{point_number(facts['least'])} to {points(facts['most'])})."
            )
        },
        margin=COMPARISON_MARGIN,
    )
)


def _depends(facts: Facts) -> str:
    start, on = place(facts), facts["depends_on"]
    if on == "size of errors":
        return (
            f"{start}{facts['winner']} is closer on average ({point_number(facts['error'])} "
            f"against {points(facts['other_error'])}); {facts['loser']} has the smaller large "
            "errors."
        )
    if on == "near-certain":
        return (
            f"{start}Whether {facts['a']} or {facts['b']} is better calibrated depends on whether "
            "99.5 % and 99.9999 % count as the same statement."
        )
    if on == "missing":
        return (
            f"{start}Whether {facts['a']} or {facts['b']} is better calibrated depends on answers "
            f"without a stated confidence ({percent(facts['unstated'])}). Without them the verdict "
            f"would be: {facts['rests_on']}."
        )
    if on == "grades":
        grading = facts["grading"]
        checked = count(grading["checked"], "grade") if grading["checked"] else "none"
        return (
            f"{start}Whether {facts['a']} or {facts['b']} is better calibrated depends on the "
            f"grades: {percent(grading['doubtful'])} are doubtful, {checked} checked. As graded "
            f"the verdict would be: {facts['rests_on']}."
        )
    return start + _footing(facts)


def _footing(facts: Facts) -> str:
    """Name the two footings that differ most, and their gaps."""
    best, worst = facts["best"], facts["worst"]
    if facts["statements_alone"]:
        return (
            f"{best['name']} is better than {worst['name']} on its own answers and with odds moved "
            "along, but not with right and wrong in equal shares and statements as they are: its "
            "accuracy may account for it."
        )
    if best["name"] == worst["name"]:
        return (
            f"{best['name']} is better calibrated than {facts['other']} {best['where']} (by "
            f"{points(best['size'])}), but hardly {worst['where']} (by {points(worst['size'])})."
        )
    return (
        f"Which is better calibrated depends on the footing: {best['name']} {best['where']} (by "
        f"{points(best['size'])}), {worst['name']} {worst['where']} (by {points(worst['size'])})."
    )


DEPENDS = declare(
    ClaimRule(
        "compare.depends",
        "Does the answer depend on how one looks?",
        "one footing shows what another denies; or absolute and squared errors prefer different "
        "models; or near-certain statements, answers without one, or errors of the grader decide",
        "98 % intervals: opposite sides beyond half the margin, or one beyond the margin and one "
        "below half of it; z of squared errors beyond 2.33 and their roots by half the margin; the "
        "5 % quantile of the difference between the two clips beyond half the margin",
        "each pair by itself",
        {"depends": _depends},
        margin=COMPARISON_MARGIN,
    )
)

_RULES = {
    "better": (BETTER, "shown"),
    "only more accurate": (ONLY_MORE_ACCURATE, "shown"),
    "reversal": (REVERSAL, "shown"),
    "equivalent": (EQUIVALENT, "equivalent"),
    "depends": (DEPENDS, "depends"),
    "undecided": (BETTER, "undecided"),
}


def pair_claim(pair: Mapping[str, Any], *, margin: float, named: bool) -> Claim:
    """Return the claim about the calibration of one pair, from its entry as plain data.

    Parameters
    ----------
    pair
        Entry of a pair with its verdict.
    margin
        Differences below it do not matter.
    named
        Whether sentences say the method, because there are several.
    """
    rule, outcome = _RULES[pair["verdict"]]
    evidence = pair["evidence"]
    gap = evidence["footings"]["raw"]["gap"]
    first = pair["winner"] == pair["a"]
    estimate = sized(gap, first=True) if pair["winner"] and first else dict(gap)
    if pair["verdict"] == "only more accurate":
        estimate = sized(pair["accuracy_gap"], first=not first)
    own, other = ("a", "b") if first else ("b", "a")
    facts: dict[str, Any] = {
        **subject_of(pair, named),
        **estimate,
        **{name: pair[name] for name in ("n", "pairs", "winner", "depends_on", "rests_on")},
        "loser": pair[other],
        "margin": margin,
        "level": evidence["level"],
        "error": pair["errors"][own],
        "other_error": pair["errors"][other],
        "at_least": evidence["at_least"],
        "lead": abs(pair["accuracy_gap"]["value"]),
        "graded": pair["accuracy_gap"]["n"],
        "mixed": abs(evidence["footings"]["sda"]["gap"]["value"]),
        "unstated": evidence["unstated"],
        "grading": pair.get("grading"),
        "shown_if_alone": pair["shown_if_alone"],
        "not_shown_on": [name for name in pair["not_shown_on"] if name in WHERE],
    }
    if pair["verdict"] == "reversal":
        facts |= _turned(evidence["footings"])
    if pair["depends_on"] == "footing":
        facts |= _opposites(pair, margin)
    return rule.claim(
        outcome,  # type: ignore[arg-type]
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
        estimate=estimate,
        p_adjusted=pair["p_verdict_adjusted"] if rule is BETTER else None,
        margin=margin,
    )


def subject_of(entry: Mapping[str, Any], named: bool) -> dict[str, Any]:
    """Return what a sentence is about: the pair, its group, and its method among several."""
    shown = {name: entry[name] for name in ("a", "b") if name in entry}
    return {**shown, "method": entry["method"] if named else None, "group": entry["group"]}


def sized(gap: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
    """Return the size of a gap in favour of the winner."""
    if not first:
        return dict(gap)
    turned = {"value": gap["value"], "low": gap["high"], "high": gap["low"]}
    return {
        **gap,
        **{name: None if value is None else -value for name, value in turned.items()},
    }


def _turned(footings: Mapping[str, Any]) -> dict[str, float]:
    """Return by how much the order is one way as answered, and the other at equal accuracy."""
    equal = [abs(footings[name]["gap"]["value"]) for name in ("os_weakest", "os_strongest", "sda")]
    return {
        "looks": abs(footings["raw"]["gap"]["value"]),
        "least": min(equal),
        "most": max(equal),
    }


def _opposites(pair: Mapping[str, Any], margin: float) -> dict[str, Any]:
    """Return the footing with the clearest gap, and the one that denies it most."""
    gaps = {name: pair["evidence"]["footings"][name]["gap"] for name in WHERE}
    values = {name: gap["value"] for name, gap in gaps.items()}
    best = max(values, key=lambda name: abs(values[name]))
    side = 1.0 if values[best] > 0 else -1.0
    worst = min(values, key=lambda name: side * values[name])
    reach = {name: side * gap["high" if side > 0 else "low"] for name, gap in gaps.items()}
    least = {name: side * gap["low" if side > 0 else "high"] for name, gap in gaps.items()}
    model = {1.0: pair["b"], -1.0: pair["a"]}
    denied = worst == "sda" and reach["sda"] < margin / 2
    one = {"name": model[side], "where": WHERE[best], "size": abs(values[best])}
    turned = side if side * values[worst] > 0 else -side
    two = {"name": model[turned], "where": WHERE[worst], "size": abs(values[worst])}
    alone = denied and all(least[name] > 0 for name in WHERE if name != "sda")
    if alone:
        two["name"] = model[-side]
    return {"best": one, "worst": two, "other": model[-side], "statements_alone": alone}
