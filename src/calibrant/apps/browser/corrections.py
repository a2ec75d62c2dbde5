"""Grades that somebody corrected: kept beside the table, which itself is never written."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from calibrant.core.errors import InputError

GRADES = ("right", "wrong", "as given")
_HALF = 0.5


class Corrections:
    """A file of corrections, one a line; the last one of an answer counts.

    Parameters
    ----------
    path
        Where they are kept; the file is made with the first correction.

    Examples
    --------
    >>> import tempfile
    >>> kept = Corrections(Path(tempfile.mkdtemp()) / "t.csv.corrections.jsonl")
    >>> kept.add({"question_id": "q1", "model": "m", "answer": "7", "correct": 0.0}, "right")
    >>> Corrections(kept.path).grade({"question_id": "q1", "model": "m", "answer": "7"})
    1.0
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: dict[tuple[str, str, str], float] = {}
        if path.is_file():
            for line in path.read_bytes().splitlines():
                self._take(orjson.loads(line))

    def __len__(self) -> int:
        return len(self._held)

    def add(self, row: Mapping[str, object], grade: str, note: str = "") -> None:
        """Keep what the grade of an answer should be, or take a correction back."""
        if grade not in GRADES:
            raise InputError(f"a grade is one of {', '.join(GRADES)}, got {grade!r}")
        key = {name: row.get(name) for name in ("question_id", "model", "answer")}
        entry = {**key, "was": row.get("correct"), "is": grade, "note": note, "at": time.time()}
        with self.path.open("ab") as file:
            file.write(orjson.dumps(entry) + b"\n")
        self._take(entry)

    def grade(self, row: Mapping[str, object]) -> float | None:
        """Return the corrected grade of an answer; None where nobody corrected it."""
        return self._held.get(_key(row))

    def graded(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with the word of its grade; what somebody corrected comes first."""
        fixed = self.grade(row)
        grade = row["correct"] if fixed is None else fixed
        word = "open" if grade is None else "wrong" if grade < _HALF else "right"
        words = "not graded" if word == "open" else word
        if fixed is not None:
            words += ", corrected"
        return {**row, "grade": word, "grade_words": words, "corrected": fixed is not None}

    def _take(self, entry: Mapping[str, object]) -> None:
        if entry["is"] == "as given":
            self._held.pop(_key(entry), None)
        else:
            self._held[_key(entry)] = 1.0 if entry["is"] == "right" else 0.0


def _key(row: Mapping[str, object]) -> tuple[str, str, str]:
    return str(row["question_id"]), str(row["model"]), str(row.get("answer") or "")
