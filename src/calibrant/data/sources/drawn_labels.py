"""Labels as outcomes, of a pool with its store and of tables of labels; checked grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data import ScoreBlock
from calibrant.data.label_schema import ALONG, DESIGN, DRAW_COLUMNS, SPREAD, WEIGHT, WHOLE
from calibrant.data.label_store import LabelStore
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.study import as_study
from calibrant.data.tables import collect, scan_table
from calibrant.metrics.blocks.row_block import DrawnBlock, DrawSpread, RowBlock
from calibrant.metrics.stats.graded_estimates import CheckedGrades, Graded

# Weights that differ by less are equal but for rounding.
_SAME = 1e-6


def equal_chances(weight: pl.Series) -> bool:
    """Return whether all rows stand for as many others."""
    values = weight.cast(pl.Float64, strict=False).to_numpy()
    return bool(values.max() - values.min() <= _SAME * values.max())


def reading_of_drawn(
    tables: Sequence[Any], asked: ReadingOptions
) -> tuple[ReadingOptions, list[str], list[str]]:
    """Return how tables of drawn labels are read, columns about their draw, and a note on it.

    Parameters
    ----------
    tables
        Tables that have the column ``label_weight``.
    asked
        How they were to be read; weights that are named win.
    """
    if asked.weights not in (None, WEIGHT):
        return asked, [], []
    frames = [collect(scan_table(table), table) for table in tables]
    equal = all(equal_chances(frame[WEIGHT]) for frame in frames)
    spread = [n for n in (ALONG, SPREAD) if all(n in frame.columns for frame in frames)]
    manner = "drawn with equal chances" if equal else f"whose chances the column {WEIGHT} undoes"
    weighed = replace(asked, weights=None if equal else WEIGHT)
    return weighed, spread, [f"these are labels of a draw, {manner}"]


def block_of(block: ScoreBlock, **options: Any) -> RowBlock:
    """Return the block of one model's rows; of drawn labels it knows how they were spread.

    Parameters
    ----------
    block
        The rows.
    options
        ``probability``, ``bins``, ``level``, ``resamples``, ``rng`` of `RowBlock`.
    """
    rows = (block.confidence, block.correct, block.weights, block.units)
    frame = block.frame
    if ALONG not in frame.columns or SPREAD not in frame.columns:
        return RowBlock(*rows, **options)
    extra, share = (
        frame[name].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        for name in (ALONG, SPREAD)
    )
    spread = DrawSpread(extra, np.nan_to_num(np.clip(share, 0.0, 1.0)))
    return DrawnBlock(*rows, spread=spread, **options)


def refuse_unequal(weight: pl.Series, source: str) -> None:
    """Refuse labels of unequal chances where rows have to count the same."""
    if not equal_chances(weight):
        raise InputError(
            "the labels were drawn with unequal chances, and only `audit` and a baseline of "
            "`monitor` can undo them",
            source=source,
            hint=Hint(
                "draw with equal chances: {call}; or audit the models one by one",
                call=Call("label serve", "TABLE", design="stratified"),
            ),
        )


def refuse_incomplete(part: int, of: int, designs: Sequence[str], source: str) -> None:
    """Refuse a comparison on questions of which some models' answers are labelled only.

    One label serves all models that gave an answer. A question on which all agree is complete
    with one label, one with three answers needs three: where single answers were drawn, complete
    questions are no fair choice.
    """
    if part and not all(design.endswith(WHOLE) for design in designs):
        raise InputError(
            f"{part:,} of {of:,} labelled questions have labels for some models only, and "
            "questions on which models agree had a greater chance of being complete",
            source=source,
            hint=Hint(
                "draw whole questions: {call}; or audit the models one by one",
                call=Call("label serve", "TABLE", whole_questions=True),
            ),
        )


def refuse_exported(table: Any, source: str, question: str, model: str) -> None:
    """Refuse an exported table of labels for a comparison that its draw does not allow."""
    frame = collect(scan_table(table), table)
    refuse_unequal(frame[WEIGHT], source)
    if question not in frame.columns or model not in frame.columns:
        return
    models = frame.group_by(question).agg(pl.col(model).n_unique().alias("models"))["models"]
    designs = frame[DESIGN].unique().to_list() if DESIGN in frame.columns else [""]
    part = int((models < frame[model].n_unique()).sum())
    refuse_incomplete(part, models.len(), [str(design) for design in designs], source)


def without_draw(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows without what is known of their draw: it is no feature of a question."""
    return frame.drop(DRAW_COLUMNS, strict=False)


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
        verdicts = pl.when("correct").then(_JUDGED).otherwise(1.0 - _JUDGED)
        ours = pl.col("correct").is_not_null() & ~pl.col("grader").str.starts_with("given")
        graded = semantics.filter(ours).join(draws.select(*_DRAW, "answer"), on=_DRAW, how="inner")
        graded = graded.unique(ANSWER, keep="first", maintain_order=True)
        graded = graded.select(*ANSWER, "grader", "correct", pl.col("chance").fill_null(verdicts))
        if graded["grader"].is_in(_BY_CHOICE).all():
            return None
        return cls(graded.join(_labels(checks), on=ANSWER, how="left", maintain_order="left"))

    def of(self, rows: pl.DataFrame) -> CheckedGrades | None:
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
        numbers = pl.col("confidence", "correct").cast(pl.Float64)
        answers = self.answers.select(*ANSWER, "chance", "checked")
        matched = rows.select(pl.col(ANSWER).cast(pl.String), numbers)
        matched = matched.join(answers, on=ANSWER, how="left", maintain_order="left")
        if matched["chance"].null_count() > _MOST_UNKNOWN * matched.height:
            return None
        firm = (1.0 - pl.col("correct") - _FIRM).abs()
        chance = matched.select(pl.col("chance").fill_null(firm))["chance"].to_numpy()
        confidence, grade = (matched[name].to_numpy() for name in ("confidence", "correct"))
        graded = Graded.of_chances(confidence, grade, chance)
        checked = matched["checked"].is_not_null()
        if rows["question_id"].n_unique() < rows.height:
            checked &= False
        places = np.flatnonzero(checked.to_numpy())
        return CheckedGrades(graded, places, matched["checked"].to_numpy()[places])


def study_grades(data: Any) -> Grades | None:
    """Return the machine grades behind what a verb was given, where it is a study with some."""
    study = as_study(data)
    if study is None or not (study.has("draws") and study.has("semantics")):
        return None
    return Grades.of_tables(study.read("draws"), study.read("semantics"), checks_path(study.path))


def _labels(checks: Path | None) -> pl.DataFrame:
    """Return what people said, one row per answer and model."""
    statement: list[tuple[Any, ...]] = []
    if checks is not None and checks.is_file():
        statement = [
            (state.item.key.question_id, state.item.key.model, state.item.key.answer, state.outcome)
            for state in LabelStore(checks, create=False).states()
            if state.outcome is not None
        ]
    types = {**dict.fromkeys(ANSWER, pl.String), "checked": pl.Float64}
    return pl.DataFrame(statement, schema=types, orient="row")
