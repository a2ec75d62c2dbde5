"""What a comparison may say of accuracy, of all models together, of judges and missing rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, Facts
from calibrant.claims.compare import place, sized, subject_of
from calibrant.claims.grades import depending, grades_sentence
from calibrant.claims.margins import more_labels
from calibrant.claims.rule import rule
from calibrant.claims.words import count, labels_text, percent, points_range

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
    undecided=lambda facts: "none" if len(facts["first"]) == facts["models"] else "shared",
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
    facts = {**subject_of(pair, named), **estimate, "level": level}
    facts |= {"more": more_labels(gap, 0.0), "winner": pair["a"] if first else pair["b"]}
    yield JUDGES.claim(
        "shown" if judges["shown"] else "undecided",
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
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
    facts = {**subject_of(pair, named), **estimate, "more": more_labels(gap, 0.0), "level": level}
    facts |= {"winner": pair["a"] if first else pair["b"]}
    facts |= {"loser": pair["b"] if first else pair["a"]}
    facts |= {"same_answers": pair["retention"] == 1}
    claim = MORE_ACCURATE.claim(
        "shown" if shown else "undecided",
        facts,
        subject={name: pair[name] for name in ("a", "b", "method", "group")},
        estimate=estimate,
        p_adjusted=p_adjusted,
    )
    grading = pair.get("grading")
    if shown and grading and grading["accuracy"]["low"] <= 0 <= grading["accuracy"]["high"]:
        claim = depending(MORE_ACCURATE, claim, grading, "accuracy")
    yield claim


def _league_claims(league: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    entries, verdicts = league["entries"], league["verdicts"]
    if len(entries) < 3:
        return
    first = [row["model"] for row in entries if row["tier"] == 1]
    if not first:
        return
    facts = {
        **subject_of(league, named),
        "winner": first[0],
        "first": first,
        "models": len(entries),
        "pairs": sum(verdicts.values()),
        "accurate": verdicts["only more accurate"],
        "reversals": verdicts["reversal"],
        "worse_than_constant": league["worse_than_constant"],
    }
    yield LEADS.claim(
        "shown" if league["winner"] else "undecided",
        facts,
        subject={"method": league["method"], "group": league["group"], "models": first},
        n=entries[0]["n"],
    )


def _missing_claims(row: Mapping[str, Any], named: bool) -> Iterable[Claim]:
    if not row["related"]:
        return
    here, there = row["others_right_here"], row["others_right_missing"]
    facts = {
        **subject_of(row, named),
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
