"""What a comparison may say of two models: better calibrated, only more accurate, or neither."""

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, Facts
from calibrant.claims.margins import COMPARISON_MARGIN
from calibrant.claims.rule import rule
from calibrant.claims.words import count, joined
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
    if not facts["at_least"]:
        return "no"
    return "all" if facts["at_least"] >= facts["value"] else "some"


def _undecided(facts: Facts) -> str:
    if facts["n"] < LEAST_QUESTIONS:
        return "few"
    if facts["shown_if_alone"]:
        return "chance"
    return "where" if facts["not_shown_on"] else "disagree"


def _not_shown(facts: Facts) -> str:
    return joined([WHERE[name] for name in facts["not_shown_on"]], most=4)


BETTER = rule(
    "compare.better_calibrated",
    margin=COMPARISON_MARGIN,
    undecided=_undecided,
    place=place,
    certain=_certain,
    not_shown=_not_shown,
)


def _only_accurate(facts: Facts) -> str:
    if facts["rests_on"] == "laws":
        return "laws"
    return "mixed" if facts["mixed"] > facts["margin"] else "errors"


ONLY_MORE_ACCURATE = rule(
    "compare.only_more_accurate", margin=COMPARISON_MARGIN, shown=_only_accurate, place=place
)
EQUIVALENT = rule("compare.equivalent", margin=COMPARISON_MARGIN, place=place)
REVERSAL = rule("compare.reversal", margin=COMPARISON_MARGIN, place=place)


def _depends(facts: Facts) -> str:
    if facts["depends_on"] != "footing":
        return str(facts["depends_on"])
    if facts["statements_alone"]:
        return "statements alone"
    return "hardly" if facts["best"]["name"] == facts["worst"]["name"] else "footing"


def _checked(facts: Facts) -> str:
    checked = facts["grading"]["checked"]
    return count(checked, "grade") if checked else "none"


DEPENDS = rule(
    "compare.depends", margin=COMPARISON_MARGIN, depends=_depends, place=place, checked=_checked
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
    told, outcome = _RULES[pair["verdict"]]
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
    return told.claim(
        outcome,  # type: ignore[arg-type]
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
        estimate=estimate,
        p_adjusted=pair["p_verdict_adjusted"] if told is BETTER else None,
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
