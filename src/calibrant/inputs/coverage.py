"""What the input covers: rows and questions by model, what is missing, and whether that matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from scipy import special

from calibrant.claims.data import coverage_document, guessed_warning
from calibrant.records import Scores

__all__ = ["table_coverage"]

_TEXTS = ("text", "question_text", "question", "prompt")
_KEYS = ("model", "method")


def table_coverage(scores: Scores) -> dict[str, Any]:
    """Return rows, questions and missing rows by model and method, with warnings.

    A row may be missing because the table has none for a question that other models answered, or
    because it breaks a rule. Where the outcomes of such rows are known (their own grade, or how
    often other models are right on the questions), they are compared with the rows that are kept.
    """
    kept, rejected = scores.frame, scores.rejected
    known = "question_id" not in scores.assumed
    kept_by = _split(kept)
    lost_by = _split(rejected) if "method" in rejected.columns else {}
    asked = _questions_by_method(kept_by, lost_by) if known else {}
    only = len({method for _, method in kept_by}) <= 1
    difficulty = _difficulty(kept) if known else None
    models = []
    for key in dict.fromkeys([*kept_by, *lost_by]):
        own, lost = kept_by.get(key), lost_by.get(key)
        models.append(_entry(key, own, lost, asked.get(key[1]), difficulty, only=only))
    shared = _shared(kept_by) if known else None
    whole = {
        "rows": kept.height,
        "rows_read": kept.height + rejected.height,
        "questions": int(kept["question_id"].n_unique()),
        "questions_shared_by_all": shared,
    }
    found = coverage_document(models, **whole)
    if scores.guessed:
        found["guessed_columns"] = dict(scores.guessed)
        found["warnings"].append(guessed_warning(scores.guessed))
    return found


def _split(frame: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    if frame.height == 0:
        return {}
    parts = frame.partition_by(list(_KEYS), as_dict=True, maintain_order=True)
    return {(str(key[0]), str(key[1])): part for key, part in parts.items()}


def _questions_by_method(*tables: Mapping[tuple[str, str], pl.DataFrame]) -> dict[str, pl.Series]:
    found: dict[str, list[pl.Series]] = {}
    for table in tables:
        for (_, method), part in table.items():
            found.setdefault(method, []).append(part["question_id"])
    return {method: pl.concat(parts).unique() for method, parts in found.items()}


def _difficulty(kept: pl.DataFrame) -> pl.DataFrame | None:
    """Return how often each question is answered right, over all models."""
    if kept["model"].n_unique() < 2:
        return None
    once = kept.group_by("question_id", "model").agg(pl.col("correct").mean())
    return once.group_by("question_id").agg(
        pl.col("correct").sum().alias("_right"), pl.len().alias("_models")
    )


def _shared(kept_by: Mapping[tuple[str, str], pl.DataFrame]) -> int | None:
    if len(kept_by) < 2:
        return None
    held = [part["question_id"].unique() for part in kept_by.values()]
    counts = pl.concat(held).value_counts()
    return int((counts["count"] == len(held)).sum())


def _entry(
    key: tuple[str, str],
    own: pl.DataFrame | None,
    lost: pl.DataFrame | None,
    asked: pl.Series | None,
    difficulty: pl.DataFrame | None,
    *,
    only: bool,
) -> dict[str, Any]:
    n, dropped = 0 if own is None else own.height, 0 if lost is None else lost.height
    present = [part["question_id"] for part in (own, lost) if part is not None]
    absent = None
    if asked is not None:
        absent = asked.filter(~asked.is_in(pl.concat(present).unique().implode()))
    missing = 0 if absent is None else absent.len()
    entry: dict[str, Any] = {
        "model": key[0],
        "method": key[1],
        "only_method": only,
        "n": n,
        "questions": 0 if own is None else int(own["question_id"].n_unique()),
        "dropped": dropped,
        "missing": missing,
        "expected": n + dropped + missing,
        "accuracy": None if own is None else float(own["correct"].mean()),  # type: ignore[arg-type]
        "values": None if own is None else int(own["confidence"].n_unique()),
        "answers_empty": _empty_answers(own),
        "repeated_texts": _repeated_texts(own),
    }
    return entry | _related(own, lost, absent, difficulty)


def _empty_answers(own: pl.DataFrame | None) -> int | None:
    if own is None or "answer" not in own.columns:
        return None
    text = pl.col("answer").cast(pl.String).str.strip_chars()
    return int(own.select((text.is_null() | (text == "")).sum()).item())


def _repeated_texts(own: pl.DataFrame | None) -> int:
    if own is None:
        return 0
    column = next((name for name in _TEXTS if name in own.columns), None)
    if column is None or own.schema[column] != pl.String:
        return 0
    once = own.unique("question_id").drop_nulls(column)
    counts = once[column].value_counts()
    return int((counts["count"] > 1).sum())


def _related(
    own: pl.DataFrame | None,
    lost: pl.DataFrame | None,
    absent: pl.Series | None,
    difficulty: pl.DataFrame | None,
) -> dict[str, Any]:
    """Compare the outcomes of missing rows with those of the rows that are kept."""
    nothing = {"missing_accuracy": None, "kept_accuracy": None, "missing_p": None}
    if own is None:
        return nothing
    if lost is not None and "correct" in lost.columns:
        grades = lost["correct"].drop_nulls().drop_nans()
        if grades.len():
            return _compared(float(grades.sum()), grades.len(), own["correct"])
    if absent is not None and absent.len() and difficulty is not None:
        gone = difficulty.filter(pl.col("question_id").is_in(absent.implode()))
        here = difficulty.filter(~pl.col("question_id").is_in(absent.implode()))
        if gone.height and here.height:
            shares = here["_right"] / here["_models"]
            return _compared(float((gone["_right"] / gone["_models"]).sum()), gone.height, shares)
    return nothing


def _compared(right: float, n: int, kept: pl.Series) -> dict[str, Any]:
    share, rest = right / n, float(kept.sum()) / kept.len()
    pooled = (right + float(kept.sum())) / (n + kept.len())
    error = (pooled * (1 - pooled) * (1 / n + 1 / kept.len())) ** 0.5
    # Two shares by the normal law, half an answer taken off for how few there may be.
    apart = max(abs(share - rest) - 0.5 / n, 0.0)
    p_value = 2 * float(special.ndtr(-apart / error)) if error > 0 else 1.0
    return {"missing_accuracy": share, "kept_accuracy": rest, "missing_p": p_value}
