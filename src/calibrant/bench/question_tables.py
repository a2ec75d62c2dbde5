"""A generated benchmark and its check, in words and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.question_claims import fewer_questions
from calibrant.findings.documents.fields import BenchCheckFields, BenchFields
from calibrant.report.blocks import Block, Paragraph, Table, claims_first, table_of
from calibrant.report.cells import number_cell, share_cell

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
        parts.append(_findings(document["findings"]))
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
        kappa = number_cell(pair["kappa"], digits=2, missing="undefined: nobody varies")
        row = (number_cell(pair["questions"]), share_cell(pair["equal"]), kappa)
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
            "problems": lambda e: number_cell(sum(e["problems"].values())),
        },
        "Answers derived again from text and facts",
        note="exact: the references are all right answers and no others (by alias: under "
        "another name); overlapping: united subjects share an answer",
    )


def _findings(findings: Entry) -> Table:
    visible = findings["listed"][:_SHOWN]
    more = findings["number"] - len(visible)
    return table_of(
        visible,
        {"question": "text", "what is wrong": lambda e: e["detail"] or e["problem"]},
        "Findings",
        note=f"and {more:,} more; up to 200 are in the JSON" if more > 0 else "",
        labels=2,
    )
