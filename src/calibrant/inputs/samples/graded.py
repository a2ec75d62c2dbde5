"""Sampled answers clustered, graded and scored: everything an audit of meanings needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from calibrant.confidence import score_table
from calibrant.inputs.samples.given_grades import GRADE, graded_by_given
from calibrant.inputs.samples.read import Samples
from calibrant.semantics.annotate import annotate
from calibrant.semantics.options import Options

_KEY = ["question_id", "model", "purpose", "draw"]


@dataclass(frozen=True, slots=True)
class GradedSamples:
    """The four tables of a study made from samples, and how they came about.

    Parameters
    ----------
    questions, draws, semantics, scores
        Tables as in a study.
    how
        Shape, columns and which of them were guessed.
    semantics_document
        What clustered and graded, see `annotate`.
    availability
        Which methods the columns allow, and what the others lack.
    """

    questions: pl.DataFrame
    draws: pl.DataFrame
    semantics: pl.DataFrame
    scores: pl.DataFrame
    how: Mapping[str, Any]
    semantics_document: Mapping[str, Any] = field(default_factory=dict)
    availability: tuple[Mapping[str, Any], ...] = ()

    @property
    def with_classes(self) -> pl.DataFrame:
        """One row per sampled answer with its class, grade, stated confidence and question."""
        own = self.draws.filter(pl.col("purpose") == "answer")
        stated = own.select(*_KEY, "answer", "stated_confidence")
        wanted = [name for name in self.questions.columns if name not in ("text", "references")]
        return (
            self.semantics.filter(pl.col("purpose") == "answer")
            .join(stated, on=_KEY, how="left", maintain_order="left")
            .join(
                self.questions.select(wanted), on="question_id", how="left", maintain_order="left"
            )
        )

    @property
    def several_right(self) -> tuple[int, int]:
        """Questions with one right answer: those where several classes of a model match it, all."""
        if "references" not in self.questions.columns:
            return 0, 0
        one = self.questions.filter(pl.col("references").list.len() == 1).select("question_id")
        right = self.semantics.filter(pl.col("purpose") == "answer", pl.col("correct"))
        matched = right.group_by("question_id", "model").agg(pl.col("class_id").n_unique())
        several = matched.filter(pl.col("class_id") > 1).select("question_id").unique()
        return several.join(one, on="question_id", how="semi").height, one.height

    @property
    def texts(self) -> pl.DataFrame:
        """The questions' texts."""
        return self.questions.select("question_id", "text")


def grade_samples(
    samples: Samples, *, options: Options | None = None, seed: int = 0
) -> GradedSamples:
    """Put answers that mean the same together, grade them, and score every method possible.

    A confidence that a draw states ('Confidence: 80 %') feeds the methods of stated confidence:
    the same generations count as answers and as statements.

    Examples
    --------
    >>> import polars as pl
    >>> from calibrant.inputs.samples.read import read_samples
    >>> table = pl.DataFrame({"question": ["Capital of Peru?"], "gold": ["Lima"],
    ...     "answers": [["Lima", "It is Lima.", "Quito"]]})
    >>> graded = grade_samples(read_samples(table))
    >>> graded.semantics["class_id"].to_list(), graded.semantics["correct"].to_list()
    ([0, 0, 1], [True, True, False])
    """
    annotated = annotate(samples.draws, samples.questions, options=options)
    draws, semantics = annotated
    notes = list(samples.notes)
    if GRADE in samples.draws.columns:
        draws, semantics, divided = graded_by_given(draws, semantics, samples.draws, _KEY)
        notes += divided
    if draws["stated_confidence"].is_not_null().any():
        again = pl.lit("verb").alias("purpose")
        draws = pl.concat([draws, draws.with_columns(again)])
        semantics = pl.concat([semantics, semantics.with_columns(again)])
    scored = score_table(draws, semantics, samples.questions, seed=seed)
    how = {
        "shape": samples.shape,
        "columns": dict(samples.columns),
        "guessed": list(samples.guessed),
        "notes": notes,
    } | ({} if samples.beside is None else {"references_file": samples.beside})
    return GradedSamples(
        samples.questions,
        draws,
        semantics,
        scored.scores,
        how,
        annotated.document,
        tuple(scored.availability),
    )
