"""What the input covers: rows and questions by model, what is missing, and whether that matters."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import polars as pl
from scipy.special import ndtr

from calibrant.data import Scores
from calibrant.data.reading import Reading
from calibrant.data.score_table import row_weights
from calibrant.findings.claims import data
from calibrant.findings.documents.entries import DataWarning

_TEXTS = ("text", "question_text", "question", "prompt")
_KEYS = ("model", "method")
# A model shares at least so many of its questions with others where all were asked the same.
_SAME_QUESTIONS = 0.5
_ABOUT_MODELS = ("data.never_right", "data.always_right", "data.few_values", "data.unreadable")
# What readers of answers write where they found none: no letter or digit, or one of these words.
_MOST = 0.5
_NOTHING_READ = (
    r"(?i)^[^\p{L}\p{N}]*(?:n/?a|nan|null|none|no answer|unparse?able|unparsed|unreadable|invalid)?"
    r"[^\p{L}\p{N}]*$"
)

Key: TypeAlias = tuple[str, str]
Counts: TypeAlias = Mapping[str, Any]
Related: TypeAlias = Mapping[str, float | None]


_NOTHING = {"n": 0, "questions": 0}
_UNRELATED: Related = dict.fromkeys(("missing_accuracy", "kept_accuracy", "missing_p"))
"""The outcomes of missing rows beside those of the rows that are kept, where they are unknown."""


def table_coverage(scores: Scores, *, weighs_rows: bool = True) -> dict[str, Any]:
    """Return rows, questions and missing rows by model and method, with warnings.

    A row may be missing because the table has none for a question that other models answered, or
    because it breaks a rule. Where the outcomes of such rows are known (their own grade, or how
    often other models are right on the questions), they are compared with the rows that are kept.
    A table with weights for a verb that cannot use them (not `weighs_rows`) is warned of.
    """
    kept_rows, rejected = scores.frame, scores.rejected
    known_values = "question_id" not in scores.assumed
    kept_by, lost_by = _counted(kept_rows), _by_key(rejected, n=pl.len())
    missed = _missing(kept_rows, rejected) if known_values else {}
    only = len({method for _, method in kept_by}) <= 1
    weightless = _by_key(scores.weightless, n=pl.len())
    rows = _Rows(kept_rows, rejected, known=known_values)
    models = []
    for key in dict.fromkeys([*kept_by, *lost_by, *weightless]):
        missing = missed.get(key, 0)
        counts, losses = kept_by.get(key, _NOTHING), lost_by.get(key, _NOTHING)["n"]
        entry = {
            "model": key[0],
            "method": key[1],
            "only_method": only,
            "n": counts["n"],
            "questions": counts["questions"],
            "dropped": losses,
            "missing": missing,
            "expected": counts["n"] + losses + missing,
            **{name: counts.get(name) for name in ("accuracy", "values", "answers_empty")},
            "repeated_texts": rows.repeated_texts(key) if counts["n"] else 0,
        }
        # A model of which nothing is missing, as of most, needs no look at its rows.
        related = rows.related(key, missing) if counts["n"] and missing + losses else _UNRELATED
        models.append({**entry, **related})
    shared = None
    if known_values and len(kept_by) > 1:
        answers = kept_rows.select(*_KEYS, "question_id").unique()["question_id"].value_counts()
        shared = int((answers["count"] == len(kept_by)).sum())
    whole = {
        "rows": kept_rows.height,
        "rows_read": kept_rows.height + rejected.height + scores.weightless.height,
        "questions": _questions(scores.graded, kept_by),
        "questions_shared_by_all": shared,
    }
    document = data.coverage_document(models, **whole)
    document["warnings"] += reading_warnings(
        weightless=scores.weightless.height,
        weights_unused=not weighs_rows and row_weights(kept_rows) is not None,
        likely_weights=scores.likely_weights if weighs_rows else None,
        paired=scores.paired_by_row,
        reading=scores.reading,
    )
    return document


def row_coverage(scores: Scores) -> dict[str, Any]:
    """Return the coverage for a verb that has no weights and tests no model as a whole.

    A model that is never right has its threshold and its groups all the same.
    """
    coverage = table_coverage(scores, weighs_rows=False)
    warnings = [warning for warning in coverage["warnings"] if warning["id"] not in _ABOUT_MODELS]
    return {**coverage, "warnings": warnings}


def reading_warnings(
    *,
    weightless: int = 0,
    weights_unused: bool = False,
    likely_weights: str | None = None,
    paired: bool = False,
    reading: Reading | None = None,
) -> Iterator[DataWarning]:
    """Say how rows were read: their weights, their ids, columns that were known by their names."""
    if weightless:
        yield data.weightless_warning(weightless)
    if weights_unused:
        yield data.unused_weights_warning()
    if likely_weights is not None:
        yield data.likely_weights_warning(likely_weights)
    if paired:
        yield data.paired_warning()
    for text in () if reading is None else (reading.sentence, reading.repeats, reading.mended):
        if text is not None:
            yield data.reading_note(text)


def _counted(selection: pl.DataFrame) -> dict[Key, Counts]:
    """Return what is counted of each model and method, in the order of the rows."""
    counts = {
        "n": pl.len(),
        "questions": pl.col("question_id").n_unique(),
        "accuracy": pl.col("correct").mean(),
        "values": pl.col("confidence").n_unique(),
    }
    column = _answer_column(selection)
    if column is not None:
        nothing = _is_nothing(pl.col(column)) & (pl.col("correct") == 0)
        # 'None' may be the right answer to some question.
        right = selection.filter(_is_nothing(pl.col(column)), pl.col("correct") > 0)[column]
        if right.len():
            nothing &= ~pl.col(column).is_in(right.unique().implode(), nulls_equal=True)
        counts["answers_empty"] = nothing.sum()
    return _by_key(selection, **counts)


def _is_nothing(text: pl.Expr) -> pl.Expr:
    """Return whether no answer was read: nothing, a sign, or a word that says so."""
    return text.cast(pl.String).fill_null("").str.contains(_NOTHING_READ)


def _answer_column(selection: pl.DataFrame) -> str | None:
    """Return the column of what was read as the answer.

    Where none is named, one tells it that holds a sign such as '?' in most rows of models that are
    never right, and texts where others are right: a reader that found no answer graded them wrong.
    """
    if "answer" in selection.columns:
        return "answer"
    notes = {*_KEYS, "question_id", *_TEXTS}
    texts = [n for n, kind in selection.schema.items() if kind == pl.String and n not in notes]
    never = selection.filter((pl.col("correct").max() == 0).over(_KEYS)) if texts else None
    if never is None or not never.height:
        return None
    right = selection.filter(pl.col("correct") > 0)
    for name in texts:
        signs = (_is_nothing(pl.col(name)) & (pl.col(name).str.strip_chars() != "")).mean()
        read = right.select((~_is_nothing(pl.col(name))).mean()).item() if right.height else 1.0
        if read > _MOST and (never.select(signs).item() or 0) > _MOST:
            return name
    return None


def _questions(graded: pl.DataFrame, kept_by: Mapping[Key, Counts]) -> int:
    """Return how many questions have a grade; those of a single model may be counted already."""
    counts = list(kept_by.values())
    if len(counts) == 1 and counts[0]["n"] == graded.height:
        return int(counts[0]["questions"])
    return int(graded["question_id"].n_unique())


def _by_key(frame: pl.DataFrame, **counts: pl.Expr) -> dict[Key, Counts]:
    if "method" not in frame.columns:
        return {}
    rows = frame.group_by(_KEYS, maintain_order=True).agg(**counts).iter_rows()
    return {
        (str(model), str(method)): dict(zip(counts, values, strict=True))
        for model, method, *values in rows
    }


def _missing(selection: pl.DataFrame, rejected: pl.DataFrame) -> dict[Key, int]:
    """Return how many questions of its method each model has no row for, not even a dropped one.

    A model most of whose questions nobody else was asked has questions of its own: it lacks none.
    """
    tables = [table for table in (selection, rejected) if "method" in table.columns]
    names = pl.concat([table.select(*_KEYS, "question_id") for table in tables])
    if names["model"].n_unique() == 1:
        return {}  # there is nobody else whose questions it could lack
    request = names.drop_nulls("question_id")
    every = request.group_by("method").agg(pl.col("question_id").n_unique().alias("_all"))
    answers = request.group_by(_KEYS).agg(pl.col("question_id").n_unique().alias("_own"))
    counts = names.select(_KEYS).unique().join(every, "method", "left", nulls_equal=True)
    numbers = counts.join(answers, _KEYS, "left", nulls_equal=True).fill_null(0)
    missing = {
        (str(row["model"]), str(row["method"])): row["_all"] - row["_own"]
        for row in numbers.iter_rows(named=True)
    }
    return missing if not any(missing.values()) else missing | dict.fromkeys(_apart(request), 0)


def _apart(request: pl.DataFrame) -> list[Key]:
    """Return the models most of whose questions no other model was asked."""
    once = request.unique([*_KEYS, "question_id"])
    peers = pl.len().over("method", "question_id") > 1
    shared = once.with_columns(_shared=peers).group_by(_KEYS).agg(pl.col("_shared").mean())
    alone = shared.filter(pl.col("_shared") < _SAME_QUESTIONS)
    return [(str(model), str(method)) for model, method in alone.select(_KEYS).rows()]


class _Rows:
    """The rows of each model and method, split when they are first looked at."""

    def __init__(self, kept: pl.DataFrame, rejected: pl.DataFrame, *, known: bool) -> None:
        self._kept, self._rejected, self._known = kept, rejected, known
        self._text = next((name for name in _TEXTS if kept.schema.get(name) is not None), None)

    @cached_property
    def _own(self) -> dict[Key, pl.DataFrame]:
        return _split(self._kept)

    @cached_property
    def _lost(self) -> dict[Key, pl.DataFrame]:
        return _split(self._rejected) if "method" in self._rejected.columns else {}

    @cached_property
    def _asked(self) -> dict[str, pl.Series]:
        request: dict[str, list[pl.Series]] = {}
        for table in (self._own, self._lost):
            for (_, method), part in table.items():
                request.setdefault(method, []).append(part["question_id"])
        return {
            name: pl.concat(parts).unique(maintain_order=True) for name, parts in request.items()
        }

    @cached_property
    def _difficulty(self) -> pl.DataFrame | None:
        """How often each question is answered right, over all models."""
        if not self._known or self._kept["model"].n_unique() < 2:
            return None
        # In the order of the rows: sums in another order differ in their last digits.
        once = self._kept.group_by("question_id", "model", maintain_order=True)
        shares = once.agg(pl.col("correct").mean())
        questions = shares.group_by("question_id", maintain_order=True)
        return questions.agg(_right=pl.col("correct").sum(), _models=pl.len())

    def repeated_texts(self, key: Key) -> int:
        """Return how many texts stand for several questions."""
        if self._text is None or self._kept.schema[self._text] != pl.String:
            return 0
        once = self._own[key].unique("question_id").drop_nulls(self._text)
        return int((once[self._text].value_counts()["count"] > 1).sum())

    def related(self, key: Key, missing: int) -> Related:
        """Compare the outcomes of missing rows with those of the rows that are kept."""
        selection, losses = self._own[key], self._lost.get(key)
        if losses is not None and "correct" in losses.columns:
            # A row without a confidence may have an outcome that is none: 7 is neither 0 nor 1.
            grades = losses["correct"].filter(losses["correct"].is_between(0, 1))
            if grades.len():
                return _compared(float(grades.sum()), grades.len(), selection["correct"])
        if not missing or self._difficulty is None:
            return _UNRELATED
        present = [part["question_id"] for part in (selection, losses) if part is not None]
        request = self._asked[key[1]]
        absent = request.filter(~request.is_in(pl.concat(present).unique().implode())).implode()
        gone = self._difficulty.filter(pl.col("question_id").is_in(absent))
        here = self._difficulty.filter(~pl.col("question_id").is_in(absent))
        if not (gone.height and here.height):
            return _UNRELATED
        shares = here["_right"] / here["_models"]
        return _compared(float((gone["_right"] / gone["_models"]).sum()), gone.height, shares)


def _split(frame: pl.DataFrame) -> dict[Key, pl.DataFrame]:
    parts = frame.partition_by(list(_KEYS), as_dict=True, maintain_order=True)
    return {(str(key[0]), str(key[1])): part for key, part in parts.items()}


def _compared(right: float, n: int, selection: pl.Series) -> Related:
    share, remainder = right / n, float(selection.sum()) / selection.len()
    pooled = (right + float(selection.sum())) / (n + selection.len())
    error = (pooled * (1 - pooled) * (1 / n + 1 / selection.len())) ** 0.5
    # Two shares by the normal law, half an answer taken off for how few there may be.
    distance = max(abs(share - remainder) - 0.5 / n, 0.0)
    p_value = 2 * float(ndtr(-distance / error)) if error > 0 else 1.0
    return dict(zip(_UNRELATED, (share, remainder, p_value), strict=True))
