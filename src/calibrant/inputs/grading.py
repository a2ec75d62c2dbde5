"""Grades that the program made itself: how sure each is, and what people said who checked it.

Every verb that reads outcomes from such grades takes them here, joined with its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.records import Study
from calibrant.records.formats import is_study
from calibrant.records.label_store import LabelStore
from calibrant.stats.graded.checks import Checked, Graded

ANSWER = ["question_id", "model", "answer"]
_DRAW = ["question_id", "model", "purpose", "draw"]
# The chance that a verdict of a judge is right, before people have checked any of its verdicts.
_JUDGED = 0.9
# Graders that read a choice: they leave nothing open.
_BY_CHOICE = ("letter", "binary")
# A row that no grade is known for counts as firm, as long as there are few of them.
_FIRM, _MOST_UNKNOWN = 0.99, 0.05


def checks_path(study: str | Path) -> Path:
    """Return where the checked grades of a study are kept.

    Examples
    --------
    >>> checks_path("my_study").as_posix()
    'my_study/grades.sqlite'
    """
    return Path(study) / "grades.sqlite"


@dataclass(frozen=True, slots=True)
class Grades:
    """Machine grades by answer.

    Parameters
    ----------
    answers
        Columns ``question_id``, ``model``, ``answer``, ``grader``, ``correct``, ``chance`` (of
        being right) and ``checked`` (1 or 0 where people looked at it, else null).
    """

    answers: pl.DataFrame

    @classmethod
    def of_tables(
        cls, draws: pl.DataFrame, semantics: pl.DataFrame, checks: Path | None = None
    ) -> Grades | None:
        """Return the grades of a study, or None where people or another program made them.

        Parameters
        ----------
        draws, semantics
            Tables as in a study.
        checks
            Store of checked grades, where there may be one.
        """
        if "chance" not in semantics.columns or not semantics["chance"].is_not_null().any():
            return None
        judged = pl.when("correct").then(_JUDGED).otherwise(1.0 - _JUDGED)
        graded = (
            semantics.filter(
                pl.col("correct").is_not_null(), ~pl.col("grader").str.starts_with("given")
            )
            .join(draws.select(*_DRAW, "answer"), on=_DRAW, how="inner")
            .unique(ANSWER, keep="first", maintain_order=True)
            .select(*ANSWER, "grader", "correct", pl.col("chance").fill_null(judged))
        )
        if graded["grader"].is_in(_BY_CHOICE).all():
            return None
        found = _labels(checks)
        return cls(graded.join(found, on=ANSWER, how="left", maintain_order="left"))

    def of(self, rows: pl.DataFrame) -> Checked | None:
        """Return the grades behind some rows with their checks; None where others graded them.

        Checks count where each question has one row: rows of one question depend on each other.

        Parameters
        ----------
        rows
            Of one model and method: ``question_id``, ``model``, ``answer``, ``confidence`` and
            ``correct``.
        """
        if "answer" not in rows.columns or not rows["correct"].is_in([0.0, 1.0]).all():
            return None
        found = rows.select(
            pl.col(ANSWER).cast(pl.String), pl.col("confidence", "correct").cast(pl.Float64)
        ).join(
            self.answers.select(*ANSWER, "chance", "checked"),
            on=ANSWER,
            how="left",
            maintain_order="left",
        )
        if found["chance"].null_count() > _MOST_UNKNOWN * found.height:
            return None
        firm = (1.0 - pl.col("correct") - _FIRM).abs()
        chance = found.select(pl.col("chance").fill_null(firm))["chance"].to_numpy()
        confidence, grade = (found[name].to_numpy() for name in ("confidence", "correct"))
        graded = Graded.of_chances(confidence, grade, chance)
        known = found["checked"].is_not_null()
        if rows["question_id"].n_unique() < rows.height:
            known &= False
        places = np.flatnonzero(known.to_numpy())
        return Checked(graded, places, found["checked"].to_numpy()[places])


def study_grades(data: Any) -> Grades | None:
    """Return the machine grades behind what a verb was given, where it is a study with some."""
    if not isinstance(data, Study) and not (isinstance(data, str | Path) and is_study(data)):
        return None
    study = data if isinstance(data, Study) else Study(data)
    if not (study.has("draws") and study.has("semantics")):
        return None
    return Grades.of_tables(study.read("draws"), study.read("semantics"), checks_path(study.path))


def _labels(checks: Path | None) -> pl.DataFrame:
    """Return what people said, one row per answer and model."""
    said: list[tuple[Any, ...]] = []
    if checks is not None and checks.is_file():
        said = [
            (state.item.key.question_id, state.item.key.model, state.item.key.answer, state.outcome)
            for state in LabelStore(checks, create=False).states()
            if state.outcome is not None
        ]
    types = {**dict.fromkeys(ANSWER, pl.String), "checked": pl.Float64}
    return pl.DataFrame(said, schema=types, orient="row")
