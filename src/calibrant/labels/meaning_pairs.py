"""Questions and draws that tell two models apart by meaning: the gaps of their leading answers."""

import math
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.data.sources.draws import class_numbers
from calibrant.metrics.semantic import pool_draws, question_scores

_FEWEST_DRAWS, _FEWEST_QUESTIONS = 4, 20


def meaning_plan(
    draws: pl.DataFrame, *, power: float = 0.8, level: float = 0.95, difference: float | None = None
) -> list[dict[str, Any]]:
    """Return how many questions show that two models differ by meaning, by draws of each.

    The gap of a question is the share of the meaning that leads on one half of its draws, read on
    the other half, less whether that meaning is right (Sem2). The variance of a difference of two
    gaps has a part between questions and a part that shrinks with the draws; both are read off the
    draws at hand and half of them. Foretold for half to twice as many draws: further away the plan
    loses its power in simulations, and no number of questions shows what unlimited draws would.

    Parameters
    ----------
    draws
        One row per draw: question_id, model, class_id, correct.
    power, level
        Chance of showing the difference, and coverage of its interval.
    difference
        The difference to be shown; None means the one seen.

    Returns
    -------
    list of dict
        Per pair of models: ``model_a``, ``model_b``, ``questions``, ``draws``, ``difference`` (an
        estimate: above 0, the first is the more over-confident) and ``needed``.
    """
    sizes = draws.group_by("model", "question_id").len()
    usual = int(np.median(sizes["len"].to_numpy())) // 2 * 2 if sizes.height else 0
    if usual < _FEWEST_DRAWS:
        rule = f"a plan by meaning needs {_FEWEST_DRAWS} draws of a question, got {usual}"
        raise InputError(rule, hint="ask each question more often")
    kept = sizes.filter(pl.col("len") >= usual).select("model", "question_id")
    rows = draws.join(kept, on=["model", "question_id"], maintain_order="left")
    rows = rows.with_columns(place=pl.int_range(pl.len()).over("model", "question_id"))
    rows = rows.filter(pl.col("place") < usual)
    halves = [rows.filter(pl.col("place") % 2 == part) for part in (0, 1)]
    whole, *parts = (_gaps(some) for some in (rows, *halves))
    entries = []
    for pair in combinations(draws["model"].unique(maintain_order=True).to_list(), 2):
        apart = _apart(whole, pair)
        if len(apart) < _FEWEST_QUESTIONS:
            rule = f"{pair[0]} and {pair[1]} have {len(apart)} questions in common"
            raise InputError(rule, hint=f"a plan needs {_FEWEST_QUESTIONS} at least")
        spread = float(apart.var(ddof=1)), np.mean([_apart(p, pair).var(ddof=1) for p in parts])
        reach = NormalDist().inv_cdf((1 + level) / 2)
        mean, half = float(apart.mean()), reach * math.sqrt(spread[0] / len(apart))
        aim = abs(mean) if difference is None else difference
        reach += NormalDist().inv_cdf(power)
        entries.append(
            {
                "model_a": pair[0],
                "model_b": pair[1],
                "questions": len(apart),
                "draws": usual,
                "difference": Estimate(
                    mean, mean - half, mean + half, n=len(apart), level=level, interval="normal"
                ),
                "aim": aim,
                "needed": [
                    {"draws": m, "questions": _questions(_spread(*spread, usual, m), aim, reach)}
                    for m in (usual // 2, usual, 2 * usual)
                ],
            }
        )
    if not entries:
        raise InputError("a plan by meaning compares two models, got one")
    return entries


def _gaps(draws: pl.DataFrame) -> pl.DataFrame:
    """Return the gap of every question and model by Sem2."""
    parts = []
    for (model,), rows in draws.group_by("model", maintain_order=True):
        columns = rows["question_id"].to_numpy(), class_numbers(rows["class_id"])
        pool = pool_draws(*columns, rows["correct"].cast(pl.Float64).to_numpy())
        found = question_scores(pool, splits="exact")
        parts.append(pl.DataFrame({"question_id": found.ids, "gap": found.sem2 - found.label2})
                     .with_columns(model=pl.lit(model)))  # fmt: skip
    return pl.concat(parts)


def _apart(gaps: pl.DataFrame, pair: tuple[str, str]) -> Floats:
    """Return the differences of two models on the questions that both have."""
    one, peer = (gaps.filter(pl.col("model") == name).drop("model") for name in pair)
    both = one.join(peer, on="question_id")
    return np.asarray((both["gap"] - both["gap_right"]).to_numpy(), np.float64)


def _spread(whole: float, half: float, draws: int, wanted: int) -> float:
    """Return the variance with so many draws: the part of the draws shrinks as one over them."""
    chance = max((half - whole) / (2 / draws - 1 / draws), 0.0)
    return max(whole + chance * (1 / wanted - 1 / draws), whole / 4)


def _questions(spread: float, aim: float, reach: float) -> int | None:
    """Return the questions that show a difference; None where there is none to show."""
    needed = reach**2 * spread / aim**2 if aim else math.inf
    return math.ceil(needed) if needed < 1e9 else None
