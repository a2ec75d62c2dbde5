"""Leaderboards with their ties, over all questions and subject by subject."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from scipy.special import ndtr

from calibrant.comparison.compare import TableReader
from calibrant.comparison.decision import ALPHA, adjusted
from calibrant.comparison.entries import SPREAD
from calibrant.comparison.evidence import described_gaps, normal_interval
from calibrant.comparison.pipeline import ComparisonOptions, pair_views, surveys
from calibrant.comparison.questions import QuestionBlock, align_models
from calibrant.comparison.survey import graded_sums, paired_gap
from calibrant.core.arrays import Estimate, EstimateEntry, Floats, Indices, Mask, named_stream
from calibrant.core.errors import InputError
from calibrant.findings.claims.compare import MORE_ACCURATE_SHARE
from calibrant.findings.documents.plans import Instability, RankedPair
from calibrant.metrics.blocks.row_block import RowBlock
from calibrant.metrics.registry import METRICS
from calibrant.metrics.stats.floors import passive_floor

LEADERBOARD_METRICS = {"accuracy": False, "brier": True, "ece": True}
_BINS = 15
_CHUNK = 64


def leaderboard(
    scores: Mapping[str, tuple[Floats, Floats]],
    *,
    metric: str = "accuracy",
    level: float = 0.95,
    resamples: int = 500,
    share: float = 0.8,
    seed: int = 0,
    cluster: Indices | None = None,
    stream: Callable[[], np.random.Generator] | None = None,
) -> dict[str, Any]:
    """Rank models on the questions that each two of them share, and say which ranks are shown.

    A difference is the one that a comparison of the pair reports: of accuracy over all questions
    graded for both, of Brier score and ECE over those where both state a confidence. A pair is
    told apart by Holm's rule over all pairs, so that all ranks hold together with probability
    `level`. A model's own value and interval are those of an audit of its rows.

    Parameters
    ----------
    scores
        Confidence and outcome of every model, in the same order of questions; NaN for none.
    metric
        ``accuracy`` (more is better), ``brier`` or ``ece`` (less is better).
    level
        Coverage of all rank intervals together.
    resamples
        Bootstrap resamples.
    cluster
        What each question belongs to, where questions depend on each other: codes from 0.
    stream
        Gives the generator of the resamples behind the differences anew.
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
    block = _block(scores, names, cluster)
    n = int((~np.isnan(block.correct)).any(axis=0).sum())
    value = _values(metric, block, np.ones((1, block.size)))[0]
    partial_draws = _resampled(metric, block, max(2, round(share * block.size)), resamples, seed)
    sign = 1.0 if LEADERBOARD_METRICS[metric] else -1.0
    estimates = [_estimate(metric, block, k, level, resamples, seed) for k in range(len(names))]
    again = stream or partial(named_stream, seed, "leaderboard", metric, "full")
    if metric == "accuracy":
        gaps = _accuracy_gaps(block, level)
    else:
        gaps = _confidence_gaps(metric, block, level, resamples, again)
    better = _better(gaps, len(names), level, higher=metric == "accuracy")
    if metric == "ece":
        better &= _apart(estimates)
    low, high = rank_intervals(better)
    rank = np.argsort(np.argsort(sign * value, kind="stable"), kind="stable") + 1
    # Pairs have questions of their own: what they leave open holds the rank by value.
    low, high = np.minimum(low, rank), np.maximum(high, rank)
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
            metric: estimates[k],
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
        "pairs": _pairs(names, order, gaps, better),
        "instability": _instability(sign * value, sign * partial_draws, order, names, share),
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


def _block(
    scores: Mapping[str, tuple[Floats, Floats]], names: list[str], cluster: Indices | None
) -> QuestionBlock:
    if len(names) < 2:
        raise InputError(f"a leaderboard compares at least two models, got {len(names)}")
    confidence = [np.asarray(scores[name][0], dtype=np.float64) for name in names]
    correct = [np.asarray(scores[name][1], dtype=np.float64) for name in names]
    sizes = {array.size for array in (*confidence, *correct)}
    if len(sizes) != 1:
        rule = f"all models of a leaderboard answer the same questions, got {sorted(sizes)} rows"
        raise InputError(rule, hint="put NaN where a model has no answer")
    questions = np.arange(sizes.pop()).astype(str)
    return QuestionBlock(tuple(names), questions, np.stack(confidence), np.stack(correct), cluster)


def _values(metric: str, block: QuestionBlock, times: Floats) -> Floats:
    """Return the metric of every model for every row of question weights."""
    p, y = block.confidence, block.correct
    finite = ~np.isnan(y) if metric == "accuracy" else block.present
    total = times @ finite.T.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric != "ece":
            of = y if metric == "accuracy" else (p - y) ** 2
            return np.asarray(times @ np.where(finite, of, 0.0).T / total)
        values = np.empty(total.shape)
        for k, has in enumerate(finite):
            rows = np.flatnonzero(has)
            cell = np.minimum((p[k, rows] * _BINS).astype(np.intp), _BINS - 1)
            residual = np.zeros((rows.size, _BINS))
            residual[np.arange(rows.size), cell] = y[k, rows] - p[k, rows]
            values[:, k] = np.abs(times[:, rows] @ residual).sum(axis=1) / total[:, k]
    return values


def _resampled(metric: str, block: QuestionBlock, size: int, resamples: int, seed: int) -> Floats:
    """Return the metric of every model in resamples of some of the questions."""
    generator, n = named_stream(seed, "leaderboard", metric, "share"), block.size
    parts = []
    for start in range(0, resamples, _CHUNK):
        count = min(_CHUNK, resamples - start)
        picks = generator.integers(0, n, size=(count, size)) + n * np.arange(count)[:, None]
        times = np.bincount(picks.ravel(), minlength=n * count).reshape(count, n)
        parts.append(_values(metric, block, times.astype(np.float64)))
    return np.concatenate(parts)


def _estimate(
    metric: str, block: QuestionBlock, model: int, level: float, resamples: int, seed: int
) -> Estimate:
    p, y = block.confidence[model], block.correct[model]
    rows = ~np.isnan(y) if metric == "accuracy" else block.present[model]
    # Accuracy is about outcomes alone: no confidence is looked at.
    confidence, rng = np.nan_to_num(p[rows]), named_stream(seed, "leaderboard", metric, model)
    values = (confidence, y[rows], None, None)
    audited = RowBlock(
        *values, probability=True, bins=_BINS, level=level, resamples=resamples, rng=rng
    )
    return audited.estimate(METRICS[metric])


# By pair of models: the difference, first minus second, and the p-value of none.
Gaps: TypeAlias = dict[tuple[int, int], tuple[Estimate, float]]


def _accuracy_gaps(block: QuestionBlock, level: float) -> Gaps:
    sums, distance = graded_sums(block)
    gaps: Gaps = {}
    for a, b in combinations(range(len(block.models)), 2):
        n = sums[0, a, b]
        if n:
            gap, error = paired_gap(n, sums[1, a, b] - sums[1, b, a], distance[:, a, b])
            p = float(2 * ndtr(-abs(gap) / error))
            gaps[a, b] = normal_interval(float(gap), float(error), int(n), level), p
    return gaps


def _confidence_gaps(
    metric: str,
    block: QuestionBlock,
    level: float,
    resamples: int,
    stream: Callable[[], np.random.Generator],
) -> Gaps:
    read = TableReader([block], [stream])
    surveyed = surveys(read, 1, resamples=resamples)
    options: ComparisonOptions = {"bins": _BINS, "resamples": resamples, "target": "weakest"}
    gaps: Gaps = {}
    for *_, pairs in pair_views(read, 1, surveyed, options):
        for pair, described in zip(pairs, described_gaps(pairs) if pairs else (), strict=True):
            brier, ece = described["raw"]
            n = pair.first.n
            if metric == "ece":
                gaps[pair.a, pair.b] = ece.estimate(n, level=level), ece.student_p_value(n)
            else:
                gap = normal_interval(brier.value, brier.sd, n, level, SPREAD)
                gaps[pair.a, pair.b] = gap, brier.p_value
    return gaps


def _better(gaps: Gaps, models: int, level: float, *, higher: bool) -> Mask:
    """Return which model is shown to be better than which, all pairs at once (Holm)."""
    better = np.zeros((models, models), dtype=bool)
    # The level at which a comparison says 'right more often', or 'better calibrated'.
    alpha = MORE_ACCURATE_SHARE * (1 - level) if higher else min(ALPHA, 1 - level)
    for (a, b), p in zip(gaps, adjusted([p for _, p in gaps.values()]), strict=True):
        if p <= alpha:
            first = (gaps[a, b][0].value > 0) == higher
            better[(a, b) if first else (b, a)] = True
    return better


def _apart(estimates: list[Estimate]) -> Mask:
    """Return whose ECE is below whose by the intervals of both (Newcombe's hybrid).

    The ECE of two calibrated models differs by chance alone where one spreads its confidences:
    more than the spread of the difference tells.
    """

    def reach(a: Estimate, b: Estimate) -> float:
        return a.value - b.value + math.hypot(a.high - a.value, b.value - b.low)

    return np.array([[reach(a, b) < 0 for b in estimates] for a in estimates])


def _pairs(names: list[str], order: Indices, gaps: Gaps, better: Mask) -> list[RankedPair]:
    display = better | better.T
    return [
        RankedPair(a=names[a], b=names[b], gap=_turned(gaps, a, b), tie=not display[a, b])
        for a, b in combinations(order.tolist(), 2)
    ]


def _turned(gaps: Gaps, a: int, b: int) -> EstimateEntry:
    """Return the difference of two models, whichever comes first; NaN without a common question."""
    if (a, b) in gaps:
        return gaps[a, b][0]
    return gaps[b, a][0].turned() if (b, a) in gaps else EstimateEntry(n=0)


def _instability(
    value: Floats, draws: Floats, order: Indices, names: list[str], share: float
) -> Instability:
    """Return how often a smaller resample of the questions would have ranked otherwise."""
    ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1, kind="stable")
    rank = np.argsort(np.argsort(value, kind="stable"), kind="stable")
    moved = ranks != rank
    upper = np.triu_indices(len(value), 1)
    flips = np.sign(draws[:, :, None] - draws[:, None, :]) != np.sign(value[:, None] - value)
    return Instability(
        share=share,
        resamples=len(draws),
        any_change=float(moved.any(axis=1).mean()),
        best_changes=float((draws.argmin(axis=1) != order[0]).mean()),
        pairs_flipped=float(flips[:, upper[0], upper[1]].mean()),
        models={names[k]: float(moved[:, k].mean()) for k in order},
    )


_FEWEST = 20


def subject_rankings(
    rows: pl.DataFrame, by: str, *, metric: str = "accuracy", seed: int = 0
) -> list[dict[str, Any]]:
    """Rank the models on every subject, with the paper's floor and the instability of the order.

    Parameters
    ----------
    rows
        Columns ``question_id``, ``model``, ``confidence``, ``correct`` and `by`.
    by
        Column of subjects; those with fewer than 20 questions answered by all models are left
        out.
    metric
        ``accuracy``, ``brier`` or ``ece``.
    seed
        Seed of the resampling.

    References
    ----------
    The Verification Tax, Table 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = pl.DataFrame({"question_id": [str(k) for k in range(200)] * 2, "topic": "law",
    ...     "model": ["a"] * 200 + ["b"] * 200, "confidence": 0.7,
    ...     "correct": np.r_[rng.random(200) < 0.9, rng.random(200) < 0.5] * 1.0})
    >>> found = subject_rankings(rows, "topic")[0]
    >>> found["subject"], found["ranked_pairs"], found["above_floor"]
    ('law', 1, True)
    """
    if by not in rows.columns:
        raise InputError(f"there is no column {by!r} to rank by")
    names = rows["model"].unique(maintain_order=True).to_list()
    rankings = []
    for part in rows.partition_by(by, maintain_order=True):
        if len(names) < 2 or part["model"].n_unique() < len(names):
            continue
        whole = align_models(part, names)
        if (~np.isnan(whole.correct)).all(axis=0).sum() < _FEWEST:
            continue
        models = zip(whole.models, whole.confidence, whole.correct, strict=True)
        arrays = {name: (statement, right) for name, statement, right in models}
        board = leaderboard(arrays, metric=metric, seed=seed)
        accuracy = {model: float(np.nanmean(y)) for model, (_, y) in arrays.items()}
        error = 1.0 - float(np.mean(list(accuracy.values())))
        # The paper's Table 3 puts the number of subjects where the number of questions belongs.
        floor, as_printed = (
            passive_floor(error_rate=error, labels=labels, lipschitz=1.0)
            for labels in (whole.size, rows[by].n_unique())
        )
        gap = max(accuracy.values()) - min(accuracy.values())
        rankings.append(
            {
                "subject": str(part[by][0]),
                "n": whole.size,
                "accuracy": accuracy,
                "largest_gap": gap,
                "floor": floor,
                "above_floor": gap > floor,
                "groups": board["groups"],
                "ranked_pairs": sum(not pair.tie for pair in board["pairs"]),
                "pairs": len(board["pairs"]),
                "instability": board["instability"],
                "floor_as_printed": as_printed,
            }
        )
    return sorted(rankings, key=lambda entry: -entry["n"])
