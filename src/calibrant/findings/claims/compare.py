"""What a comparison may say: of two models, of all of them together, of judges and missing rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import convert

from calibrant.core.arrays import EstimateEntry
from calibrant.core.names import method_name
from calibrant.findings.claims import (
    About,
    Claim,
    ClaimRule,
    Facts,
    Outcome,
    count,
    joined,
    labels_text,
    rule,
)
from calibrant.findings.claims.grades import depending, grades_sentence
from calibrant.findings.claims.margins import COMPARISON_MARGIN, more_labels

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
    if facts["rests_on"]:
        return "alike"
    at_least = facts["evidence"]["at_least"]
    if not at_least:
        return "no"
    return "all" if at_least >= facts["value"] else "some"


def _undecided(facts: Facts) -> str:
    if facts["n"] < LEAST_QUESTIONS:
        return "few"
    if facts["shown_if_alone"]:
        return "chance"
    return "where" if facts["not_shown_on"] else "disagree"


BETTER = rule(
    "compare.better_calibrated",
    margin=COMPARISON_MARGIN,
    undecided=_undecided,
    place=place,
    certain=_certain,
    not_shown=lambda facts: joined([WHERE[name] for name in facts["not_shown_on"]], most=4),
)


def _alike(facts: Facts) -> str:
    if facts["rests_on"] == "laws":
        return "laws"
    return "mixed" if facts["mixed"] > facts["margin"] else "errors"


ONLY_MORE_ACCURATE = rule(
    "compare.only_more_accurate", margin=COMPARISON_MARGIN, shown=_alike, place=place
)
MORE_ACCURATE_ALIKE = rule(
    "compare.more_accurate_alike", margin=COMPARISON_MARGIN, shown=_alike, place=place
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

_RULES: dict[str, tuple[ClaimRule, Outcome]] = {
    "better": (BETTER, "shown"),
    "only more accurate": (ONLY_MORE_ACCURATE, "shown"),
    "more accurate, alike": (MORE_ACCURATE_ALIKE, "shown"),
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
    gaps = {name: footing["gap"] for name, footing in pair["evidence"]["footings"].items()}
    first = pair["winner"] == pair["a"]
    estimate = _estimate(gaps["raw"], turned=first)
    if rule in (ONLY_MORE_ACCURATE, MORE_ACCURATE_ALIKE):
        estimate = _estimate(pair["accuracy_gap"], turned=not first)
    own, peer = ("a", "b") if first else ("b", "a")
    equal = [abs(gaps[name]["value"]) for name in ("os_weakest", "os_strongest", "sda")]
    facts: dict[str, Any] = {
        "n": pair["n"],
        "loser": pair[peer],
        "error": pair["errors"][own],
        "other_error": pair["errors"][peer],
        "least": min(equal),
        "most": max(equal),
        "mixed": equal[-1],
        "not_shown_on": [name for name in pair["not_shown_on"] if name in WHERE],
    }
    if pair["depends_on"] == "footing":
        facts |= _opposites(pair, gaps, margin)
    about = _about(pair, named=named)
    p = pair["p_verdict_adjusted"] if rule is BETTER else None
    return rule.claim(outcome, about, facts, estimate=estimate, p_adjusted=p, margin=margin)


def _about(entry: Mapping[str, Any], *, named: bool, **more: object) -> About:
    """Return a pair, a model or a league as a subject; all of its entry may be told."""
    names = ("a", "b", "model", "method", "group")
    subject = {name: entry[name] for name in names if name in entry} | more
    return About(subject, {**entry, "method": entry["method"] if named else None})


def _estimate(gap: Mapping[str, Any], *, turned: bool) -> EstimateEntry:
    """Return a gap, turned where that is its size in favour of the winner."""
    estimate = convert(gap, EstimateEntry)
    return estimate.turned() if turned else estimate


def _opposites(
    pair: Mapping[str, Any], gaps: Mapping[str, Mapping[str, float]], margin: float
) -> dict[str, Any]:
    """Return the footing with the clearest gap, and the one that denies it most."""
    values = {name: gaps[name]["value"] for name in WHERE}
    best = max(values, key=lambda name: abs(values[name]))
    side = 1.0 if values[best] > 0 else -1.0
    worst = min(values, key=lambda name: side * values[name])
    near, far = ("low", "high") if side > 0 else ("high", "low")
    model = {1.0: pair["b"], -1.0: pair["a"]}
    denied = worst == "sda" and side * gaps["sda"][far] < margin / 2
    one = {"name": model[side], "where": WHERE[best], "size": abs(values[best])}
    flipped = side if side * values[worst] > 0 else -side
    two = {"name": model[flipped], "where": WHERE[worst], "size": abs(values[worst])}
    alone = denied and all(side * gaps[name][near] > 0 for name in WHERE if name != "sda")
    if alone:
        two["name"] = model[-side]
    return {"best": one, "worst": two, "other": model[-side], "statements_alone": alone}


# At the whole level 'right more often' was false in 4.8 to 5.3 % of runs with equal models.
MORE_ACCURATE_SHARE = 0.8


def _more(facts: Facts) -> str:
    text = labels_text(facts.get("more"))
    return text[0].upper() + text[1:].replace("labels", "questions")


MORE_ACCURATE = rule(
    "compare.more_accurate",
    undecided=lambda facts: "same" if facts["same_answers"] else "open",
    depends=grades_sentence,
    place=place,
    more=_more,
)


def _counted(facts: Facts) -> str:
    """Say how many pairs differ in accuracy alone, and how many orders turn round."""
    verdicts, parts = facts["verdicts"], []
    if accurate := verdicts["only more accurate"] + verdicts["more accurate, alike"]:
        parts.append(f"in {accurate:,} one is more accurate, and both are calibrated alike")
    if reversals := verdicts["reversal"]:
        parts.append(f"in {reversals:,} the one that looks better is worse")
    pairs = count(sum(verdicts.values()), "pair")
    text = f"Of {pairs}, {' and '.join(parts)}." if parts else ""
    if 2 * facts["worse_than_constant"] > facts["models"]:
        text += " Most do worse than always stating one number."
    return text


def _leads(facts: Facts) -> str:
    if not facts["leaders"]:
        return "worse"
    return "none" if len(facts["first"]) == facts["placed"] else "shared"


def _leaders(facts: Facts) -> str:
    names = facts["leaders"] or facts["first"]
    if len(names) > 3:
        names = [*names[:3], f"{len(names) - 3} more"]
    *peers, last = names
    return f"{', '.join(peers)} or {last}" if peers else str(last)


LEADS = rule(
    "compare.leads",
    shown=lambda facts: "best" if facts["leaders"] else "worse",
    undecided=_leads,
    place=place,
    counted=_counted,
    leaders=_leaders,
)
MISSING = rule("compare.missing_related", place=place)
JUDGES = rule("compare.judges_better", place=place, more=_more)


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
    several = len({pair["method"] for pair in pairs}) > 1
    claims = [claim for row in missing for claim in _missing_claims(row, several)]
    claims += [claim for league in leagues for claim in _league_claims(league, several)]
    claims += sentences
    claims += [claim for pair in pairs for claim in _judge_claims(pair, several, level)]
    return [*claims, *(claim for pair in pairs for claim in _accuracy_claims(pair, several, level))]


def _judge_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    """Yield what the candidate-aligned view shows: it explains the verdict, and decides nothing."""
    judges = pair.get("judges")
    if judges is None or judges["p_adjusted"] is None:
        return
    gap, first = judges["gap"], judges["gap"]["value"] < 0
    facts = {"level": level, "more": more_labels(gap, 0.0), "winner": pair["a" if first else "b"]}
    display, p_adjusted = judges["shown"], judges["p_adjusted"]
    about, estimate = _about(pair, named=named), _estimate(gap, turned=display and first)
    yield JUDGES.claim(display, about, facts, estimate=estimate, p_adjusted=p_adjusted)


def _accuracy_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    gap, p_adjusted = pair["accuracy_gap"], pair["p_accuracy_adjusted"]
    if p_adjusted is None:
        return
    display = p_adjusted <= MORE_ACCURATE_SHARE * (1 - level)
    first = gap["value"] > 0
    estimate = _estimate(gap, turned=display and not first)
    winner, loser = (pair["a"], pair["b"]) if first else (pair["b"], pair["a"])
    facts = {"winner": winner, "loser": loser, "same_answers": pair["retention"] == 1}
    facts |= {"more": more_labels(gap, 0.0), "level": level}
    about = _about(pair, named=named)
    claim = MORE_ACCURATE.claim(display, about, facts, estimate=estimate, p_adjusted=p_adjusted)
    grading = pair.get("grading")
    if display and grading and grading["accuracy"]["low"] <= 0 <= grading["accuracy"]["high"]:
        claim = depending(MORE_ACCURATE, claim, grading, "accuracy")
    yield claim


def _league_claims(league: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    entries = league["entries"]
    first = [row["model"] for row in entries if row["tier"] == 1]
    worse = [row["model"] for row in entries if (row["score"]["high"] or 0.0) < 0]
    placed = sum(row["tier"] is not None for row in entries)
    if len(entries) < 3 or not first:
        return
    facts = {
        "winner": first[0],
        "first": first,
        # A model that is shown to do worse than a constant leads nobody.
        "leaders": [model for model in first if model not in worse],
        "models": len(entries),
        "placed": placed,
        # A model without a place may still be better calibrated than one that leads.
        "among": f"{len(entries)} models"
        if placed == len(entries)
        else f"the {placed} of {len(entries)} models with a place",
    }
    about = _about(league, named=named, models=first)
    yield LEADS.claim(bool(league["winner"]), about, facts, n=entries[0]["n"])


def _missing_claims(row: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    if not row["related"]:
        return
    here, exists = row["others_right_here"], row["others_right_missing"]
    about, facts = _about(row, named=named), {"word": "harder" if exists < here else "easier"}
    change = {"value": exists - here, "n": row["missing"]}
    yield MISSING.claim("shown", about, facts, estimate=change, p_adjusted=row["p_adjusted"])
