"""What `bench check` may say: do the questions have exactly the answers that they list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy.special import betaincinv

from calibrant.claims.claim import ALPHA, Claim, ClaimRule, Facts, Outcome, declare
from calibrant.claims.words import count, percent


def _second_source(facts: Facts) -> str:
    seen, rule = facts["looked_at"], facts["not_covered"] - facts["only_listed"]
    if not seen:
        return "They are true by rule."
    tail = f"; {rule:,} are true by rule" if rule else ""
    return f"A second source agrees on {seen:,}{tail}."


def _only_listed(facts: Facts) -> str:
    alone, whole = facts["only_listed"], facts["questions"]
    head = f"All {count(whole, 'question')} follow from their list, and none comes twice."
    if alone == whole:
        return f"{head} Not checked: only your list says so."
    return f"{head} Not checked: for {alone:,} of them only your list says so."


def _first(facts: Facts) -> str:
    return f" First: {facts['first']}" if facts["first"] else ""


# Places with fewer questions than asked for that a sentence names.
_SHORT_SHOWN = 2
_PROBLEMS = (
    ("findings", "with other answers than listed"),
    ("duplicates", "twice"),
    ("shared", "in two domains"),
    ("contradicted", "contradicted by a second source"),
    ("called_wrong", "called wrong by people"),
)


def _problems(facts: Facts) -> str:
    numbers = {name: f"{facts[name]:,}" for name, _ in _PROBLEMS}
    numbers["shared"] = count(facts["shared"], "answer")
    found = [f"{numbers[name]} {words}" for name, words in _PROBLEMS if facts[name]]
    whole = f"{count(facts['problems'], 'problem')} in {count(facts['questions'], 'question')}"
    return f"{whole}: {', '.join(found)}"


HOLD = declare(
    ClaimRule(
        "bench.questions_hold",
        "Do all questions have exactly the right answers that they list?",
        "for every question the references are all answers that the source gives, and no others; "
        "no question comes twice; no answer belongs to two domains",
        "answers are derived again from the text of every question by rule or from the facts, and "
        "compared with a second source and with rules of plausibility; where only the list that "
        "made a question speaks for it, this is undecided; no sampling is involved",
        "none needed: every question is looked at",
        {
            "shown": lambda facts: (
                f"All {count(facts['questions'], 'question')} hold: exactly the listed answers "
                f"are right, none comes twice. {_second_source(facts)}"
            ),
            "undecided": _only_listed,
        },
    )
)

BROKEN = declare(
    ClaimRule(
        "bench.questions_broken",
        "Which questions do not hold?",
        "a question lists a wrong answer, lacks a right one, comes twice, shares an answer with "
        "another domain, is contradicted by a second source, or is called wrong by people",
        "as for `bench.questions_hold`: every question is looked at, no sampling is involved",
        "none needed: every question is looked at",
        {
            "shown": lambda facts: f"{_problems(facts)}.{_first(facts)}",
        },
    )
)

SHARE = declare(
    ClaimRule(
        "bench.share_wrong",
        "How many questions are wrong at most, judged by people on a sample?",
        "share of questions that people call wrong <= bound",
        "exact one-sided 95 % bound (Clopper and Pearson) from a simple random sample",
        "none: one bound per document",
        {
            "shown": lambda facts: (
                f"At most {percent(facts['bound'])} of the questions are wrong (95 % sure): "
                f"people found {facts['wrong']:,} of {facts['n']:,} sampled ones wrong."
            ),
        },
    )
)


def question_claims(document: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of a check.

    Parameters
    ----------
    document
        Document ``calibrant.bench_check/1`` as plain data.
    """
    second = document.get("second_look") or {
        "looked_at": 0, "not_covered": 0, "only_listed": 0, "number": 0,
    }  # fmt: skip
    numbers = {
        "findings": document["findings"]["number"],
        "duplicates": document["duplicates"]["number"],
        "shared": sum(pair["number"] for pair in document["shared_entities"]),
        "contradicted": second["number"],
        "called_wrong": _wrong(document.get("spot_check")),
    }
    facts = {
        **numbers,
        **{name: second[name] for name in ("looked_at", "not_covered", "only_listed")},
        "questions": document["questions"],
        "problems": sum(numbers.values()),
        "first": _first_finding(document),
    }
    rule = HOLD if document["ok"] and not numbers["called_wrong"] else BROKEN
    subject = {"domains": [entry["domain"] for entry in document["results"]]}
    outcome: Outcome = "undecided" if rule is HOLD and facts["only_listed"] else "shown"
    made = [rule.claim(outcome, facts, subject=subject, n=document["questions"])]
    return [*made, *_spot(document.get("spot_check"))]


def fewer_questions(document: Mapping[str, Any]) -> str:
    """Return where a new benchmark has fewer questions than were asked for; empty where nowhere.

    Examples
    --------
    >>> parts = [{"k": 1, "questions": 9, "short_by": 0}, {"k": 6, "questions": 2, "short_by": 7}]
    >>> fewer_questions({"results": [{"domain": "river", "by_k": parts}]})
    'It is 7 questions short of the 18 asked for: river has 2 of 9 with 6 right answers.'
    """
    parts = [(entry["domain"], part) for entry in document["results"] for part in entry["by_k"]]
    short = [(domain, part) for domain, part in parts if part["short_by"]]
    if not short:
        return ""
    asked = sum(part["questions"] + part["short_by"] for _, part in parts)
    missing = sum(part["short_by"] for _, part in short)
    told = [
        f"{domain} has {part['questions']:,} of {part['questions'] + part['short_by']:,} with "
        f"{count(part['k'], 'right answer')}"
        for domain, part in short[:_SHORT_SHOWN]
    ]
    more = len(short) - len(told)
    told += [f"and so in {more:,} more places"] if more else []
    return (
        f"It is {count(missing, 'question')} short of the {asked:,} asked for: {'; '.join(told)}."
    )


def most_wrong(wrong: int, n: int) -> float:
    """Return the largest share that the ticks leave possible at 95 %, one-sided.

    Examples
    --------
    >>> round(most_wrong(0, 30), 3), most_wrong(5, 5)
    (0.095, 1.0)
    """
    return 1.0 if wrong == n else float(betaincinv(wrong + 1, n - wrong, 1 - ALPHA))


def _spot(spot: Mapping[str, Any] | None) -> list[Claim]:
    if not spot:
        return []
    share, wrong = spot["wrong"], _wrong(spot)
    facts = {"wrong": wrong, "n": share["n"], "bound": most_wrong(wrong, share["n"])}
    return [SHARE.claim("shown", facts, subject={"sample": "spot check"}, estimate=share)]


def _wrong(spot: Mapping[str, Any] | None) -> int:
    return len(spot["found_wrong"]) if spot else 0


def _first_finding(document: Mapping[str, Any]) -> str:
    listed = [
        *document["findings"]["listed"],
        *(document.get("second_look") or {}).get("findings", ()),
    ]
    if listed:
        return f"{listed[0]['text']} {listed[0]['detail'] or listed[0]['problem']}."
    return (
        str(document["duplicates"]["listed"][0]["text"]) if document["duplicates"]["listed"] else ""
    )
