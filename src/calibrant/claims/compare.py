"""What a comparison may say: of two models, of all of them together, of judges and missing rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import About, Claim, Facts, Outcome
from calibrant.claims.grades import depending, grades_sentence
from calibrant.claims.margins import COMPARISON_MARGIN, more_labels
from calibrant.claims.words import count, joined, labels_text, percent, points_range, rule
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
        **{name: pair[name] for name in ("n", "pairs", "winner", "depends_on", "rests_on")},
        "loser": pair[other],
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
        about_part(pair, named),
        facts,
        estimate=estimate,
        p_adjusted=pair["p_verdict_adjusted"] if told is BETTER else None,
        margin=margin,
    )


def about_part(entry: Mapping[str, Any], named: bool) -> About:
    """Return what a sentence is about: the pair or model, and its method among several."""
    names = ("a", "b", "model", "method", "group")
    subject = {name: entry[name] for name in names if name in entry}
    return About(subject, {**subject, "method": entry["method"] if named else None})


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


# At the whole level 'right more often' was false in 4.8 to 5.3 % of runs with equal models.
MORE_ACCURATE_SHARE = 0.8


def _interval(facts: Facts) -> str:
    return f"{percent(facts['level'])} interval {points_range(facts['low'], facts['high'])}"


def _more(facts: Facts) -> str:
    text = labels_text(facts.get("more"))
    return text[0].upper() + text[1:].replace("labels", "questions")


MORE_ACCURATE = rule(
    "compare.more_accurate",
    undecided=lambda facts: "same" if facts["same_answers"] else "open",
    depends=grades_sentence,
    place=place,
    interval=_interval,
    more=_more,
)


def _counted(facts: Facts) -> str:
    """Say how many pairs differ in accuracy alone, and how many orders turn round."""
    told = []
    if facts["accurate"]:
        told.append(f"in {facts['accurate']:,} one is only more accurate")
    if facts["reversals"]:
        told.append(f"in {facts['reversals']:,} the one that looks better is worse")
    text = f"Of {count(facts['pairs'], 'pair')}, {' and '.join(told)}." if told else ""
    if 2 * facts["worse_than_constant"] > facts["models"]:
        text += " Most of these say less than one constant confidence would."
    return text


LEADS = rule(
    "compare.leads",
    undecided=lambda facts: "none" if len(facts["first"]) == facts["placed"] else "shared",
    place=place,
    counted=_counted,
)
MISSING = rule("compare.missing_related", place=place)
JUDGES = rule("compare.judges_better", place=place, interval=_interval, more=_more)


def comparison_claims(
    pairs: Sequence[Mapping[str, Any]],
    sentences: Sequence[Claim],
    leagues: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, Any]],
    *,
    level: float = 0.95,
) -> list[Claim]:
    """Return the claims of a comparison, the data first, then the league, then the pairs.

    `sentences` are the claims about the calibration of each pair.
    """
    named = len({pair["method"] for pair in pairs}) > 1
    claims = [claim for row in missing for claim in _missing_claims(row, named)]
    claims += [claim for league in leagues for claim in _league_claims(league, named)]
    claims += sentences
    claims += [claim for pair in pairs for claim in _judge_claims(pair, named, level)]
    return [*claims, *(claim for pair in pairs for claim in _accuracy_claims(pair, named, level))]


def _judge_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    """Yield what the candidate-aligned view shows: it explains the verdict, and decides nothing."""
    judges = pair.get("judges")
    if judges is None or judges["p_adjusted"] is None:
        return
    gap, first = judges["gap"], judges["gap"]["value"] < 0
    estimate = sized(gap, first=judges["shown"] and first)
    yield JUDGES.claim(
        "shown" if judges["shown"] else "undecided",
        about_part(pair, named),
        {
            "level": level,
            "more": more_labels(gap, 0.0),
            "winner": pair["a"] if first else pair["b"],
        },
        estimate=estimate,
        p_adjusted=judges["p_adjusted"],
    )


def _accuracy_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    gap, p_adjusted = pair["accuracy_gap"], pair["p_accuracy_adjusted"]
    if p_adjusted is None:
        return
    shown = p_adjusted <= MORE_ACCURATE_SHARE * (1 - level)
    first = gap["value"] > 0
    estimate = dict(gap) if first or not shown else sized(gap, first=True)
    winner, loser = (pair["a"], pair["b"]) if first else (pair["b"], pair["a"])
    facts = {"winner": winner, "loser": loser, "same_answers": pair["retention"] == 1}
    facts |= {"more": more_labels(gap, 0.0), "level": level}
    outcome: Outcome = "shown" if shown else "undecided"
    about = about_part(pair, named)
    claim = MORE_ACCURATE.claim(outcome, about, facts, estimate=estimate, p_adjusted=p_adjusted)
    grading = pair.get("grading")
    if shown and grading and grading["accuracy"]["low"] <= 0 <= grading["accuracy"]["high"]:
        claim = depending(MORE_ACCURATE, claim, grading, "accuracy")
    yield claim


def _league_claims(league: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    entries, verdicts = league["entries"], league["verdicts"]
    if len(entries) < 3:
        return
    first = [row["model"] for row in entries if row["tier"] == 1]
    placed = sum(row["tier"] is not None for row in entries)
    if not first:
        return
    facts = {
        "winner": first[0],
        "first": first,
        "models": len(entries),
        "placed": placed,
        # A model without a place may still be better calibrated than one that leads.
        "among": f"{len(entries)} models"
        if placed == len(entries)
        else f"the {placed} of {len(entries)} models with a place",
        "pairs": sum(verdicts.values()),
        "accurate": verdicts["only more accurate"],
        "reversals": verdicts["reversal"],
        "worse_than_constant": league["worse_than_constant"],
    }
    outcome: Outcome = "shown" if league["winner"] else "undecided"
    about = about_part(league, named)
    subject = {**about.subject, "models": first}
    yield LEADS.claim(outcome, About(subject, about.facts), facts, n=entries[0]["n"])


def _missing_claims(row: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    if not row["related"]:
        return
    here, there = row["others_right_here"], row["others_right_missing"]
    facts = {
        "missing": row["missing"],
        "here": here,
        "there": there,
        "word": "harder" if there < here else "easier",
    }
    yield MISSING.claim(
        "shown",
        about_part(row, named),
        facts,
        estimate={"value": there - here, "n": row["missing"]},
        p_adjusted=row["p_adjusted"],
    )
