"""What a generated benchmark is made of, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.bench import fewer_questions
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell


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
                number_cell(entry["subjects"]),
                number_cell(entry["objects"]),
                number_cell(entry["answer_sets"]),
                number_cell(entry["candidates"]),
                number_cell(entry["questions"]),
                "/".join(str(part["questions"]) for part in entry["by_k"]),
            )
            for entry in document["results"]
        ),
        title="Statistics",
        note="subjects, answers, sets of answers: different ones in the questions used",
    )
