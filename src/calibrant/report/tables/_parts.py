"""The parts of an analysis by the question that each of them answers."""

from __future__ import annotations

from collections.abc import Mapping

_QUESTIONS = {
    "audit": "is the confidence calibrated",
    "audit_by_group": "is it calibrated in every group of questions",
    "compare": "is one model better calibrated, or only more accurate",
    "multi_answer": "does the confidence hold where several answers are right",
    "groups": "for whom is the confidence wrong",
    "cascade": "when to ask another model",
    "plan": "what can this many labels show",
    "methods": "which confidences the answers allow",
}


def part_name(part: str) -> str:
    """Return a part with its question.

    Examples
    --------
    >>> part_name("groups")
    'groups (for whom is the confidence wrong?)'
    """
    question = _QUESTIONS.get(part)
    return part if question is None else f"{part} ({question}?)"


def reason_text(entry: Mapping[str, str]) -> str:
    r"""Return why a part was left out, with what to do about it, on one line.

    Examples
    --------
    >>> reason_text({"part": "groups", "reason": "too few rows\n  -> label more"})
    'too few rows; to have it: label more'
    """
    rule, mark, hint = entry["reason"].partition("->")
    words = " ".join(rule.split())
    return f"{words}; to have it: {' '.join(hint.split())}" if mark else words
