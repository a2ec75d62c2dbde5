"""Plans for a claim from one's own answers: about calibration, or two models by meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Estimate, Floats
from calibrant.core.errors import InputError
from calibrant.data.sources.draws import class_numbers
from calibrant.findings.documents.plans import ClaimChance, ClaimNeeds, ClaimPlanEntry, LabelsShow
from calibrant.labels.labelling.power import claim_chance, claim_for_labels, labels_for_claim
from calibrant.metrics.semantic import pool_draws, question_scores

_CLAIM = re.compile(r"\s*ece\s*<=?\s*([0-9.eE+-]+)\s*(%?)\s*")


def parse_claim(text: str) -> float:
    """Return the threshold of a claim such as ``ece<0.05``.

    Examples
    --------
    >>> parse_claim("ece<0.05"), parse_claim("ECE < 5 %")
    (0.05, 0.05)
    """
    match = _CLAIM.fullmatch(text.lower())
    try:
        value = float(match[1]) / (100 if match[2] else 1) if match else float("nan")
    except ValueError:
        value = float("nan")
    if not 0.0 < value < 1.0:
        raise InputError(f"a claim is written like 'ece<0.05', got {text!r}")
    return value


def claim_entries(
    rows: pl.DataFrame,
    *,
    threshold: float | None,
    labels: int | None,
    power: float,
    by: Sequence[str] = (),
    target: str = "pool",
    seed: int = 0,
) -> list[ClaimPlanEntry]:
    """Return a plan for every model, method and group of a pool.

    Parameters
    ----------
    rows
        Columns ``model``, ``method``, ``confidence`` and those of `by`; outcomes are not used.
    threshold
        The claim's threshold, or None.
    labels
        Labels at hand, or None.
    power
        Chance with which the claim shall be shown.
    by
        Columns whose values are planned for one by one.
    target, seed
        As in `calibrant.labels.labels_for_claim`.
    """
    entries = []
    for part in rows.partition_by(["model", "method"], maintain_order=True):
        keys = {name: str(part[name][0]) for name in ("model", "method")}
        groups: list[tuple[dict[str, str] | None, pl.DataFrame]] = [(None, part)]
        for name in by:
            if name not in part.columns:
                raise InputError(f"there is no column {name!r} to plan by")
            by_value = part.partition_by(name, maintain_order=True)
            groups += [({name: str(group[name][0])}, group) for group in by_value]
        for group, members in groups:
            p = members["confidence"].cast(pl.Float64).to_numpy()
            goal, at_hand = (threshold, labels) if p.size >= 2 else (None, None)
            labels_needed = None if goal is None else _needed(p, goal, power, target, seed)
            shows = None if at_hand is None else _shows(p, at_hand, goal, power, target, seed)
            n = int(p.size)
            entry = ClaimPlanEntry(**keys, group=group, items=n, needed=labels_needed, shows=shows)
            entries.append(entry)
    return entries


def _needed(p: Floats, threshold: float, power: float, target: str, seed: int) -> ClaimNeeds:
    calibrated, half = (
        labels_for_claim(p, threshold, power=power, true_error=error, target=target, seed=seed)
        for error in (0.0, threshold / 2)
    )
    return ClaimNeeds(threshold=threshold, power=power, calibrated=calibrated, half=half)


def _shows(
    p: Floats, labels: int, threshold: float | None, power: float, target: str, seed: int
) -> LabelsShow:
    count = min(labels, p.size) if target == "pool" else labels
    reach, half = (
        claim_for_labels(p, count, power=power, share=share, target=target, seed=seed)
        for share in (0.0, 0.5)
    )
    if reach is not None and half is not None:
        # Of a few labels, an error may by luck look smaller than none.
        half = max(half, reach)
    chance = None
    if threshold is not None:
        calibrated, halved = (
            claim_chance(p, count, threshold, true_error=error, target=target, seed=seed)
            for error in (0.0, threshold / 2)
        )
        chance = ClaimChance(threshold=threshold, calibrated=calibrated, half=halved)
    return LabelsShow(labels=count, power=power, calibrated=reach, half=half, chance=chance)


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
