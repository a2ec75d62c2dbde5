"""The rows that were asked for: answers that are wrong with the highest confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Table, cut_text
from calibrant.report.cells import Cell, Number, Text

TITLE = "Wrong with the highest confidence"
_LETTERS = 60
_TEXTS = ("question", "answer", "reference")


def wrong_table(document: Mapping[str, Any]) -> list[Table]:
    """Return the table of the most confidently wrong answers, where a document lists them."""
    rows = document.get("wrong")
    if not rows:
        return []
    texts = [name for name in _TEXTS if any(row.get(name) for row in rows)]
    own = [name for name in ("model", "method") if len({row[name] for row in rows}) > 1]
    ids = [] if "question" in texts else ["question_id"]
    names = [*ids, *texts, *own]
    return [
        Table(
            columns=("says", *(name.replace("_id", "") for name in names)),
            rows=tuple(
                (
                    Number(row["confidence"], unit="share", digits=0),
                    *(_cell(row.get(name)) for name in names),
                )
                for row in rows
            ),
            title=TITLE,
            labels=1 + len(names),
        )
    ]


def told_row(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a row in two lines: what was asked, and what was answered by whom.

    Examples
    --------
    >>> told_row({"question": "2+2?", "answer": "5", "reference": "4", "model": "m"})
    ('2+2?', 'answers 5; right: 4 (m)')
    """
    asked = row.get("question") or f"question {row['question_id']}"
    answer, right = row.get("answer"), row.get("reference")
    said = "; ".join([*([f"answers {answer}"] if answer else []),
                      *([f"right: {right}"] if right else [])])  # fmt: skip
    return str(asked), f"{said} ({row['model']})".strip() if said else str(row["model"])


def _cell(value: Any) -> Cell:
    whole = "" if value is None else str(value)
    words = cut_text(whole, _LETTERS)
    return words if words == whole else Text(words, whole)
