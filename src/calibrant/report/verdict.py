"""The opening of a report: how calibrated, how sure, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.blocks import Paragraph, estimate_cell
from calibrant.report.multiplicity import correction_clause
from calibrant.report.terminal import document_blocks

__all__ = ["opening_sentences"]

_MOSTLY_WRONG = 0.5
_MODELS_NAMED = 3
_SENTENCES = 3


def opening_sentences(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return about three plain sentences, from the documents and nothing else."""
    by_kind = {kind_of(document): document for document in reversed(list(documents))}
    if "audit" in by_kind and by_kind["audit"]["results"]:
        return _audited(by_kind["audit"], by_kind.get("compare"))
    if "audit" in by_kind and by_kind["audit"].get("sem_ece"):
        return [_by_meaning(block) for block in by_kind["audit"]["sem_ece"][:_SENTENCES]]
    if "compare" in by_kind:
        return _compared(by_kind["compare"]["pairs"])
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
    whole = whole or list(results)
    calibrated = [entry for entry in whole if entry["probability"]]
    rule = correction_clause(document, "whole")
    return [_known(whole), *_counted(calibrated, rule), *_next(comparison)]


def _known(entries: Sequence[Mapping[str, Any]]) -> str:
    """Say first how much is right: calibration of a model that knows nothing is no praise."""
    first = {str(entry["model"]): entry for entry in reversed(entries)}
    shares = {name: entry["metrics"]["accuracy"] for name, entry in reversed(first.items())}
    if len(shares) > _MODELS_NAMED:
        values = [share["value"] for share in shares.values()]
        text = (
            f"{len(shares)} models get {min(values):.0%} to {max(values):.0%} of the answers right"
        )
    else:
        text = ", ".join(_share(name, share) for name, share in shares.items())
        text += f" on {entries[0]['questions']:,} questions"
    if max(share["value"] for share in shares.values()) < _MOSTLY_WRONG:
        who = "it knows" if len(shares) == 1 else "they know"
        text += f": most answers are wrong, so {who} little here, however a confidence looks"
    return text + "."


def _share(name: str, share: Mapping[str, Any]) -> str:
    return f"{name} is right in {share['value']:.0%} [{share['low']:.0%}, {share['high']:.0%}]"


def _counted(entries: Sequence[Mapping[str, Any]], rule: str) -> list[str]:
    """Count the verdicts and name the smallest error, with the error of a calibrated model."""
    known = [entry for entry in entries if entry["metrics"]["ece"]["value"] is not None]
    if not known:
        return []
    words = [entry["verdict"]["calibration"] for entry in known]
    best = min(known, key=lambda entry: entry["metrics"]["ece"]["value"])
    ece, expected = best["metrics"]["ece"], best["calibration_test"]["expected_ece"]
    several = len({entry["method"] for entry in known}) > 1
    name = f"{best['model']} / {best['method']}" if several else str(best["model"])
    text = (
        f"The smallest calibration error of the {len(known)}, and so a flattered one, is "
        f"{estimate_cell(ece)}, of {name}"
    )
    if expected is not None:
        text += f", where a perfectly calibrated one would show {expected:.3f}"
    return [f"{_shown(words)}, {rule}.", text + "."]


def _shown(words: Sequence[str]) -> str:
    """Say how many are shown to be off, and in which way."""
    off = len(words) - words.count("no-evidence")
    ways = {
        "over-confident": "over-confident",
        "under-confident": "under-confident",
        "miscalibrated": "without a clear direction",
    }
    found = [f"{words.count(word)} {text}" for word, text in ways.items() if word in words]
    are = "is" if off == 1 else "are"
    text = f"{off} of {len(words)} confidences {are} shown to be miscalibrated"
    return text + (f" ({', '.join(found)})" if found else "")


def _by_meaning(block: Mapping[str, Any]) -> str:
    return (
        f"{_share(block['model'], block['accuracy'])} on {block['questions']:,} questions; the "
        f"calibration error by meaning is {estimate_cell(block['sem1'])} read off all draws "
        f"(Sem1) and {estimate_cell(block['sem2'])} read off draws that did not choose the "
        "meaning (Sem2)."
    )


def _compared(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    if len(pairs) == 1:
        return [pairs[0]["verdict"]]
    turned = sum(pair["reversal"]["da"] for pair in pairs)
    ties = sum(pair["ties"]["da"]["ece"] for pair in pairs)
    first = (
        f"{len(pairs)} pairs: at equal accuracy {ties} are ties for these labels, and in {turned} "
        "the model with the smaller raw error is no longer the better one."
    )
    return [first, *[pair["verdict"] for pair in pairs[: _SENTENCES - 1]]]


def _next(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None or not comparison["pairs"]:
        return [
            "Next: see under 'what these labels can show' how fine a claim may be, and look for "
            "the groups where the confidence is wrong."
        ]
    return [comparison["pairs"][0]["verdict"]]
