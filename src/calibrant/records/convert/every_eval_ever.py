"""Samples of Every Eval Ever, the shared format of the EvalEval coalition: a JSON object per line.

The format has no field for a confidence; one that stands in the metadata of a sample is read. Of
several replies to one sample nobody knows which is graded: they are draws without a grade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Exchange,
    NoAnswerError,
    grade_value,
    read_exchanges,
)
from calibrant.records.convert.json_text import ReadOptions, as_text, json_rows
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder


def read_every_eval_ever(path: Path, options: ReadOptions) -> ForeignLog:
    """Read samples; the same sample of a model again is another draw of it."""
    builder = LogBuilder("every-eval-ever", str(path))
    none = "no sample has an answer"
    rows = json_rows(path, builder)
    read_exchanges(builder, rows, _exchanges, options, row_is="a sample", or_else=none)
    return builder.finish()


def _exchanges(row: Mapping[str, Any]) -> Iterator[Exchange]:
    if row.get("error"):
        raise NoAnswerError(f"the sample failed: {row['error']!r:.120}")
    asked, graded = row["input"], row["evaluation"]
    replies = _replies(row)
    taken = [one["extracted_value"] for one in row["answer_attribution"] if one.get("is_terminal")]
    usage = row.get("token_usage") or {}
    for place, text in enumerate(replies):
        correct = grade_value(graded["is_correct"]) if len(replies) == 1 else None
        yield Exchange(
            question_id=str(row["sample_id"]),
            question=str(asked["raw"]),
            text=text,
            answer=as_text(taken[0]) if taken and len(replies) == 1 else text,
            model=str(row["model_id"]),
            draw=place if len(replies) > 1 else None,
            correct=correct,
            reason=None if correct is not None else FILTERED_ONLY,
            grader="is_correct",
            confidence=(row.get("metadata") or {}).get(CONFIDENCE),
            task=str(row["evaluation_name"]),
            references=[str(one) for one in asked.get("reference") or ()],
            choices=[str(one) for one in asked.get("choices") or ()],
            details={
                "prompt_tokens": usage.get("input_tokens"),
                "completion_tokens": usage.get("output_tokens"),
            },
        )


def _replies(row: Mapping[str, Any]) -> list[str]:
    """Return the replies to a sample; of a conversation its last message."""
    raw = (row.get("output") or {}).get("raw") or []
    said = [m.get("content") for m in row.get("messages") or () if m.get("role") == "assistant"]
    found = ([raw] if isinstance(raw, str) else raw) or [text for text in said if text][-1:]
    if not found:
        raise NoAnswerError("there is no reply")
    return [str(text) for text in found]
