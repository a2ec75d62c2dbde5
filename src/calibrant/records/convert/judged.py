"""Judged answers in the manner of Humanity's Last Exam: one entry per question.

An entry has ``response`` and ``judge_response`` with ``model_answer``, ``correct`` (yes or no) and
``confidence`` in percent, as the judge read it in the response. The judge is told to write 100
where the response states none, so a 100 that the response does not contain is no confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.believed import stated_percent
from calibrant.records.convert.json_text import (
    ReadOptions,
    finite_number,
    json_lines,
    load_json,
    readable_samples,
)
from calibrant.records.convert.log import ForeignLog, LogBuilder

KIND = "hle"
_GRADES = {"yes": 1.0, "no": 0.0}
_JUDGED = b'"judge_response"'
_DEFAULT = 100.0
"""What the judge writes where a response states no confidence."""


def is_judged(head: bytes) -> bool:
    """Return whether the beginning of a file is that of judged answers."""
    return head.lstrip().startswith(b"{") and _JUDGED in head


def is_judged_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a list or of a jsonl file is a judged answer."""
    return isinstance(row.get("judge_response"), Mapping)


def read_judged(path: Path, options: ReadOptions) -> ForeignLog:
    """Read judged answers; entries that the judge has not answered are listed."""
    builder = LogBuilder(KIND, str(path))
    for question, entry in _entries(path, builder).items():
        judged = entry.get("judge_response") if isinstance(entry, dict) else None
        if not isinstance(judged, dict):
            builder.problem(f"question {question}", "not judged")
            continue
        _add(builder, str(question), entry, judged, options)
    log = builder.finish()
    if not log.draws.height:
        raise InputError("no entry of the file is judged", source=str(path))
    return log


def _entries(path: Path, builder: LogBuilder) -> dict[str, Any]:
    """Return the entries; of a damaged file those before the damage, and a count of the rest."""
    data = path.read_bytes()
    if _is_row(data):
        lines = [(f"line {number}", row) for number, row in json_lines(path, builder)]
        builder.expected = len(lines) + len(builder.problems)
        return {str(row.get("id", place)): row for place, row in lines}
    try:
        entries = load_json(data)
        if isinstance(entries, list):
            rows = [one for one in entries if isinstance(one, dict)]
            entries = {str(one.get("id", f"entry {i}")): one for i, one in enumerate(rows, 1)}
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


def _is_row(data: bytes) -> bool:
    """Return whether the first line is a whole entry, as in a jsonl file."""
    try:
        row = load_json(data.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(row, dict) and is_judged_row(row)


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
    if confidence == _DEFAULT and text and "100" not in text and stated_percent(text) is None:
        builder.problem(
            f"question {question}",
            "the response states no confidence; the judge writes 100 there, which is not read",
        )
        return
    builder.score(
        **key, method="verb", answer=answer, confidence=confidence / 100.0, correct=correct
    )
