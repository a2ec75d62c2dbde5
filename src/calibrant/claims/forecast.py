"""How many more questions would decide a pair, by the same tests that decide it today."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scipy import special

from calibrant.claims.claim import ALPHA

_POWER = float(special.ndtri(0.8))


def more_questions(pair: Mapping[str, Any], margin: float) -> float | None:
    """Return how many more questions would decide a pair with a power of 80 %, or None.

    The least of three: all views and both tests agree on one model, two views show opposite
    orders, or the errors are shown to lie within the margin of each other. A ratio to a standard
    error grows with the root of the questions.

    Parameters
    ----------
    pair
        Entry of a pair, as plain data.
    margin
        Differences below it do not matter.

    Examples
    --------
    >>> view = {"gap": {"value": 0.1}, "p_gap": 0.1, "z": 1.6, "p_square": 0.1}
    >>> pair = {"n": 100, "evidence": {"raw": view, "os_mean": view}, "p_verdict": 0.1,
    ...         "p_verdict_adjusted": 0.2, "equivalence_bound": 0.3}
    >>> round(more_questions(pair, 0.05))
    271
    """
    found = [_for_one_model(pair), _for_both_orders(pair), _for_equivalence(pair, margin)]
    factors = [factor for factor in found if factor is not None]
    return pair["n"] * max(min(factors) - 1, 0.0) if factors else None


def _needed(pair: Mapping[str, Any], tests: float = 1.0) -> float:
    """Return the ratio that a test must reach: its critical value and the quantile of the power."""
    raw, adjusted = pair["p_verdict"], pair["p_verdict_adjusted"]
    pairs = adjusted / raw if raw and adjusted is not None else 1.0
    return _POWER - float(special.ndtri(ALPHA / 2 / max(pairs, 1.0) / tests))


def _for_one_model(pair: Mapping[str, Any]) -> float | None:
    ratios = [
        size
        for view in pair["evidence"].values()
        for size in (_signed_ratio(view), view["z"])
        if size is not None
    ]
    if not ratios or (min(ratios) <= 0 <= max(ratios)):
        return None
    return float((_needed(pair) / min(map(abs, ratios))) ** 2)


def _for_both_orders(pair: Mapping[str, Any]) -> float | None:
    views = pair["evidence"].values()
    sides: dict[int, float] = {}
    for view in views:
        side, size = _sign(view["gap"]["value"]), _ratio(view["p_gap"]) or 0.0
        sides[side] = max(sides.get(side, 0.0), size)
    weakest = min(sides.get(-1, 0.0), sides.get(1, 0.0))
    return (_needed(pair, tests=len(views)) / weakest) ** 2 if weakest else None


def _for_equivalence(pair: Mapping[str, Any], margin: float) -> float | None:
    bound = pair["equivalence_bound"]
    sizes = [abs(view["gap"]["value"] or 0.0) for view in pair["evidence"].values()]
    if bound is None or max(sizes) >= margin or bound <= max(sizes):
        return None
    return float(((bound - max(sizes)) / (margin - max(sizes))) ** 2)


def _sign(value: float | None) -> int:
    return 0 if not value else int(math.copysign(1, value))


def _signed_ratio(view: Mapping[str, Any]) -> float | None:
    size = _ratio(view["p_gap"])
    return None if size is None else _sign(view["gap"]["value"]) * size


def _ratio(p: float | None) -> float | None:
    return None if p is None else -float(special.ndtri(max(p, 1e-300) / 2))
