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
from calibrant.metrics.multi_answer.masses import mass_grid
from calibrant.metrics.multi_answer.tuning import development_part, tune_threshold

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


def tune_aggregation(
    table: DrawTable,
    questions: pl.DataFrame,
    *,
    methods: Sequence[str] = ("sca", "snca", "sfca"),
    grid: Sequence[float] | None = None,
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
        Columns question_id, k and domain.
    methods
        Methods with a threshold whose inputs are there; others are left out.
    grid
        Thresholds to try; None: for sca quantiles of the masses at hand (`mass_grid`), for shares
        of the mass (snca, sfca) a fixed grid up to 0.5.
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
    scored = [
        score_table(table, methods=[name], tau=tau, **options).scores.with_columns(
            tau=pl.lit(tau, pl.Float64)
        )
        for name in methods
        for tau in _grid(name, table, grid)
    ]
    frame = (
        pl.concat(scored)
        .drop_nulls(["confidence", "correct"])
        .join(questions.select("question_id", "k", "domain"), on="question_id")
    )
    return [
        _tuned(part, share, level, seed)
        for part in frame.sort("model", "method", "tau", "question_id").partition_by(
            ["model", "method"], maintain_order=True
        )
    ]


def _grid(method: str, table: DrawTable, grid: Sequence[float] | None) -> Sequence[float]:
    if grid is not None:
        return grid
    default = METHODS[method].default_tau or 0.0
    # Shares of the mass lie in [0, 1]; sums of it have the size of the data.
    fitting = GRID if METHODS[method].probability else mass_grid(table)
    return sorted({default, *fitting})


def _tuned(frame: pl.DataFrame, share: float, level: float, seed: int) -> dict[str, Any]:
    by_tau = {float(part["tau"][0]): part for part in frame.partition_by("tau")}
    grid = sorted(by_tau)
    first = by_tau[grid[0]]
    development = development_part(
        first["question_id"].to_list(), first["domain"].to_list(), share=share, seed=seed
    )

    def score_at(tau: float) -> tuple[Any, Any]:
        part = by_tau[tau]
        return part["confidence"].to_numpy(), part["correct"].cast(pl.Float64).to_numpy()

    method = str(first["method"][0])
    default = METHODS[method].default_tau or 0.0
    head = {
        "model": first["model"][0],
        "method": method,
        "default": default,
        "development_questions": int(development.sum()),
    }
    try:
        found = tune_threshold(score_at, grid, development, first["domain"].to_list(), level=level)
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
    return macro_auroc(
        kept["confidence"].to_numpy(),
        kept["correct"].cast(pl.Float64).to_numpy(),
        leaves(kept["domain"].to_numpy()),
        level=level,
    ).estimate
