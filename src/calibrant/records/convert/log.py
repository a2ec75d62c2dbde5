"""What every reader of a foreign log is asked, what it returns, and the columns it fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from calibrant.records.convert.believed import without_placeholders

FILTERED_ONLY = "the log grades the filtered answer only"
"""Reason of a draw without a grade where a log grades one answer for all repeats."""

CHUNK = 2_000
"""Rows that are held as Python objects before they are packed into columns."""

_TOKENS = pl.List(pl.Struct({"token": pl.String(), "logprob": pl.Float64()}))
DRAW_COLUMNS: dict[str, pl.DataType] = {
    "question_id": pl.String(),
    "model": pl.String(),
    "task": pl.String(),
    "purpose": pl.String(),
    "draw": pl.Int64(),
    "text": pl.String(),
    "answer": pl.String(),
    "correct": pl.Float64(),
    "reason": pl.String(),
    "grader": pl.String(),
    "finish_reason": pl.String(),
    "token_logprobs": pl.List(pl.Float64()),
    "first_token_top_logprobs": _TOKENS,
    "temperature": pl.Float64(),
    "prompt_tokens": pl.Int64(),
    "completion_tokens": pl.Int64(),
}
SCORE_COLUMNS: dict[str, pl.DataType] = {
    "question_id": pl.String(),
    "model": pl.String(),
    "method": pl.String(),
    "answer": pl.String(),
    "confidence": pl.Float64(),
    "correct": pl.Float64(),
    "task": pl.String(),
    "draw": pl.Int64(),
}
QUESTION_COLUMNS: dict[str, pl.DataType] = {
    "question_id": pl.String(),
    "text": pl.String(),
    "references": pl.List(pl.List(pl.String())),
    "kind": pl.String(),
    "choices": pl.List(pl.String()),
    "domain": pl.String(),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of the log that could not be read: where, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForeignLog:
    """The readable part of a log, and a list of the rest.

    Parameters
    ----------
    kind, source
        Which tool wrote it; the path.
    questions, draws, scores
        Tables. A draw carries the log's own grade in ``correct`` (null with a ``reason``), a
        score is a confidence that the log holds, with the grade of its very answer.
    expected
        How much the log says it should hold, where it says so.
    expected_unit
        What is counted by `expected`: questions, draws, requests or rows.
    problems
        Parts that could not be read.
    notes
        What a reader of the result should know.
    ranking
        Methods whose score is no probability and only ranks.
    """

    kind: str
    source: str
    questions: pl.DataFrame
    draws: pl.DataFrame
    scores: pl.DataFrame
    expected: int | None = None
    expected_unit: str = "questions"
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()
    ranking: frozenset[str] = frozenset()


@dataclass(slots=True)
class LogBuilder:
    """Collects rows and packs them into columns chunk by chunk, so that memory stays bounded.

    Examples
    --------
    >>> builder = LogBuilder("example", "a.jsonl")
    >>> builder.draw(question_id="q", model="m", draw=0, text="Paris", correct=1.0)
    >>> builder.finish().draws.select("question_id", "purpose", "answer", "correct").row(0)
    ('q', 'answer', 'Paris', 1.0)
    """

    kind: str
    source: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    expected: int | None = None
    expected_unit: str = "questions"
    ranking: set[str] = field(default_factory=set)
    _rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def draw(self, **row: Any) -> None:
        """Add a draw; the answer is the text where the log names none."""
        row.setdefault("purpose", "answer")
        if row.get("answer") is None:
            row["answer"] = row.get("text")
        self._add("draws", DRAW_COLUMNS, row)

    def score(self, **row: Any) -> None:
        """Add a confidence that the log holds."""
        self._add("scores", SCORE_COLUMNS, row)

    def question(self, **row: Any) -> None:
        """Add a question, once."""
        if row["question_id"] not in self._known:
            self._known.add(row["question_id"])
            self._add("questions", QUESTION_COLUMNS, row)

    def problem(self, place: str, reason: str) -> None:
        """Note a part that could not be read."""
        self.problems.append(Problem(place, reason))

    def note(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.notes:
            self.notes.append(text)

    def expect_sum(self, counts: Sequence[Any], unit: str = "draws") -> None:
        """Keep how much there should be, where the log counts all of its parts."""
        if all(isinstance(count, int) for count in counts):
            self.expected, self.expected_unit = sum(counts), unit

    def finish(self) -> ForeignLog:
        """Return the tables; what a writer puts in place of a probability is taken out."""
        draws, scores, notes = without_placeholders(
            self._table("draws", DRAW_COLUMNS), self._table("scores", SCORE_COLUMNS)
        )
        for text in notes:
            self.note(text)
        return ForeignLog(
            self.kind,
            self.source,
            questions=self._table("questions", QUESTION_COLUMNS),
            draws=draws,
            scores=scores,
            expected=self.expected,
            expected_unit=self.expected_unit,
            problems=tuple(self.problems),
            notes=tuple(self.notes),
            ranking=frozenset(self.ranking),
        )

    def _add(self, table: str, columns: Mapping[str, pl.DataType], row: dict[str, Any]) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= CHUNK:
            self._pack(table, columns)

    def _pack(self, table: str, columns: Mapping[str, pl.DataType]) -> None:
        rows = self._rows.pop(table, [])
        try:
            # From rows, not column by column: nested columns are built several times faster so.
            frame = pl.DataFrame(rows, schema=dict(columns))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            frame = self._one_by_one(table, columns, rows)
        self._frames.setdefault(table, []).append(frame)

    def _one_by_one(
        self, table: str, columns: Mapping[str, pl.DataType], rows: Sequence[dict[str, Any]]
    ) -> pl.DataFrame:
        """Pack rows singly, so that one odd value costs its own row and no other."""
        frames = [pl.DataFrame(schema=dict(columns))]
        for row in rows:
            try:
                frames.append(pl.DataFrame([row], schema=dict(columns)))
            except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
                place = f"question {row.get('question_id')!r}, draw {row.get('draw')}"
                self.problem(place, f"a value of another type in {table}: {error}")
        return pl.concat(frames)

    def _table(self, table: str, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
        self._pack(table, columns)
        return pl.concat(self._frames.pop(table), rechunk=False)
