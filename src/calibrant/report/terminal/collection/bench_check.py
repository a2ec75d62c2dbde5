"""What a check of a benchmark found, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, number_cell

__all__ = ["blocks"]

_SHOWN = 10


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the findings of a check as neutral blocks."""
    number = document["findings"]["number"]
    verdict = (
        f"All {document['questions']:,} questions hold: k exact, no duplicate, no entity in two "
        "domains."
        if document["ok"]
        else f"{number:,} of {document['questions']:,} questions have other answers than their "
        f"references; {document['duplicates']['number']:,} duplicates; "
        f"{sum(pair['number'] for pair in document['shared_entities']):,} entities in two domains; "
        f"{document.get('second_look', {}).get('number', 0):,} contradicted by another source."
    )
    found: list[Paragraph | Table] = [
        Paragraph(verdict + _seen_twice(document) + _first_finding(document), strong=True),
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
    if number:
        found.append(_findings(document["findings"]))
    found.extend(_second_look(document))
    return found


def _seen_twice(document: Mapping[str, Any]) -> str:
    """Say how many questions another source has seen."""
    second = document.get("second_look")
    if not second or not second["looked_at"]:
        return ""
    rest = f"; {second['not_covered']:,} are not covered by one" if second["not_covered"] else ""
    return f" Another source has seen {second['looked_at']:,}{rest}."


def _first_finding(document: Mapping[str, Any]) -> str:
    """Return what is wrong with the first question that does not hold."""
    listed = [*document["findings"]["listed"], *document.get("second_look", {}).get("findings", ())]
    if not listed:
        return ""
    first = listed[0]
    return f" First: {first['text']} {first['detail'] or first['problem']}."


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
    if spot:
        wrong = spot["wrong"]
        found.append(
            Paragraph(
                f"A person found {wrong['value']:.0%} of {wrong['n']} sampled questions wrong "
                f"(95 % interval {wrong['low']:.0%} to {wrong['high']:.0%})."
            )
        )
    return found


def _domains(document: Mapping[str, Any]) -> Table:
    return Table(
        ("domain", "questions", "exact", "by alias", "overlapping", "problems"),
        tuple(
            (
                entry["domain"],
                number_cell(entry["questions"]),
                number_cell(entry["exact"]),
                number_cell(entry["by_alias"]),
                number_cell(entry["overlapping"]),
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
