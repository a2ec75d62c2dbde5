"""A study folder as an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from calibrant.inputs.opened.base import Columns, Opened
from calibrant.records import Scores, Study, load_scores, scan_table
from calibrant.records.tables import column_names

_KEY = ["question_id", "model", "purpose", "draw"]


class OpenStudy(Opened):
    """The tables of a study: scores, and draws with their meanings where it has them."""

    whole_record = True

    def __init__(self, study: Study, given: Any = None) -> None:
        self.given = study.path if given is None else given
        self.study = study

    @property
    def error_name(self) -> str | None:
        """The folder."""
        return str(self.given)

    def has_repeats(self) -> bool:
        """Return whether there is a row per draw: an imported log has one."""
        table = self.study.table_path("scores")
        return table.is_file() and "draw" in column_names(scan_table(table), table)

    def _load(self, rules: dict[str, Any]) -> Scores:
        return load_scores(self.scores_table(), **rules)

    def scores_table(self) -> pl.DataFrame:
        """Return the scores of the study."""
        return self.study.read("scores")

    def probabilities_table(self, columns: Columns) -> tuple[pl.DataFrame, Columns]:
        """Return the scores of methods that state a chance of one answer being right or wrong.

        A study holds others too: some only rank answers, some are about several draws at once and
        have the share of them that is right as their outcome.
        """
        # Loaded here: reading a table needs no method.
        from calibrant.confidence import ranking_methods

        table = self.scores_table()
        if not {"method", "correct"} <= set(table.columns):
            return table, columns
        grade = pl.col("correct").cast(pl.Float64)
        shares = table.filter((grade > 0) & (grade < 1))["method"].unique().to_list()
        kept = table.filter(~pl.col("method").is_in([*sorted(ranking_methods()), *shares]))
        return (kept if kept.height else table), columns

    def candidates(self) -> pl.DataFrame | None:
        """Return the candidates that every model judged, where the study has them."""
        return self.study.read("candidates") if self.study.has("candidates") else None

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether the study has a table of scores."""
        return confidence is not None or self.study.has("scores")

    def draws(self, columns: Columns, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return the draws with their classes; groups come from the table of questions."""
        study = self.study
        if not (study.has("draws") and study.has("semantics")):
            return None
        answers = study.read("draws")
        wanted = [name for name in ("answer", "stated_confidence") if name in answers.columns]
        draws = study.read("semantics").join(answers.select(*_KEY, *wanted), on=_KEY, how="left")
        draws = draws.filter(pl.col("purpose") == "answer")
        if by and study.has("questions"):
            questions = study.read("questions")
            known = [name for name in by if name in questions.columns and name not in draws.columns]
            draws = draws.join(
                questions.select("question_id", *known),
                on="question_id",
                how="left",
                maintain_order="left",
            )
        return draws

    def questions(self) -> pl.DataFrame | None:
        """Return the questions of the study."""
        return self.study.read("questions") if self.study.has("questions") else None

    def _questions(self, draws: pl.DataFrame) -> pl.DataFrame | None:
        return self.questions()
