"""Judged answers in the manner of Humanity's Last Exam: a JSON object, one entry per question.

An entry has ``response`` and ``judge_response`` with ``model_answer``, ``correct`` (yes or no) and
``confidence`` in percent, as the judge read it in the response.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.json_text import load_json, readable_samples
from calibrant.records.convert.log import ForeignLog, LogBuilder, finite_number
from calibrant.records.convert.options import ReadOptions

__all__ = ["is_judged", "read_judged"]

KIND = "hle"
_GRADES = {"yes": 1.0, "no": 0.0}
_JUDGED = b'"judge_response"'


def is_judged(head: bytes) -> bool:
    """Return whether the beginning of a file is that of judged answers."""
    return head.lstrip().startswith(b"{") and _JUDGED in head


def read_judged(path: Path, options: ReadOptions) -> ForeignLog:
    """Read judged answers; entries that the judge has not answered are listed."""
    builder = LogBuilder(KIND, str(path))
    for question, entry in _entries(path, builder).items():
        judged = entry.get("judge_response") if isinstance(entry, dict) else None
        if not isinstance(judged, dict):
            builder.problem(f"question {question}", "not judged")
            continue
        _add(builder, str(question), entry, judged, options)
    return builder.finish()


def _entries(path: Path, builder: LogBuilder) -> dict[str, Any]:
    """Return the entries; of a damaged file those before the damage, and a count of the rest."""
    data = path.read_bytes()
    try:
        entries = load_json(data)
    except ValueError as error:
        entries = readable_samples(data, rows="")
        read = sum(isinstance(e, dict) and "judge_response" in e for e in entries.values())
        lost = data.count(_JUDGED) - read
        rest = (
            f"at least {lost} of its entries cannot be read" if lost else "its end may be missing"
        )
        builder.problem(path.name, f"the JSON is damaged: {error}; {rest}")
    if not isinstance(entries, dict) or not entries:
        raise InputError("no entry of the file can be read", source=str(path))
    builder.expected = len(entries) if not builder.problems else None
    return entries


def _add(
    builder: LogBuilder,
    question: str,
    entry: dict[str, Any],
    judged: dict[str, Any],
    options: ReadOptions,
) -> None:
    correct = _GRADES.get(str(judged.get("correct")).strip().lower())
    reference = judged.get("correct_answer")
    builder.question(
        question_id=question,
        text=str(entry.get("question", "")),
        references=[[str(reference)]] if reference is not None else None,
        kind="open",
    )
    text = str(entry.get("response", ""))
    answer = str(judged.get("model_answer", text))
    key = {"question_id": question, "model": str(entry.get("model", "model")), "draw": 0}
    builder.draw(
        **key,
        text=text if options.texts else None,
        answer=answer,
        correct=correct,
        reason=None if correct is not None else f"the judge says {judged.get('correct')!r:.40}",
        grader="judge",
    )
    confidence = finite_number(judged.get("confidence"))
    if confidence is None:
        builder.problem(f"question {question}", "the judge gives no confidence")
        return
    builder.score(
        **key, method="verb", answer=answer, confidence=confidence / 100.0, correct=correct
    )
