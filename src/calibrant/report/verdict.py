"""The opening of a report: how calibrated, how sure, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.document import kind_of

__all__ = ["opening_sentences"]

_MOSTLY_WRONG = 0.5


def opening_sentences(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return about three plain sentences, from the documents and nothing else."""
    by_kind = {kind_of(document): document for document in reversed(list(documents))}
    if "audit" in by_kind and by_kind["audit"]["results"]:
        return _audited(by_kind["audit"]["results"], by_kind.get("compare"))
    if "compare" in by_kind:
        return [pair["verdict"] for pair in by_kind["compare"]["pairs"][:3]]
    return []


def _audited(
    results: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any] | None
) -> list[str]:
    whole = [entry for entry in results if not entry.get("group")]
    if len(whole) == 1:
        verdict = whole[0]["verdict"]
        return [verdict["how"], verdict["sure"], verdict["next"]]
    calibrated = [entry for entry in whole if entry["probability"]]
    words = [entry["verdict"]["calibration"] for entry in calibrated]
    counts = ", ".join(
        f"{words.count(word)} {word.replace('no-evidence', 'without evidence of miscalibration')}"
        for word in dict.fromkeys(words)
    )
    models = {entry["model"] for entry in whole}
    methods = {entry["method"] for entry in whole}
    first = (
        f"{len(whole)} scores ({_count(len(models), 'model')}, {_count(len(methods), 'method')}) "
        f"were audited: {counts}."
    )
    return [first, *_best(calibrated), *_next(comparison)]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _best(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    known = [entry for entry in entries if entry["metrics"]["ece"]["value"] is not None]
    if not known:
        return []
    best = min(known, key=lambda entry: entry["metrics"]["ece"]["value"])
    ece, accuracy = best["metrics"]["ece"], best["metrics"]["accuracy"]
    text = (
        f"The smallest calibration error is {ece['value']:.3f} [{ece['low']:.3f}, "
        f"{ece['high']:.3f}], for {best['model']} / {best['method']} on {best['questions']:,} "
        f"questions, where {accuracy['value']:.0%} of the answers are right."
    )
    if accuracy["value"] < _MOSTLY_WRONG:
        text += " A small error of a model that is mostly wrong is no praise: it knows little."
    return [text]


def _next(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None or not comparison["pairs"]:
        return ["See the labels that a finer claim would need, and where the confidence is wrong."]
    return [comparison["pairs"][0]["verdict"]]
