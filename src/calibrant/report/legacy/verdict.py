"""The opening of a report: how calibrated, how sure, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.blocks import Paragraph, estimate_cell
from calibrant.report.legacy.summary import audit_sentences, right_share
from calibrant.report.multiplicity import pairs_rule
from calibrant.report.terminal import document_blocks

__all__ = ["opening_sentences"]

_SENTENCES = 3


def opening_sentences(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return about three plain sentences, from the documents and nothing else."""
    by_kind = {kind_of(document): document for document in reversed(list(documents))}
    if "audit" in by_kind and by_kind["audit"]["results"]:
        return _audited(by_kind["audit"], by_kind.get("compare"))
    if "audit" in by_kind and by_kind["audit"].get("sem_ece"):
        return [_by_meaning(block) for block in by_kind["audit"]["sem_ece"][:_SENTENCES]]
    if "compare" in by_kind:
        return _compared(by_kind["compare"])
    strong = [
        block.text
        for document in documents
        for block in document_blocks(document)
        if isinstance(block, Paragraph) and block.strong
    ]
    return strong[:_SENTENCES]


def _audited(document: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> list[str]:
    results: Sequence[Mapping[str, Any]] = document["results"]
    whole = [entry for entry in results if not entry.get("group")]
    if len(whole) == 1:
        verdict = whole[0]["verdict"]
        return [verdict["how"], verdict["sure"], verdict["next"]]
    return [*audit_sentences(document), *_next(comparison)]


def _by_meaning(block: Mapping[str, Any]) -> str:
    return (
        f"{right_share(block['model'], block['accuracy'])} on {block['questions']:,} questions; "
        f"the calibration error by meaning is {estimate_cell(block['sem1'])} read off all draws "
        f"(Sem1) and {estimate_cell(block['sem2'])} read off draws that did not choose the "
        "meaning (Sem2)."
    )


def _compared(document: Mapping[str, Any]) -> list[str]:
    pairs: Sequence[Mapping[str, Any]] = document["pairs"]
    if len(pairs) == 1:
        return [pairs[0]["verdict"]]
    shown = [pair for pair in pairs if pair["better"]["da"] is not None]
    first = f"{_what(pairs)}: at equal accuracy "
    if shown:
        # Two models that are not told apart have no order that could turn round.
        turned = sum(pair["reversal"]["da"] for pair in shown)
        both = sum(pair["reversal_resolved"]["da"] for pair in shown)
        first += (
            f"{len(shown)} of {len(pairs)} comparisons show which model is better calibrated, and "
            f"in {turned} of these the other one has the smaller raw error (shown in {both}); the "
            "rest are not told apart by these labels."
        )
    else:
        first += (
            f"none of {len(pairs)} comparisons says which model is better calibrated: these labels "
            "do not tell them apart."
        )
    return [
        f"{first} {pairs_rule(document)}",
        *[pair["verdict"] for pair in pairs[: _SENTENCES - 1]],
    ]


def _what(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Name what was compared: the two models, or how many there are."""
    models = dict.fromkeys(name for pair in pairs for name in (pair["a"], pair["b"]))
    methods = {pair["method"] for pair in pairs}
    text = " and ".join(models) if len(models) == 2 else f"{len(models)} models"
    text += f", by {len(methods)} confidences" if len(methods) > 1 else ""
    counts = {pair["accuracy_gap"]["n"] for pair in pairs}
    few, many = min(counts), max(counts)
    return (
        f"{text}, on {many:,} questions"
        if few == many
        else f"{text}, on {few:,} to {many:,} questions"
    )


def _next(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None or not comparison["pairs"]:
        return [
            "Next: see under 'what these labels can show' how fine a claim may be, and look for "
            "the groups where the confidence is wrong."
        ]
    return _compared(comparison)[:1]
