"""Tune the threshold of the aggregating methods (sca, snca, sfca) on a development part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calibrant.confidence import METHODS, DrawTable, score_table
from calibrant.core.errors import InputError
from calibrant.metrics.multi_answer.leaves import leaves, mixes_of
from calibrant.metrics.multi_answer.macro import macro_auroc
from calibrant.metrics.multi_answer.tuning import development_part, tune_threshold

__all__ = ["GRID", "tune_aggregation"]

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


def tune_aggregation(
    table: DrawTable,
    questions: pl.DataFrame,
    *,
    methods: Sequence[str] = ("sca", "snca", "sfca"),
    grid: Sequence[float] = GRID,
    share: float = 0.2,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return, per model and method, the tuned threshold and what it gives on the rest.

    Parameters
    ----------
    table
        Draws with their meanings.
    questions
        Columns question_id, k, domain and, where known, subtype.
    methods
        Methods with a threshold whose inputs are there; others are left out.
    grid
        Thresholds to try.
    share
        Share of the questions of every domain that makes the development part.
    level, seed
        Coverage of the intervals; seed of the split.
    **options
        Further options of the confidence methods.
    """
    for name in methods:
        if METHODS[name].default_tau is None:
            raise InputError(f"the method {name!r} has no threshold to tune")
    columns = [c for c in ("question_id", "k", "domain", "subtype") if c in questions.columns]
    scored = [
        score_table(table, methods=methods, tau=tau, **options).scores.with_columns(tau=tau)
        for tau in grid
    ]
    frame = (
        pl.concat([part.with_columns(pl.col("tau").cast(pl.Float64)) for part in scored])
        .drop_nulls(["confidence", "correct"])
        .join(questions.select(columns), on="question_id")
    )
    return [
        _tuned(part, grid, share, level, seed)
        for part in frame.sort("model", "method", "tau", "question_id").partition_by(
            ["model", "method"], maintain_order=True
        )
    ]


def _tuned(
    frame: pl.DataFrame, grid: Sequence[float], share: float, level: float, seed: int
) -> dict[str, Any]:
    by_tau = {float(part["tau"][0]): part for part in frame.partition_by("tau")}
    first = by_tau[min(grid)]
    development = development_part(
        first["question_id"].to_list(), first["domain"].to_list(), share=share, seed=seed
    )

    def score_at(tau: float) -> tuple[Any, Any]:
        part = by_tau[tau]
        return part["confidence"].to_numpy(), part["correct"].cast(pl.Float64).to_numpy()

    subtype = first["subtype"].fill_null("").to_list() if "subtype" in first.columns else None
    method = str(first["method"][0])
    default = METHODS[method].default_tau or 0.0
    head = {
        "model": first["model"][0],
        "method": method,
        "default": default,
        "development_questions": int(development.sum()),
    }
    try:
        found = tune_threshold(
            score_at, grid, development, first["domain"].to_list(), subtype, level=level
        )
    except InputError as error:
        # Nothing else of the evaluation needs this threshold.
        return {**head, "threshold": None, "reason": error.rule, "curve": [], "mixes": []}
    return {
        **head,
        "threshold": found.threshold,
        "reason": None,
        "curve": [{"threshold": tau, "auroc": area} for tau, area in found.curve],
        "development": found.development,
        "mixes": [
            {
                "mix": mix,
                "tuned": _rest(by_tau[found.threshold], mix, ~development, level),
                "default": _rest(by_tau[default], mix, ~development, level)
                if default in by_tau
                else None,
            }
            for mix in mixes_of(first["k"].to_list())
        ],
    }


def _rest(part: pl.DataFrame, mix: Sequence[int], rest: Any, level: float) -> Any:
    rows = np.flatnonzero(rest & part["k"].is_in(list(mix)).to_numpy())
    kept = part[rows]
    subtype = kept["subtype"].fill_null("").to_numpy() if "subtype" in kept.columns else None
    return macro_auroc(
        kept["confidence"].to_numpy(),
        kept["correct"].cast(pl.Float64).to_numpy(),
        leaves(kept["domain"].to_numpy(), subtype),
        level=level,
    ).estimate
