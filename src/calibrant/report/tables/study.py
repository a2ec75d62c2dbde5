"""Who was asked what, how often, at what cost: the provenance of a study's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import money_cell, number_cell


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.study/1`` document."""
    parts: list[Paragraph | Table] = [Paragraph(_sentence(document), strong=True)]
    if document["asked"]:
        parts.append(_asked(document["asked"]))
    if document["prompts"]:
        parts.append(_prompts(document["prompts"]))
    if document["graders"]:
        rows = tuple((name, number_cell(count)) for name, count in document["graders"].items())
        parts.append(Table(("grader", "answers"), rows, title="Who graded"))
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    parts.append(Paragraph(f"Made with {versions}."))
    return parts


def _sentence(document: Mapping[str, Any]) -> str:
    models = ", ".join(
        f"{entry['model']} ({entry['name_at_endpoint']} by {entry['client']}, temperature "
        f"{entry['temperature']:g})"
        for entry in document["models"]
    )
    draws = sum(entry["draws"] for entry in document["asked"])
    purposes = len({entry["purpose"] for entry in document["asked"]})
    costs = [entry.get("cost") for entry in document["asked"]]
    known = [cost for cost in costs if cost is not None]
    price = f" for ${sum(known):,.2f}" if costs and len(known) == len(costs) else ""
    unknown = "" if price else " What they cost is not known."
    by = f" of {models}" if models else ""
    kinds = f" to {purposes} kinds of prompt" if purposes > 1 else ""
    return f"{document['name']}: {draws:,} answers{by}{kinds}{price}.{unknown}"


def _asked(entries: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            str(entry["model"]),
            str(entry["purpose"]),
            number_cell(entry["draws"]),
            number_cell(entry.get("prompt_tokens")),
            number_cell(entry.get("completion_tokens")),
            number_cell(entry.get("cut_off")),
            money_cell(entry.get("cost")),
        )
        for entry in entries
    )
    return Table(
        ("model", "purpose", "draws", "prompt tokens", "reply tokens", "cut off", "cost"),
        rows,
        title="What was asked",
        note="'Cut off': replies that reached their longest length, as one-token votes always do.",
        labels=2,
    )


def _prompts(entries: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            entry["purpose"],
            entry["prompt"],
            ", ".join(entry["models"]),
            entry["system"],
            entry["user"],
            number_cell(entry["examples"]),
            number_cell(entry["max_tokens"]),
        )
        for entry in entries
    )
    return Table(
        ("purpose", "prompt", "models", "system", "user", "examples", "most tokens"),
        rows,
        title="Prompts",
        note="Names in braces are filled in for each question; worked examples go before it.",
        labels=5,
        folded=True,
    )
