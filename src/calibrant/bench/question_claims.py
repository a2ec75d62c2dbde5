"""What `bench check` may say: do the questions have exactly the answers that they list."""

from collections.abc import Mapping
from typing import Any

from scipy.special import betaincinv

from calibrant.findings.claims.claim import ALPHA, About, Claim, Facts, Outcome
from calibrant.findings.claims.words import count, rule
from calibrant.findings.documents.fields import BenchCheckFields, Entries

# Places with fewer questions than asked for that a sentence names.
_SHORT_SHOWN = 2
_PROBLEMS = {
    "findings": "with other answers than listed",
    "duplicates": "twice",
    "shared": "in two domains",
    "contradicted": "contradicted by a second source",
    "called_wrong": "called wrong by people",
}


def _listed(facts: Facts) -> str:
    numbers = {name: f"{facts[name]:,}" for name in _PROBLEMS}
    numbers["shared"] = count(facts["shared"], "answer")
    return ", ".join(f"{numbers[name]} {words}" for name, words in _PROBLEMS.items() if facts[name])


def _second_source(facts: Facts) -> str:
    return "none" if not facts["looked_at"] else "some" if facts["by_rule"] else "all"


HOLD = rule(
    "bench.questions_hold",
    second_source=_second_source,
    undecided=lambda facts: "all" if facts["only_listed"] == facts["questions"] else "some",
)
BROKEN = rule("bench.questions_broken", listed=_listed)
SHARE = rule("bench.share_wrong")


def question_claims(document: BenchCheckFields) -> list[Claim]:
    """Return the claims of a check.

    Parameters
    ----------
    document
        Document ``calibrant.bench_check/1`` as plain data.
    """
    second = document["second_look"]
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
        "by_rule": second["not_covered"] - second["only_listed"],
        "first": f"First: {first}" if (first := _first_finding(document)) else "",
    }
    rule = HOLD if document.ok and not numbers["called_wrong"] else BROKEN
    subject = {"domains": [entry["domain"] for entry in document["results"]]}
    outcome: Outcome = "undecided" if rule is HOLD and facts["only_listed"] else "shown"
    claims = [rule.claim(outcome, About(subject), facts, n=document["questions"])]
    return [*claims, *_spot(document.get("spot_check"))]


def fewer_questions(results: Entries) -> str:
    """Return where a new benchmark has fewer questions than were asked for; empty where nowhere.

    Examples
    --------
    >>> parts = [{"k": 1, "questions": 9, "short_by": 0}, {"k": 6, "questions": 2, "short_by": 7}]
    >>> fewer_questions([{"domain": "river", "by_k": parts}])
    'It is 7 questions short of the 18 asked for: river has 2 of 9 with 6 right answers.'
    """
    parts = [(entry["domain"], part) for entry in results for part in entry["by_k"]]
    short = [(domain, part) for domain, part in parts if part["short_by"]]
    if not short:
        return ""
    request = sum(part["questions"] + part["short_by"] for _, part in parts)
    missing = sum(part["short_by"] for _, part in short)
    places = [
        f"{domain} has {part['questions']:,} of {part['questions'] + part['short_by']:,} with "
        f"{count(part['k'], 'right answer')}"
        for domain, part in short[:_SHORT_SHOWN]
    ]
    more = len(short) - len(places)
    places += [f"and so in {more:,} more places"] if more else []
    lacking = count(missing, "question")
    return f"It is {lacking} short of the {request:,} asked for: {'; '.join(places)}."


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
    return [SHARE.claim("shown", About({"sample": "spot check"}), facts, estimate=share)]


def _wrong(spot: Mapping[str, Any] | None) -> int:
    return len(spot["found_wrong"]) if spot else 0


def _first_finding(document: BenchCheckFields) -> str:
    listed = [*document["findings"]["listed"], *document["second_look"]["findings"]]
    if listed:
        return f"{listed[0]['text']} {listed[0]['detail'] or listed[0]['problem']}."
    return (
        str(document["duplicates"]["listed"][0]["text"]) if document["duplicates"]["listed"] else ""
    )
