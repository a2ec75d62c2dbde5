"""A generated benchmark and its check, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.question_claims import fewer_questions
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell, share_cell


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the statistics of a benchmark as neutral blocks."""
    found: list[Paragraph | Table] = [
        Paragraph(f"{document['questions']:,} questions with exactly k right answers", strong=True),
    ]
    fewer = fewer_questions(document)
    if fewer:
        found.append(Paragraph(fewer, strong=True))
    found.append(_statistics(document))
    if document["filters"]:
        found.append(_filters(document["filters"]))
    if document["page_views"]:
        found.append(_page_views(document["page_views"]))
    found.append(Paragraph(_CHOICE[document["strata"]]))
    sources: dict[str, list[str]] = {}
    for entry in document["results"]:
        sources.setdefault(entry["source"], []).append(entry["domain"])
    found.extend(
        Paragraph(f"Source of {', '.join(domains)}: {source}")
        for source, domains in sources.items()
    )
    return found


_CHOICE = {
    "ngrams": "Chosen by k-means over character n-grams, nearest to each centre.",
    "sentence": "Chosen by k-means over sentence embeddings, nearest to each centre.",
    "random": "Chosen at random.",
}


def _filters(filters: list[Mapping[str, Any]]) -> Table:
    rows = []
    for entry in filters:
        stages = " > ".join(f"{number:,}" for number in entry["subjects"].values())
        first = (entry["domain"], entry["relation"], stages)
        reasons = [(item["reason"], number_cell(item["number"])) for item in entry["dropped"]]
        for position, (reason, number) in enumerate(
            reasons or [("nothing dropped", number_cell(0))]
        ):
            rows.append((*(first if position == 0 else ("", "", "")), reason, number))
    return Table(
        ("domain", "relation", "subjects", "dropped because", "number"),
        tuple(rows),
        title="Filters",
        note="subjects: raw > after each filter",
        labels=4,
    )


def _page_views(views: list[Mapping[str, Any]]) -> Table:
    rows = tuple((v["domain"], number_cell(v["listed"]), number_cell(v["popular"])) for v in views)
    return Table(("domain", "entities with page views", "popular enough"), rows)


def _statistics(document: Mapping[str, Any]) -> Table:
    ks = [str(part["k"]) for part in document["results"][0]["by_k"]]
    return Table(
        ("domain", "subjects", "answers", "sets", "built", "used", f"k={'/'.join(ks)}"),
        tuple(
            (
                entry["domain"],
                *(number_cell(entry[name]) for name in _COUNTED),
                "/".join(str(part["questions"]) for part in entry["by_k"]),
            )
            for entry in document["results"]
        ),
        title="Statistics",
        note="subjects, answers, sets of answers: different ones in the questions used",
    )


_SHOWN = 10
_COUNTED = ("subjects", "objects", "answer_sets", "candidates", "questions")
_CHECKED = ("questions", "exact", "by_alias", "overlapping")


def check_blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the findings of a check as neutral check_blocks."""
    found: list[Paragraph | Table] = [
        *(Paragraph(claim["text"], strong=True) for claim in document.get("claims") or ()),
        _domains(document),
    ]
    found.extend(
        Paragraph(f"{entry['domain']}: {count:,} x {problem}")
        for entry in document["results"]
        for problem, count in entry["problems"].items()
    )
    found.extend(
        Paragraph(
            f"Answers of both {' and '.join(pair['domains'])}: {pair['number']:,} "
            f"({', '.join(pair['entities'][:5])}{', ..' if pair['number'] > 5 else ''})"
        )
        for pair in document["shared_entities"]
    )
    if document["findings"]["number"]:
        found.append(_findings(document["findings"]))
    found.extend(_second_look(document))
    return found


def _second_look(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return what other sources and rules say, and what a person found."""
    second, spot = document.get("second_look"), document.get("spot_check")
    found: list[Paragraph | Table] = []
    if second:
        found.append(
            Paragraph(
                f"Second look, without the facts: {second['looked_at']:,} questions compared "
                f"with another source, {second['not_covered']:,} not covered by one, "
                f"{second['number']:,} contradictions."
            )
        )
        if second["number"]:
            shown = second["findings"][:_SHOWN]
            rows = tuple((item["text"], item["detail"]) for item in shown)
            found.append(Table(("question", "what speaks against it"), rows, labels=2))
    if spot and spot.get("agreement"):
        found.append(_agreement(spot["agreement"]))
    return found


def _agreement(both: Mapping[str, Any]) -> Table:
    kappa = number_cell(both["kappa"], digits=2, missing="undefined: nobody varies")
    row = (number_cell(both["questions"]), share_cell(both["equal"]), kappa)
    return Table(("judged by two people", "equal verdicts", "kappa"), (row,), labels=0)


def _domains(document: Mapping[str, Any]) -> Table:
    return Table(
        ("domain", "questions", "exact", "by alias", "overlapping", "problems"),
        tuple(
            (
                entry["domain"],
                *(number_cell(entry[name]) for name in _CHECKED),
                number_cell(sum(entry["problems"].values())),
            )
            for entry in document["results"]
        ),
        title="Answers derived again from text and facts",
        note="exact: the references are all right answers and no others (by alias: under "
        "another name); overlapping: united subjects share an answer",
    )


def _findings(findings: Mapping[str, Any]) -> Table:
    shown = findings["listed"][:_SHOWN]
    more = findings["number"] - len(shown)
    return Table(
        ("question", "what is wrong"),
        tuple((item["text"], item["detail"] or item["problem"]) for item in shown),
        title="Findings",
        note=f"and {more:,} more; up to 200 are in the JSON" if more > 0 else "",
        labels=2,
    )
