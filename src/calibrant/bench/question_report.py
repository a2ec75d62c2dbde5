"""A generated benchmark and its check: what may be said of them, in words and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import betaincinv

from calibrant.findings.claims import ALPHA, About, Claim, Facts, Outcome, count, rule
from calibrant.findings.documents.fields import BenchCheckFields, BenchFields, Entries
from calibrant.report import cells
from calibrant.report.cells import Block, Paragraph, Table, claims_first, table_of

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
    second, spot = document["second_look"], document.get("spot_check")
    numbers = {
        "findings": document["findings"]["number"],
        "duplicates": document["duplicates"]["number"],
        "shared": sum(pair["number"] for pair in document["shared_entities"]),
        "contradicted": second["number"],
        "called_wrong": len(spot["found_wrong"]) if spot else 0,
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
    if spot:
        share, wrong = spot["wrong"], numbers["called_wrong"]
        facts = {"wrong": wrong, "n": share["n"], "bound": most_wrong(wrong, share["n"])}
        about = About({"sample": "spot check"})
        claims.append(SHARE.claim("shown", about, facts, estimate=share))
    return claims


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


def _first_finding(document: BenchCheckFields) -> str:
    listed = [*document["findings"]["listed"], *document["second_look"]["findings"]]
    if listed:
        return f"{listed[0]['text']} {listed[0]['detail'] or listed[0]['problem']}."
    return (
        str(document["duplicates"]["listed"][0]["text"]) if document["duplicates"]["listed"] else ""
    )


Entry = Mapping[str, Any]

_SHOWN = 10
_CHOICE = {
    "ngrams": "Chosen by k-means over character n-grams, nearest to each centre.",
    "sentence": "Chosen by k-means over sentence embeddings, nearest to each centre.",
    "random": "Chosen at random.",
}


def blocks(document: BenchFields) -> list[Block]:
    """Return the statistics of a benchmark as neutral blocks."""
    head = f"{document.questions:,} questions with exactly k right answers"
    fewer = fewer_questions(document.results)
    parts: list[Block] = [Paragraph(text, strong=True) for text in (head, fewer) if text]
    parts.append(_statistics(document))
    if document["filters"]:
        parts.append(_filters(document["filters"]))
    if document["page_views"]:
        names = {"entities with page views": "listed", "popular enough": "popular"}
        parts.append(table_of(document["page_views"], {"domain": "domain", **names}))
    parts.append(Paragraph(_CHOICE[document["strata"]]))
    sources: dict[str, list[str]] = {}
    for entry in document.results:
        sources.setdefault(entry["source"], []).append(entry["domain"])
    return [
        *parts,
        *(Paragraph(f"Source of {', '.join(domains)}: {s}") for s, domains in sources.items()),
    ]


def _filters(filters: Sequence[Entry]) -> Table:
    rows = []
    for entry in filters:
        stages = " > ".join(f"{number:,}" for number in entry["subjects"].values())
        names = {"domain": entry["domain"], "relation": entry["relation"], "stages": stages}
        for drop in entry["dropped"] or [{"reason": "nothing dropped", "number": 0}]:
            rows.append({**names, **drop})
            names = dict.fromkeys(names, "")
    return table_of(
        rows,
        {
            "domain": "domain",
            "relation": "relation",
            "subjects": "stages",
            "dropped because": "reason",
            "number": "number",
        },
        "Filters",
        note="subjects: raw > after each filter",
        labels=4,
    )


def _statistics(document: BenchFields) -> Table:
    ks = "/".join(str(part["k"]) for part in document.results[0]["by_k"])
    return table_of(
        document.results,
        {
            "domain": "domain",
            "subjects": "subjects",
            "answers": "objects",
            "sets": "answer_sets",
            "built": "candidates",
            "used": "questions",
            f"k={ks}": lambda e: "/".join(str(part["questions"]) for part in e["by_k"]),
        },
        "Statistics",
        note="subjects, answers, sets of answers: different ones in the questions used",
    )


def check_blocks(document: BenchCheckFields) -> list[Block]:
    """Return the findings of a check as neutral blocks."""
    parts = [*claims_first(document), _domains(document)]
    parts.extend(
        Paragraph(f"{entry['domain']}: {count:,} x {problem}")
        for entry in document["results"]
        for problem, count in entry["problems"].items()
    )
    parts.extend(
        Paragraph(
            f"Answers of both {' and '.join(pair['domains'])}: {pair['number']:,} "
            f"({', '.join(pair['entities'][:5])}{', ..' if pair['number'] > 5 else ''})"
        )
        for pair in document["shared_entities"]
    )
    if document["findings"]["number"]:
        findings = document["findings"]
        visible = findings["listed"][:_SHOWN]
        more = findings["number"] - len(visible)
        parts.append(
            table_of(
                visible,
                {"question": "text", "what is wrong": lambda e: e["detail"] or e["problem"]},
                "Findings",
                note=f"and {more:,} more; up to 200 are in the JSON" if more > 0 else "",
                labels=2,
            )
        )
    return [*parts, *_second_look(document)]


def _second_look(document: BenchCheckFields) -> list[Block]:
    """Return what other sources and rules say, and what a person found."""
    second, spot = document["second_look"], document["spot_check"]
    parts: list[Block] = [
        Paragraph(
            f"Second look, without the facts: {second['looked_at']:,} questions compared "
            f"with another source, {second['not_covered']:,} not covered by one, "
            f"{second['number']:,} contradictions."
        )
    ]
    if second["number"]:
        columns = {"question": "text", "what speaks against it": "detail"}
        parts.append(table_of(second["findings"][:_SHOWN], columns, labels=2))
    if spot and spot.get("agreement"):
        pair = spot["agreement"]
        kappa = cells.number_cell(pair["kappa"], digits=2, missing="undefined: nobody varies")
        row = (cells.number_cell(pair["questions"]), cells.share_cell(pair["equal"]), kappa)
        parts.append(Table(("judged by two people", "equal verdicts", "kappa"), (row,), labels=0))
    return parts


def _domains(document: BenchCheckFields) -> Table:
    return table_of(
        document["results"],
        {
            "domain": "domain",
            "questions": "questions",
            "exact": "exact",
            "by alias": "by_alias",
            "overlapping": "overlapping",
            "problems": lambda e: cells.number_cell(sum(e["problems"].values())),
        },
        "Answers derived again from text and facts",
        note="exact: the references are all right answers and no others (by alias: under "
        "another name); overlapping: united subjects share an answer",
    )
