"""The rows of what was served: one per question, whole, and callers only in their own columns."""

import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import orjson

from calibrant.apps.serving.replies import ServedReply
from calibrant.core.append_only import AppendOnly
from calibrant.core.errors import InputError
from calibrant.trust.policy_file import CALLER, Row

MOST_FIELDS, LONGEST_NAME = 64, 64
KEPT_BACK = 10_000
"""Rows that wait for room at most."""


def caller_fields(about: Mapping[str, object]) -> dict[str, object]:
    """Return what a caller says of a question, in columns that are its own.

    Examples
    --------
    >>> caller_fields({"question_id": "7", "category": "law", "correct": 1, "choices": ["a"]})
    {'caller.category': 'law', 'caller.correct': 1}
    """
    plain = {k: v for k, v in about.items() if isinstance(v, str | int | float | bool)}
    return {f"{CALLER}{name}": value for name, value in plain.items() if name != "question_id"}


def check_fields(about: Mapping[str, object]) -> None:
    """Refuse what would make a table of thousands of columns."""
    if len(about) > MOST_FIELDS or any(len(str(name)) > LONGEST_NAME for name in about):
        raise InputError(
            f"calibrant takes up to {MOST_FIELDS} fields with names of up to {LONGEST_NAME} "
            "letters",
        )


def row_of(
    reply: ServedReply,
    question_id: str,
    text: str,
    known: Row,
    *,
    time: str,
    seconds: float,
    method: str,
) -> dict[str, object]:
    """Return the row of a question; what the program says comes last and wins."""
    return {
        **caller_fields(known),
        "id": reply.id,
        "question_id": question_id,
        "question": text,
        "model": reply.model,
        "method": method,
        "answer": reply.answer,
        "confidence": reply.confidence,
        "probability": reply.probability,
        "decision": reply.decision,
        "policy": reply.policy,
        "cost": reply.cost,
        "seconds": seconds,
        "promised": not reply.promise.startswith("none"),
        "shift": reply.shift,
        "time": time,
    }


class RowFile:
    """Rows on their way to the disk; those for which there is no room wait in memory.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = AppendOnly(path)
        self._waiting: deque[bytes] = deque(maxlen=KEPT_BACK)
        self.problem: str | None = None
        """Why the last row could not be written."""

    @property
    def waiting(self) -> int:
        """Rows that are not on the disk yet."""
        return len(self._waiting)

    def write(self, row: Mapping[str, object]) -> bool:
        """Write a row and what waits before it; return whether they are there."""
        self._waiting.append(orjson.dumps(row, default=str))
        return self.catch_up()

    def catch_up(self) -> bool:
        """Write what waits; return whether nothing waits any more."""
        if self.problem is None and not self._waiting:
            return True
        try:
            self._file.append(*self._waiting)
        except OSError as error:
            if self.problem is None:
                where = self._file.path
                sys.stderr.write(f"calibrant serve: {where} cannot be written: {error.strerror}\n")
            self.problem = error.strerror or "it cannot be written"
            return False
        self._waiting.clear()
        self.problem = None
        return True
