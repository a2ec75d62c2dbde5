"""Models side by side on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean

__all__ = ["Aligned", "Candidates", "align_candidates", "align_models"]

Floats: TypeAlias = npt.NDArray[np.float64]
# Rows that are put in their places at once; bounds what is held beside the table.
_SLICE = 4_000_000


@dataclass(frozen=True, slots=True)
class Aligned:
    """Confidence and outcome of every model on the questions that all of them answered.

    Parameters
    ----------
    models
        Names, in the order given.
    questions
        Ids of the common questions.
    confidence, correct
        (models, questions).
    left_out
        Per model: questions that some other model lacks.
    """

    models: tuple[str, ...]
    questions: npt.NDArray[np.str_]
    confidence: Floats
    correct: Floats
    left_out: dict[str, int]

    @property
    def accuracy(self) -> Floats:
        """(models,) share of right answers."""
        share: Floats = self.correct.mean(axis=1)
        return share

    def pair(self, a: int, b: int) -> Aligned:
        """Return two of the models."""
        rows = [a, b]
        return Aligned(
            tuple(self.models[row] for row in rows),
            self.questions,
            self.confidence[rows],
            self.correct[rows],
            {},
        )


@dataclass(frozen=True, slots=True)
class Candidates:
    """Every model's confidence in every model's answer.

    Parameters
    ----------
    confidence
        (judges, authors, questions): how sure the judge is that the author's answer is right.
    correct
        (authors, questions): the grade of the author's answer.
    identity
        (authors, questions): a number per distinct answer of a question, so that a candidate
        that several models named counts once.
    """

    confidence: Floats
    correct: Floats
    identity: npt.NDArray[np.int64]


def align_models(scores: pl.DataFrame, models: Sequence[str] | None = None) -> Aligned:
    """Put the models of one confidence method side by side.

    Parameters
    ----------
    scores
        Columns question_id, model, confidence, correct; one row per question and model.
    models
        Models to compare, in this order; None takes all in order of appearance.
    """
    nameless = scores["model"].null_count()
    if nameless:
        raise InputError(
            f"{nameless:,} of {scores.height:,} rows have no model",
            hint="fill the column of models in, or leave those rows out",
        )
    known = scores["model"].unique(maintain_order=True).to_list()
    wanted = list(models) if models is not None else known
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no model {name!r}", hint=did_you_mean(name, known))
    if len(set(wanted)) < 2:
        raise InputError(
            f"a comparison needs at least two models, got {len(set(wanted))}: {', '.join(wanted)}",
            hint="give a table with several models, or several tables",
        )
    chosen = scores.filter(pl.col("model").is_in(wanted))
    common = (
        chosen.group_by("question_id", maintain_order=True)
        .agg(pl.col("model").n_unique())
        .filter(pl.col("model") == len(wanted))["question_id"]
    )
    sizes = dict(chosen.group_by("model").len().iter_rows())
    if common.len() == 0:
        counts = ", ".join(f"{name} {sizes[name]:,}" for name in wanted)
        raise InputError(
            f"the models have no question in common (rows: {counts})",
            hint=Hint(
                "compare fewer models, or check that {question} names the same ids in all tables"
            ),
        )
    tables = _tables(chosen, common, wanted)
    return Aligned(
        tuple(wanted),
        common.to_numpy().astype(str),
        np.vstack([table["confidence"].to_numpy().astype(np.float64) for table in tables]),
        np.vstack([table["correct"].to_numpy().astype(np.float64) for table in tables]),
        {name: sizes[name] - common.len() for name in wanted},
    )


def _tables(chosen: pl.DataFrame, common: pl.Series, wanted: list[str]) -> list[pl.DataFrame]:
    """Return the rows of each model in the order of the common questions."""
    order = pl.DataFrame({"question_id": common})
    parts = chosen.partition_by("model", as_dict=True)
    return [
        order.join(parts[(name,)], on="question_id", how="left", maintain_order="left")
        for name in wanted
    ]


def align_candidates(candidates: pl.DataFrame, aligned: Aligned) -> tuple[Candidates, Aligned]:
    """Put judges and authors side by side, on the questions where every pair is scored.

    Parameters
    ----------
    candidates
        Columns question_id, judge, author, confidence; and answer, where the same answer of two
        models is to count once.
    aligned
        The models; the grade of a candidate is the grade of its author's own answer.

    Returns
    -------
    tuple
        The candidates, and the models on the same questions.
    """
    models, questions = aligned.models, aligned.questions.tolist()
    confidence = np.full((len(models), len(models), len(questions)), np.nan)
    answers = np.repeat(np.arange(len(models))[:, None], len(questions), axis=1)
    wanted = {"judge": models, "author": models, "question_id": questions}
    texts = [name for name in (*wanted, "answer") if name in candidates.columns]
    table = candidates.with_columns(pl.col(texts).cast(pl.Categorical))
    lookups = {name: _lookup(table[name], values) for name, values in wanted.items()}
    # From the end to the start: of several scores for one place the first stays.
    for start in reversed(range(0, table.height, _SLICE)):
        part = table.slice(start, _SLICE)
        judge, author, question = (_places(part[name], lookups[name]) for name in wanted)
        scores = part["confidence"].to_numpy()
        known = (judge >= 0) & (author >= 0) & (question >= 0) & ~np.isnan(scores)
        rows = np.flatnonzero(known)[::-1]
        confidence[judge[rows], author[rows], question[rows]] = scores[rows]
        if "answer" in part.columns:
            answers[author[rows], question[rows]] = _codes(part["answer"])[rows]
    keep = np.flatnonzero(~np.isnan(confidence).any(axis=(0, 1)))
    if keep.size == 0:
        raise InputError(
            f"no common question has all {len(models) ** 2} scores (every model on every model's"
            " answer)",
            hint="score every candidate with every model, or leave the candidates out",
        )
    if keep.size < len(questions):
        confidence, answers = confidence[:, :, keep], answers[:, keep]
    part_models = Aligned(
        models,
        aligned.questions[keep],
        aligned.confidence[:, keep],
        aligned.correct[:, keep],
        aligned.left_out,
    )
    return Candidates(confidence, part_models.correct, _identity(answers)), part_models


def _lookup(values: pl.Series, wanted: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return, by category code, the place in `wanted`; -1 where it is not there.

    Distinct values are looked up once, so that tens of millions of rows stay cheap. The last
    entry is for nulls.
    """
    distinct = values.drop_nulls().unique()
    place_of = {name: place for place, name in enumerate(wanted)}
    codes = distinct.to_physical().to_numpy()
    lookup = np.full(int(codes.max(initial=0)) + 2, -1, dtype=np.int32)
    lookup[codes] = [place_of.get(name, -1) for name in distinct.cast(pl.String)]
    return lookup


def _places(values: pl.Series, lookup: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    rows = values.to_physical().fill_null(lookup.size - 1).to_numpy()
    found: npt.NDArray[np.int32] = lookup[rows]
    return found


def _codes(values: pl.Series) -> npt.NDArray[np.int64]:
    """Return a number per distinct text; -1 for none."""
    return values.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _identity(answers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, per author and question, the first author who gave the same answer."""
    same = answers[:, None, :] == answers[None, :, :]
    first: npt.NDArray[np.int64] = np.argmax(same, axis=1)
    return first
