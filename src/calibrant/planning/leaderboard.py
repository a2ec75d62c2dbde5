"""Leaderboards with their ties: rank intervals, groups of equals, instability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.metrics.registry import METRICS
from calibrant.metrics.row_block import RowBlock

LEADERBOARD_METRICS = {"accuracy": False, "brier": True, "ece": True}
_BINS = 15
_CHUNK = 64
# Questions on which a pair differs that are added to every difference's noise: a handful that
# all speak for one model prove little.
_PSEUDO = 2.0
# The band is taken this much further out than it promises: its own width is estimated.
_CAREFUL = 0.03


def leaderboard(
    scores: Mapping[str, tuple[Floats, Floats]],
    *,
    metric: str = "accuracy",
    level: float = 0.95,
    resamples: int = 500,
    share: float = 0.8,
    seed: int = 0,
) -> dict[str, Any]:
    """Rank models that answered the same questions, and say which ranks are shown.

    All differences are compared on the same resampled questions. A pair is told apart when its
    difference leaves the simultaneous band of all pairs (studentised bootstrap maximum), so
    that the whole picture holds with probability `level`. The ECE of the data lies above the true
    one, by an unknown amount that differs between models, so that no band around a difference
    holds: there a difference has the interval that those of the two models give (Newcombe's
    hybrid), at a level that holds for all pairs.

    A model's own interval is that of an audit of its rows.

    Parameters
    ----------
    scores
        Confidence and outcome of every model, in the same order of questions.
    metric
        ``accuracy`` (more is better), ``brier`` or ``ece`` (less is better).
    level
        Coverage of all rank intervals together.
    resamples
        Bootstrap resamples.
    share
        Size of the resamples behind the instability, as a share of the questions.
    seed
        The same input and seed give the same file.

    Returns
    -------
    dict
        Document ``calibrant.leaderboard/1``: ``results`` (one entry per model, best first, with
        value, rank, rank interval and group), ``groups``, ``pairs`` and ``instability``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = np.full(500, 0.7)
    >>> tables = {name: (p, (rng.uniform(size=500) < rate) * 1.0)
    ...           for name, rate in {"a": 0.9, "b": 0.6, "c": 0.6}.items()}
    >>> [sorted(group) for group in leaderboard(tables)["groups"]]
    [['a'], ['b', 'c']]
    """
    if metric not in LEADERBOARD_METRICS:
        raise InputError(f"the metric is one of {', '.join(LEADERBOARD_METRICS)}, got {metric!r}")
    names = list(scores)
    rows = _matrix(scores, names)
    n = rows[0].shape[1]
    value = _values(metric, rows, np.ones((1, n)))[0]
    draws = _resampled(metric, rows, n, n, resamples, seed, "full")
    partial = _resampled(metric, rows, n, max(2, round(share * n)), resamples, seed, "share")
    sign = 1.0 if LEADERBOARD_METRICS[metric] else -1.0
    own = [_estimate(metric, rows, k, level, resamples, seed) for k in range(len(names))]
    if metric == "ece":
        better = _apart(own, level)
    else:
        better = _better(sign * value, sign * draws, level, _PSEUDO / n**2)
    low, high = rank_intervals(better)
    rank = np.argsort(np.argsort(sign * value, kind="stable"), kind="stable") + 1
    order = np.argsort(rank)
    groups = tie_groups(order, better)
    group_of = {model: k for k, group in enumerate(groups, start=1) for model in group}
    results = [
        {
            "model": names[k],
            "rank": int(rank[k]),
            "rank_low": int(low[k]),
            "rank_high": int(high[k]),
            "group": group_of[k],
            metric: own[k],
        }
        for k in order
    ]
    return {
        "schema": "calibrant.leaderboard/1",
        "metric": metric,
        "questions": n,
        "level": level,
        "results": results,
        "groups": [[names[k] for k in group] for group in groups],
        "pairs": _pairs(names, order, own, draws, better, biased=metric == "ece"),
        "instability": _instability(sign * value, sign * partial, order, names, share),
    }


def rank_intervals(better: Mask) -> tuple[Indices, Indices]:
    """Return each model's lowest and highest rank that the data leave open.

    Parameters
    ----------
    better
        ``better[i, j]``: model i is shown to be better than model j.

    Examples
    --------
    >>> low, high = rank_intervals(np.array([[False, True], [False, False]]))
    >>> low.tolist(), high.tolist()
    ([1, 2], [1, 2])
    """
    models = len(better)
    return 1 + better.sum(axis=0), models - better.sum(axis=1)


def tie_groups(order: Sequence[int] | Indices, better: Mask) -> list[list[int]]:
    """Return groups from the best: a model joins while no member is shown to be better than it."""
    groups: list[list[int]] = []
    for model in (int(k) for k in order):
        if groups and not any(better[member, model] for member in groups[-1]):
            groups[-1].append(model)
        else:
            groups.append([model])
    return groups


def _matrix(scores: Mapping[str, tuple[Floats, Floats]], names: list[str]) -> list[Floats]:
    if len(names) < 2:
        raise InputError(f"a leaderboard compares at least two models, got {len(names)}")
    confidence = [np.asarray(scores[name][0], dtype=np.float64) for name in names]
    correct = [np.asarray(scores[name][1], dtype=np.float64) for name in names]
    sizes = {array.size for array in (*confidence, *correct)}
    if len(sizes) != 1:
        raise InputError(
            f"all models of a leaderboard answer the same questions, got {sorted(sizes)} rows",
            hint="keep the questions that every model answered",
        )
    return [np.stack(confidence), np.stack(correct)]


def _values(metric: str, rows: list[Floats], times: Floats) -> Floats:
    """Return the metric of every model for every row of question weights."""
    confidence, correct = rows
    total = times.sum(axis=1, keepdims=True)
    if metric == "accuracy":
        return np.asarray(times @ correct.T / total)
    if metric == "brier":
        return np.asarray(times @ ((confidence - correct) ** 2).T / total)
    values = np.empty((len(times), len(confidence)))
    for k, (p, y) in enumerate(zip(confidence, correct, strict=True)):
        cell = np.minimum((p * _BINS).astype(np.intp), _BINS - 1)
        residual = np.zeros((p.size, _BINS))
        residual[np.arange(p.size), cell] = y - p
        values[:, k] = np.abs(times @ residual).sum(axis=1) / total[:, 0]
    return values


def _resampled(
    metric: str, rows: list[Floats], n: int, size: int, resamples: int, seed: int, name: str
) -> Floats:
    generator = named_stream(seed, "leaderboard", metric, name)
    parts = []
    for start in range(0, resamples, _CHUNK):
        count = min(_CHUNK, resamples - start)
        picks = generator.integers(0, n, size=(count, size)) + n * np.arange(count)[:, None]
        times = np.bincount(picks.ravel(), minlength=n * count).reshape(count, n)
        parts.append(_values(metric, rows, times.astype(np.float64)))
    return np.concatenate(parts)


def _estimate(
    metric: str, rows: list[Floats], model: int, level: float, resamples: int, seed: int
) -> Estimate:
    block = RowBlock(
        rows[0][model],
        rows[1][model],
        None,
        None,
        probability=True,
        bins=_BINS,
        level=level,
        resamples=resamples,
        rng=named_stream(seed, "leaderboard", metric, model),
    )
    return block.estimate(METRICS[metric])


def _better(value: Floats, draws: Floats, level: float, extra: float) -> Mask:
    """Return which model is shown to be better (smaller) than which, all pairs at once."""
    gap = value[:, None] - value[None, :]
    drawn = draws[:, :, None] - draws[:, None, :]
    error = drawn.std(axis=0)
    safe = np.where(error > 0, error, np.inf)
    centred = np.abs(drawn - drawn.mean(axis=0)) / safe
    limit = np.quantile(centred.max(axis=(1, 2)), min(1.0, level + _CAREFUL))
    return np.asarray(gap < -limit * np.sqrt(error**2 + extra))


def _apart(own: list[Estimate], level: float) -> Mask:
    """Return whose ECE is shown to be below whose, all pairs at once (Bonferroni).

    Intervals at the level of all pairs would need far quantiles of very many draws: those at
    `level` are stretched as a normal law would.
    """
    pairs = len(own) * (len(own) - 1) / 2
    stretch = float(ndtri(1 - (1 - level) / pairs / 2) / ndtri((1 + level) / 2))
    return np.array([[_own_gap(a, b, stretch=stretch).high < 0 for b in own] for a in own])


def _pairs(
    names: list[str],
    order: Indices,
    own: list[Estimate],
    draws: Floats,
    better: Mask,
    *,
    biased: bool,
) -> list[dict[str, Any]]:
    gap = _own_gap if biased else _paired_gap
    return [
        {
            "a": names[a],
            "b": names[b],
            "gap": gap(own[a], own[b], draws[:, a] - draws[:, b]),
            "tie": not (better[a, b] or better[b, a]),
        }
        for first, a in enumerate(order)
        for b in order[first + 1 :]
    ]


def _paired_gap(a: Estimate, b: Estimate, drawn: Floats) -> Estimate:
    """Return a difference with the interval of its resamples."""
    gap = a.value - b.value
    low, high = np.quantile(2 * gap - drawn, ((1 - a.level) / 2, (1 + a.level) / 2))
    return Estimate(gap, max(-1.0, float(low)), min(1.0, float(high)), n=a.n)


def _own_gap(
    a: Estimate, b: Estimate, _: Floats | None = None, *, stretch: float = 1.0
) -> Estimate:
    """Return a difference with the interval that those of its two parts give (Newcombe)."""
    gap = a.value - b.value
    low = gap - stretch * math.hypot(a.value - a.low, b.high - b.value)
    high = gap + stretch * math.hypot(a.high - a.value, b.value - b.low)
    return Estimate(gap, max(-1.0, low), min(1.0, high), n=a.n)


def _instability(
    value: Floats, draws: Floats, order: Indices, names: list[str], share: float
) -> dict[str, Any]:
    """Return how often a smaller resample of the questions would have ranked otherwise."""
    ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1, kind="stable")
    own = np.argsort(np.argsort(value, kind="stable"), kind="stable")
    moved = ranks != own
    upper = np.triu_indices(len(value), 1)
    flips = np.sign(draws[:, :, None] - draws[:, None, :]) != np.sign(
        value[:, None] - value[None, :]
    )
    return {
        "share": share,
        "resamples": len(draws),
        "any_change": float(moved.any(axis=1).mean()),
        "best_changes": float((draws.argmin(axis=1) != order[0]).mean()),
        "pairs_flipped": float(flips[:, upper[0], upper[1]].mean()),
        "models": {names[k]: float(moved[:, k].mean()) for k in order},
    }
