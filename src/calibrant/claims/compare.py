"""What a comparison may say: better calibrated, more accurate, leading, or told by missing rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome, declare
from calibrant.claims.forecast import more_questions
from calibrant.claims.margins import COMPARISON_MARGIN, more_labels
from calibrant.claims.words import count, joined, labels_text, percent, points, points_range
from calibrant.core.method_words import method_name

LEAST_QUESTIONS = 20
"""Questions that two models must share. With 10, intervals of equal models exclude 0 in up to 15 %
of data sets, and some have no width at all; with 20 in 6 to 11 %."""


def _place(facts: Facts) -> str:
    """Return method and group for the start of a sentence, where they say more."""
    names = [method_name(str(facts["method"]))] if facts.get("method") else []
    names += [f"{name} {value}" for name, value in (facts.get("group") or {}).items()]
    return f"{', '.join(names)}: " if names else ""


def _interval(facts: Facts) -> str:
    return f"{percent(facts['level'])} interval {points_range(facts['low'], facts['high'])}"


def _attribution(facts: Facts) -> str:
    """Say how much of a shown gap is accuracy and how much the way of stating confidence."""
    size, equal = facts["value"], facts["at_equal_accuracy"]
    if equal >= size:
        return f" At equal accuracy the difference is {points(equal)}."
    return (
        f" Of this, {points(size - equal)} come from accuracy, {points(equal)} from how it states "
        "its confidence."
    )


def _better(facts: Facts) -> str:
    return (
        f"{_place(facts)}{facts['winner']} is better calibrated than {facts['loser']}: error lower "
        f"by {points(facts['value'])} ({_interval(facts)}; {count(facts['n'], 'question')})."
        f"{_attribution(facts)}"
    )


def _equivalent(facts: Facts) -> str:
    return (
        f"{_place(facts)}{facts['a']} and {facts['b']} are equally well calibrated within "
        f"{points(facts['margin'])}: they are at most {points(facts['bound'])} apart."
    )


def _depends(facts: Facts) -> str:
    one, other = facts["first_view"], facts["second_view"]
    return (
        f"{_place(facts)}Which is better calibrated depends on the accuracy: {one['winner']} "
        f"{one['where']} (by {points(one['size'])}), {other['winner']} {other['where']} "
        f"(by {points(other['size'])})."
    )


def _undecided(facts: Facts) -> str:
    if facts["n"] < LEAST_QUESTIONS:
        return (
            f"{_place(facts)}Undecided whether {facts['a']} or {facts['b']} is better calibrated: "
            f"they share {count(facts['n'], 'question')}, an interval needs {LEAST_QUESTIONS}."
        )
    if facts["low"] == facts["high"] == 0 and facts.get("alike") is None:
        return (
            f"{_place(facts)}{facts['a']} and {facts['b']} have the same calibration error on any "
            f"part of the questions. {_more(facts)} would show them equivalent within "
            f"{points(facts['margin'])}."
        )
    if facts.get("alike") is not None:
        return (
            f"{_place(facts)}{facts['a']} and {facts['b']} always say {percent(facts['alike'])}: "
            "they differ in accuracy alone. Undecided until their confidence varies."
        )
    if facts.get("raw_winner"):
        return (
            f"{_place(facts)}Undecided: {facts['raw_winner']} has a smaller error than "
            f"{facts['raw_loser']} (by {points_range(*facts['raw_range'])} points), but accuracy "
            f"alone may explain that. {_more(facts)} would decide."
        )
    return (
        f"{_place(facts)}Undecided whether {facts['a']} or {facts['b']} is better calibrated "
        f"(difference {points_range(facts['low'], facts['high'])} points, "
        f"{count(facts['n'], 'question')}). {_more(facts)} would decide."
    )


def _more(facts: Facts) -> str:
    text = labels_text(facts.get("more"))
    return text[0].upper() + text[1:].replace("labels", "questions")


BETTER = declare(
    ClaimRule(
        "compare.better_calibrated",
        "Is one model better calibrated than the other, or only more accurate?",
        "E|c - r(c)| is smaller on its own answers and after the odds shift to the weaker, the "
        "mean and the stronger accuracy",
        "in all four views the interval of the absolute gap excludes 0 and the debiased squared "
        "gap exceeds 1.96 standard errors, on one side; 'equivalent' from each model's own 90 % "
        "interval in three views; 'depends' when two views exclude 0 on opposite sides",
        "Holm over all pairs of whole methods, and apart from them over pairs of groups; "
        "'depends' by Bonferroni over views and pairs",
        {
            "shown": _better,
            "equivalent": _equivalent,
            "depends": _depends,
            "undecided": _undecided,
        },
        margin=COMPARISON_MARGIN,
    )
)


def _as_often(facts: Facts) -> str:
    start, a, b = _place(facts), facts["a"], facts["b"]
    if facts["low"] == facts["high"] == 0:
        same = f"{start}{a} and {b} are right on the same questions: undecided who is more often."
        return f"{same} Questions that only one of them gets right would decide."
    apart = f"(difference {points_range(facts['low'], facts['high'])} points). {_more(facts)}"
    return f"{start}Undecided whether {a} or {b} is right more often {apart} would decide."


MORE_ACCURATE = declare(
    ClaimRule(
        "compare.more_accurate",
        "Is one model right more often?",
        "E[z_a] > E[z_b] on the questions that both have",
        "paired difference in units of its bootstrap standard error",
        "Holm over all pairs, families as for calibration",
        {
            "shown": lambda facts: (
                f"{_place(facts)}{facts['winner']} is right more often than {facts['loser']}, by "
                f"{points(facts['value'])} ({_interval(facts)}; {count(facts['n'], 'question')} "
                "that both have)."
            ),
            "undecided": _as_often,
        },
    )
)


def _leader(facts: Facts) -> str:
    text = (
        f"{_place(facts)}{facts['winner']} states the most useful confidence of "
        f"{facts['models']} models"
    )
    # The score weighs right and wrong answers equally, so that 50 % is what a coin would say.
    if facts["value"] > 0:
        return f"{text}: its error is {percent(facts['value'])} below that of always saying 50 %."
    return f"{text}, but always saying 50 % would be no worse."


LEADS = declare(
    ClaimRule(
        "compare.leads",
        "Does one model state the best confidence of all?",
        "skill at even odds, 1 - Brier / 0.25, is higher than that of every other model",
        "paired bootstrap z of the scores on the questions that both have",
        "Holm over all pairs of the league",
        {
            "shown": _leader,
            "undecided": lambda facts: (
                f"{_place(facts)}{joined(facts['first'])} share the first place among "
                f"{facts['models']} models. More questions would decide between them."
            ),
        },
    )
)

MISSING = declare(
    ClaimRule(
        "compare.missing_related",
        "Are the questions that a model lacks unlike the ones that it has?",
        "the other models are right more or less often on the questions that this model lacks",
        "t-test with one spread for all questions of the share of other models that are right, "
        "at 4 %; no test where fewer than 2 rare answers are expected among the missing",
        "Holm over the models of a method",
        {
            "shown": lambda facts: (
                f"{_place(facts)}The {count(facts['missing'], 'question')} that {facts['model']} "
                f"lacks are {facts['word']}: the others get {percent(facts['there'])} of them "
                f"right, and {percent(facts['here'])} of the rest."
            ),
        },
    )
)

JUDGES = declare(
    ClaimRule(
        "compare.judges_better",
        "Who judges the same candidate answers with the better calibrated confidence?",
        "E|c - r(c)| over the shared candidate answers is smaller for one judge",
        "interval of the absolute gap and debiased squared gap, on one side (candidate-aligned "
        "view)",
        "Holm over the pairs with candidates",
        {
            "shown": lambda facts: (
                f"{_place(facts)}On the same candidate answers {facts['winner']} is the better "
                f"calibrated judge: error lower by {points(facts['value'])} ({_interval(facts)}; "
                f"{count(facts['n'], 'question')})."
            ),
            "undecided": lambda facts: (
                f"{_place(facts)}Undecided who judges the same candidate answers better, "
                f"{facts['a']} or {facts['b']} (difference "
                f"{points_range(facts['low'], facts['high'])} points). {_more(facts)} would decide."
            ),
        },
    )
)

_WHERE = {
    "raw": "as answered",
    "os_weakest": "at the weaker accuracy",
    "os_mean": "at the mean accuracy",
    "os_strongest": "at the stronger accuracy",
}


def pair_claim(
    pair: Mapping[str, Any], *, margin: float, named: bool, level: float = 0.95
) -> Claim:
    """Return the claim about the calibration of one pair, from its entry as plain data.

    Parameters
    ----------
    pair
        Entry of a pair with its outcome.
    margin
        Differences below it do not matter.
    named
        Whether sentences say the method, because there are several.
    level
        Coverage of the intervals.
    """
    gap = pair["evidence"]["raw"]["gap"]
    facts: dict[str, Any] = {**_named(pair, named), "margin": margin, "n": pair["n"]}
    facts["level"] = level
    outcome: Outcome = pair["outcome"]
    estimate = dict(gap)
    if outcome == "shown":
        estimate = _sized(gap, first=pair["winner"] == pair["a"])
        facts |= {"winner": pair["winner"]}
        facts |= {"loser": pair["b"] if pair["winner"] == pair["a"] else pair["a"]}
        facts |= {"at_equal_accuracy": abs(pair["attribution"]["verdict"]["behaviour"]["value"])}
    elif outcome == "depends":
        facts |= _opposites(pair)
    facts |= {**estimate, "bound": pair["equivalence_bound"], "alike": pair["alike"]}
    facts |= {"more": more_questions(pair, margin) if outcome == "undecided" else None}
    if gap["low"] is not None and (gap["low"] > 0 or gap["high"] < 0):
        sized = _sized(gap, first=gap["high"] < 0)
        names = (pair["a"], pair["b"]) if gap["high"] < 0 else (pair["b"], pair["a"])
        facts |= {"raw_winner": names[0], "raw_loser": names[1]}
        facts |= {"raw_range": (sized["low"], sized["high"])}
    subject = {name: pair[name] for name in ("a", "b", "method", "group")}
    return BETTER.claim(
        outcome,
        facts,
        subject=subject,
        estimate=estimate,
        p_adjusted=pair["p_verdict_adjusted"],
        margin=margin,
    )


def comparison_claims(
    pairs: Sequence[Mapping[str, Any]],
    leagues: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, Any]],
    *,
    margin: float,
    level: float = 0.95,
) -> list[Claim]:
    """Return the claims of a comparison, the data first, then the league, then the pairs."""
    named = len({pair["method"] for pair in pairs}) > 1
    claims = [claim for row in missing for claim in _missing_claims(row, named)]
    claims += [claim for league in leagues for claim in _league_claims(league, named)]
    claims += [pair_claim(pair, margin=margin, named=named, level=level) for pair in pairs]
    claims += [claim for pair in pairs for claim in _judge_claims(pair, named, level)]
    return [*claims, *(claim for pair in pairs for claim in _accuracy_claims(pair, named, level))]


def _named(entry: Mapping[str, Any], named: bool) -> dict[str, Any]:
    shown = {name: entry[name] for name in ("a", "b") if name in entry}
    return {**shown, "method": entry["method"] if named else None, "group": entry["group"]}


def _sized(gap: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
    """Return the size of a gap in favour of the winner."""
    if not first:
        return dict(gap)
    turned = {"value": gap["value"], "low": gap["high"], "high": gap["low"]}
    return {
        **gap,
        **{name: None if value is None else -value for name, value in turned.items()},
    }


def _opposites(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Return the view that favours each model most."""
    gaps = {view: pair["evidence"][view]["gap"]["value"] for view in _WHERE}
    low, high = min(gaps, key=lambda view: gaps[view]), max(gaps, key=lambda view: gaps[view])
    first = {"winner": pair["a"], "where": _WHERE[low], "size": abs(gaps[low])}
    second = {"winner": pair["b"], "where": _WHERE[high], "size": abs(gaps[high])}
    return {"first_view": first, "second_view": second}


def _judge_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    """Yield what the candidate-aligned view shows: it explains the verdict, and decides nothing."""
    p_adjusted = pair.get("p_candidates_adjusted")
    if p_adjusted is None:
        return
    view = pair["evidence"]["ca"]
    shown = bool(view["side"]) and p_adjusted <= 1 - level
    first = view["gap"]["value"] < 0
    estimate = _sized(view["gap"], first=True) if shown and first else dict(view["gap"])
    facts = {**_named(pair, named), **estimate, "level": level}
    facts |= {"more": more_labels(view["gap"], 0.0), "winner": pair["a"] if first else pair["b"]}
    yield JUDGES.claim(
        "shown" if shown else "undecided",
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
        estimate=estimate,
        p_adjusted=p_adjusted,
    )


def _accuracy_claims(pair: Mapping[str, Any], named: bool, level: float) -> Iterable[Claim]:
    gap, p_adjusted = pair["accuracy_gap"], pair["p_accuracy_adjusted"]
    if p_adjusted is None:
        return
    shown = p_adjusted <= 1 - level
    first = gap["value"] > 0
    estimate = dict(gap) if first or not shown else _sized(gap, first=True)
    facts = {**_named(pair, named), **estimate, "more": more_labels(gap, 0.0), "level": level}
    facts |= {"winner": pair["a"] if first else pair["b"]}
    facts |= {"loser": pair["b"] if first else pair["a"]}
    yield MORE_ACCURATE.claim(
        "shown" if shown else "undecided",
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
        estimate=estimate,
        p_adjusted=p_adjusted,
    )


def _league_claims(league: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    entries = league["entries"]
    if len(entries) < 3:
        return
    first = [row for row in entries if row["tier"] == 1]
    score = first[0]["score"]
    facts = {
        **_named(league, named),
        **score,
        "winner": first[0]["model"],
        "first": [row["model"] for row in first],
        "models": len(entries),
    }
    yield LEADS.claim(
        "shown" if league["winner"] else "undecided",
        facts,
        subject={
            "method": league["method"],
            "group": league["group"],
            "models": [row["model"] for row in first],
        },
        estimate=score if league["winner"] else None,
        n=score["n"],
    )


def _missing_claims(row: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    if not row["related"]:
        return
    here, there = row["others_right_here"], row["others_right_missing"]
    facts = {
        **_named(row, named),
        "model": row["model"],
        "missing": row["missing"],
        "here": here,
        "there": there,
        "word": "harder" if there < here else "easier",
    }
    yield MISSING.claim(
        "shown",
        facts,
        subject={name: row[name] for name in ("model", "method", "group")},
        estimate={"value": there - here, "n": row["missing"]},
        p_adjusted=row["p_adjusted"],
    )
