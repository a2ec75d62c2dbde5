"""What doubtful grades mean for the numbers of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calibrant.semantics.grading.doubt import DOUBT
from calibrant.stats.graded import Graded, unchecked_accuracy, unchecked_gap
from calibrant.stats.graded.unchecked import FACTOR

_ANSWER = ["question_id", "model", "answer"]
_DOUBTFUL = pl.when("correct").then(1.0 - pl.col("chance")).otherwise("chance") > DOUBT
# The least share of doubtful grades that a reader should know of.
_WORTH_TELLING = 0.1


def grading_of(
    draws: pl.DataFrame, semantics: pl.DataFrame, scores: pl.DataFrame
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return by model and method how sure the grades are, and what follows for its numbers.

    Grades that came with the data, or from a judge that states no chance, have no entry.

    Parameters
    ----------
    draws, semantics, scores
        Tables as in a study.

    Returns
    -------
    entries
        ``answers``, ``doubtful`` (share), ``checked``, and between which ends accuracy and gap lie
        if the grader's odds are off by up to ``odds_factor``.
    """
    key = ["question_id", "model", "purpose", "draw"]
    known = (
        semantics.filter(pl.col("chance").is_not_null() & pl.col("correct").is_not_null())
        .join(draws.select(*key, "answer"), on=key, how="inner")
        .unique(_ANSWER, keep="first", maintain_order=True)
        .select(*_ANSWER, "chance", _DOUBTFUL.alias("doubtful"))
    )
    rows = scores.join(known, on=_ANSWER, how="inner", maintain_order="left").drop_nulls(
        ["confidence", "correct"]
    )
    if not rows.height:
        return {}
    parts = rows.partition_by("model", "method", as_dict=True, maintain_order=True)
    return {(str(model), str(method)): _entry(part) for (model, method), part in parts.items()}


def _entry(part: pl.DataFrame) -> dict[str, Any]:
    graded = Graded(
        part["confidence"].to_numpy(),
        part["correct"].to_numpy(),
        part["chance"].to_numpy(),
        part["doubtful"].to_numpy(),
    )
    probability = bool(((graded.c >= 0.0) & (graded.c <= 1.0)).all())
    return {
        "answers": graded.size,
        "doubtful": float(graded.doubtful_share),
        "checked": 0,
        "odds_factor": FACTOR,
        "accuracy": _ends(unchecked_accuracy(graded)),
        "gap": _ends(unchecked_gap(graded)) if probability else None,
    }


def _ends(ends: tuple[float, float]) -> dict[str, float]:
    return {"low": ends[0], "high": ends[1]}


def grading_warnings(
    entries: Mapping[tuple[str, str], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return one sentence for each model whose grades are often doubtful.

    Examples
    --------
    >>> entry = {"doubtful": 0.31, "accuracy": {"low": 0.57, "high": 0.66}, "odds_factor": 3.0}
    >>> print(grading_warnings({("m", "stated"): entry})[0]["text"])  # doctest: +ELLIPSIS
    m: 31 % of the grades are doubtful and none was checked. If the odds of ... 57 % and 66 %.
    """
    told: dict[str, str] = {}
    for (model, _), entry in entries.items():
        if entry["doubtful"] >= _WORTH_TELLING and model not in told:
            low, high = (
                100 * max(0.0, min(1.0, entry["accuracy"][end])) for end in ("low", "high")
            )
            told[model] = (
                f"{model}: {100 * entry['doubtful']:.0f} % of the grades are doubtful and none was "
                f"checked. If the odds of the grader are off by up to {entry['odds_factor']:g}, "
                f"accuracy lies between {low:.0f} % and {high:.0f} %."
            )
    return [
        {"id": "data.grades", "subject": {"models": [model]}, "text": text}
        for model, text in told.items()
    ]
