"""Compare every question with another source, and with rules of plausibility."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from calibrant.core.errors import MissingDependencyError
from calibrant.sources.mace.question import Question
from calibrant.sources.mace.second_look.plausible import implausible
from calibrant.sources.mace.second_look.sources import (
    look_at_divisions,
    look_at_languages,
    look_at_numbers,
)

_LOOKS: dict[str, Callable[[Question], str | None]] = {
    "language": look_at_languages,
    "region": look_at_divisions,
    "math": look_at_numbers,
}
UNSEEN = "not covered"


def second_look(questions: Sequence[Question]) -> dict[str, Any]:
    """Return what other sources say about the questions.

    Returns
    -------
    dict
        ``looked_at``: questions that another source covers; ``not_covered``; ``findings``: one
        entry per contradiction, with the question, the rule or source and the detail.
    """
    findings: list[dict[str, Any]] = []
    seen: Counter[bool] = Counter()
    for question in questions:
        problems = [("plausibility", text) for text in implausible(question)]
        found = _contradiction(question)
        seen[found != UNSEEN] += 1
        if found not in (None, UNSEEN):
            problems.append(("another source", str(found)))
        findings.extend(_entries(question, problems))
    return {"looked_at": seen[True], "not_covered": seen[False], "findings": findings}


def _contradiction(question: Question) -> str | None:
    look = _LOOKS.get(question.domain)
    if look is None:
        return UNSEEN
    try:
        return look(question)
    except MissingDependencyError:
        return UNSEEN  # the package with the other source is not installed


def _entries(question: Question, problems: Iterable[tuple[str, str]]) -> Iterable[dict[str, Any]]:
    for rule, detail in problems:
        yield {
            "question_id": question.question_id,
            "domain": question.domain,
            "text": question.text,
            "rule": rule,
            "detail": detail,
        }
