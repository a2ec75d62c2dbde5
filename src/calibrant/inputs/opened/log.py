"""Logs of other tools as an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.inputs.logs import ForeignTables
from calibrant.inputs.opened.base import Columns, Opened
from calibrant.records import Scores, load_scores


class OpenLog(Opened):
    """One or several logs, read as one evaluation."""

    whole_record = True

    def __init__(self, tables: ForeignTables, given: Any) -> None:
        self.given = given
        self.tables = tables
        self.notes = tables.notes
        self.non_probability = frozenset(tables.ranking)
        self.unreadable = tables.dropped()[0]

    def has_repeats(self) -> bool:
        """Rows of one question are the draws that were logged."""
        return True

    def _load(self, rules: dict[str, Any]) -> Scores:
        own = {**rules, "scale": self.scale_of_scores(rules["scale"])}
        scores = load_scores(self.tables.scores, **own)
        counts, rows = self.tables.dropped()
        return replace(
            scores,
            dropped={**scores.dropped, **counts},
            dropped_rows={**scores.dropped_rows, **rows},
        )

    def scores_table(self) -> pl.DataFrame:
        """Return one row per question, model and method."""
        return self.tables.one_row_per_question()

    def every_row(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the confidences of all draws."""
        return self.tables.scores, {}

    def questions(self) -> pl.DataFrame | None:
        """Return the questions of the logs."""
        return self.tables.questions

    def scale_of_scores(self, scale: str | None) -> str | None:
        """How the log wrote a confidence was known where it was read."""
        return "fraction"

    def draws(self, columns: Columns, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return the draws with the meanings that their answers have."""
        return self.tables.draws_with_classes()

    def _questions(self, draws: pl.DataFrame) -> pl.DataFrame | None:
        return self.questions()

    def require_usable(self) -> None:
        """Say what is missing where a log has no confidence or no grade at all."""
        tables = self.tables
        if tables.scores.height and tables.draws["correct"].null_count() == tables.draws.height:
            raise InputError(
                "the log holds no grades",
                source=tables.logs[0].source,
                hint=Hint(
                    "grade the answers first: {call} gives their tables",
                    call=Call("import", "LOG", out="FOLDER"),
                ),
            )
        if tables.scores.height == 0:
            made_up = [note for note in tables.notes if "placeholder" in note]
            why = made_up or [
                "one reply per question, without token probabilities or a stated confidence"
            ]
            raise InputError(
                f"the log holds grades but no confidence: {why[0]}",
                source=tables.logs[0].source,
                hint="run several epochs, ask for logprobs, or use calibrant's scorers; see the "
                "recipes in the documentation",
            )
