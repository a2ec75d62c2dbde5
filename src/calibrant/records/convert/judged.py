"""Judged answers in the manner of Humanity's Last Exam: one entry per question.

An entry has ``response`` and ``judge_response`` with ``model_answer``, ``correct`` (yes or no) and
``confidence`` in percent, as the judge read it in the response. The judge is told to write 100
where the response states none, so a 100 that the response does not contain is no confidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.believed import stated_percent
from calibrant.records.convert.exchange import (
    Exchange,
    NoAnswerError,
    grade_value,
    read_exchanges,
)
from calibrant.records.convert.json_text import (
    ReadOptions,
    finite_number,
    json_lines,
    load_json,
    read_json,
)
from calibrant.records.convert.kinds import kind_of_row
from calibrant.records.convert.log import ForeignLog, LogBuilder

_DEFAULT = 100.0
"""What the judge writes where a response states no confidence."""


def read_hle(path: Path, options: ReadOptions) -> ForeignLog:
    """Read judged answers; entries that the judge has not answered are listed."""
    builder = LogBuilder("hle", str(path))

    def exchanges(row: tuple[str, Any]) -> Iterator[Exchange]:
        question, entry = row
        judged = entry.get("judge_response") if isinstance(entry, Mapping) else None
        if not isinstance(judged, Mapping):
            raise NoAnswerError("not judged")
        yield _answer(builder, question, entry, judged)

    rows = ((f"question {name}", (name, entry)) for name, entry in _entries(path, builder).items())
    no_entry = "no entry of the file is judged"
    return read_exchanges(
        builder, rows, exchanges, options, row_is="an entry", or_else=no_entry
    ).finish()


def _entries(path: Path, builder: LogBuilder) -> dict[str, Any]:
    """Return the entries by question; of a damaged file those before the damage."""
    data = path.read_bytes()
    if _is_row(data.partition(b"\n")[0]):
        lines = [(f"line {number}", row) for number, row in json_lines(path, builder)]
        entries = {str(row.get("id", place)): row for place, row in lines}
        builder.expected = len(entries) + len(builder.problems)
        return entries
    found = read_json(path, builder)
    if isinstance(found, list):
        rows = [one for one in found if isinstance(one, dict)]
        found = {str(one.get("id", f"entry {at}")): one for at, one in enumerate(rows, 1)}
    if not isinstance(found, dict) or not found:
        raise InputError("no entry of the file can be read", source=str(path))
    if not builder.problems:
        builder.expected = len(found)
    else:
        read = sum(isinstance(one, dict) and "judge_response" in one for one in found.values())
        lost = data.count(b'"judge_response"') - read
        if lost:
            builder.problem(path.name, f"at least {lost} of its entries cannot be read")
    return found


def _is_row(line: bytes) -> bool:
    """Return whether the first line is a whole entry, as in a jsonl file."""
    try:
        row = load_json(line)
    except ValueError:
        return False
    return isinstance(row, dict) and kind_of_row(row) == "hle"


def _answer(
    builder: LogBuilder, question: str, entry: Mapping[str, Any], judged: Mapping[str, Any]
) -> Exchange:
    correct, text = grade_value(str(judged.get("correct"))), str(entry.get("response", ""))
    confidence, reference = finite_number(judged.get("confidence")), judged.get("correct_answer")
    made_up = confidence == _DEFAULT and text and "100" not in text and stated_percent(text) is None
    if confidence is None:
        builder.problem(f"question {question}", "the judge gives no confidence")
    elif made_up:
        builder.problem(
            f"question {question}",
            "the response states no confidence; the judge writes 100 there, which is not read",
        )
    return Exchange(
        question_id=question,
        question=str(entry.get("question", "")),
        text=text,
        answer=str(judged.get("model_answer", text)),
        model=str(entry.get("model", "model")),
        draw=0,
        correct=correct,
        reason=None if correct is not None else f"the judge says {judged.get('correct')!r:.40}",
        grader="judge",
        scores={} if confidence is None or made_up else {"verb": confidence / 100.0},
        references=[str(reference)] if reference is not None else (),
    )
