"""What a judge adds to people's labels: the estimate with it, beside the one without."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core.estimate import Estimate
from calibrant.planning.labelling.estimates import pool_estimate
from calibrant.planning.labelling.pools import LabelPool


def judged_pool(pool: LabelPool) -> dict[str, Any]:
    """Return accuracy, Brier score and gap with and without the side information of a pool.

    The judge's verdicts (the first column of side information) take noise out of the estimate;
    the labels alone decide its value, with the weights of their draw.

    Returns
    -------
    dict
        ``gold_labels``, ``judge_labels``, and per quantity ``combined``, ``gold_only``,
        ``judge_only``, ``width_ratio`` and ``gold_saved``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, y = rng.beta(5, 1, 3000), rng.random(3000) < 0.7
    >>> judge = np.where(rng.random(3000) < 0.95, y, ~y)[:, None] * 1.0
    >>> known = np.where(np.arange(3000) < 300, y, np.nan)
    >>> judged_pool(LabelPool(p, known, judge))["accuracy"]["width_ratio"] < 0.7
    True
    """
    plain = LabelPool(pool.confidence, pool.correct, None, pool.bins, pool.draws)
    both, alone = pool_estimate(pool), pool_estimate(plain)
    p = pool.confidence
    verdict = np.zeros_like(p) if pool.side is None else pool.side[:, 0]
    judge_only = {
        "accuracy": float(verdict.mean()),
        "brier": float(((p - verdict) ** 2).mean()),
        "gap": float((verdict - p).mean()),
    }
    pairs = {
        "accuracy": (both.accuracy, alone.accuracy),
        "brier": (both.brier, alone.brier),
        "gap": (both.mean_gap, alone.mean_gap),
    }
    found: dict[str, Any] = {
        "gold_labels": alone.ece.n,
        "judge_labels": int(p.size),
        "bins": [],
    }
    for name, (with_judge, without) in pairs.items():
        ratio = _width(with_judge) / _width(without) if _width(without) > 0 else 1.0
        saved = round(alone.ece.n * (1 / ratio**2 - 1)) if ratio > 0 else 0
        found[name] = {
            "combined": with_judge,
            "gold_only": without,
            "judge_only": judge_only[name],
            "judge_weight": None,
            "width_ratio": ratio,
            "gold_saved": max(0, saved),
        }
    return found


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low
