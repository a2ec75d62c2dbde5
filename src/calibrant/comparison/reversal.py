"""Ranking reversals: does a fairer view prefer the other model?"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Estimate, Mask
from calibrant.core.errors import InputError
from calibrant.metrics.stats.intervals import normal_quantile, wilson_estimate

Gaps: TypeAlias = Mapping[str, npt.ArrayLike]
# The views of the literature, whose exclusive patterns are counted, and the fair footings.
PAPER = ("ca", "da", "ia")
FAIR = ("os_weakest", "os_strongest", "sda")
_EVERY = (*PAPER, *FAIR)
_GAP_EDGES = (0, 0.02, 0.05, 0.1, 0.2, 1)
_THINK = re.compile(r"[-_ ]?(no[-_ ]?)?think(ing)?$")
_DATE = re.compile(r"[-_ ]?20\d\d([-_]?\d\d){0,2}")
_SIZE = re.compile(r"[-_ ]?\b(\d+(\.\d+)?[bm]|mini|nano|small|medium|large|tiny|pro|lite)\b")


def reverses(raw: float, view: float) -> bool:
    """Return whether the view prefers the other model; a gap of zero reverses nothing.

    Examples
    --------
    >>> reverses(0.02, -0.01), reverses(0.02, 0.0)
    (True, False)
    """
    return bool(np.sign(raw) * np.sign(view) < 0)


def reversal_pattern(gaps: Mapping[str, float]) -> str:
    """Return the exclusive pattern of one case: ``none``, ``DA only``, ``DA+IA``, ``all``.

    Examples
    --------
    >>> reversal_pattern({"raw": 1.0, "ca": 2.0, "da": -1.0, "ia": -3.0})
    'DA+IA'
    """
    present = [view for view in PAPER if view in gaps]
    flipped = [view.upper() for view in present if reverses(gaps["raw"], gaps[view])]
    if not flipped:
        return "none"
    if len(flipped) == 1:
        return f"{flipped[0]} only"
    return "all" if len(flipped) == len(PAPER) else "+".join(flipped)


def reversal_summary(gaps: Gaps) -> dict[str, Any]:
    """Return shares of exclusive patterns and how often two views agree.

    Parameters
    ----------
    gaps
        ``raw`` and any of ``ia``, ``da``, ``ca``: the gap (first minus second model) per case.

    Returns
    -------
    dict
        ``cases``; ``patterns`` name to count and share (an estimate); ``rates`` per view;
        ``agreement`` of DA with IA: both turn the raw order round, or neither does.
    """
    if "raw" not in gaps:
        raise InputError(f"the raw gaps are needed, got {', '.join(gaps) or 'nothing'}")
    table = {name: np.asarray(values, dtype=np.float64) for name, values in gaps.items()}
    cases = table["raw"].size
    rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    patterns = Counter(reversal_pattern(row) for row in rows)
    summary: dict[str, Any] = {
        "cases": cases,
        "patterns": {
            name: {"count": count, "share": wilson_estimate(count / cases, cases)}
            for name, count in sorted(patterns.items(), key=lambda item: (-item[1], item[0]))
        },
        "rates": _rates(gaps, np.ones(cases, dtype=bool)),
    }
    if "da" in gaps and "ia" in gaps:
        flipped = _turned(gaps)
        summary["agreement"] = wilson_estimate(
            float((flipped["da"] == flipped["ia"]).mean()), cases
        )
    return summary


def _turned(gaps: Gaps) -> dict[str, Mask]:
    """Return, per view, the cases whose order it turns round."""
    sign = {view: np.sign(np.asarray(values, dtype=np.float64)) for view, values in gaps.items()}
    return {view: sign["raw"] * sign[view] < 0 for view in _EVERY if view in gaps}


def _rates(gaps: Gaps, inside: Mask) -> dict[str, Estimate]:
    """Return how often each view turns the raw order round, among some of the cases."""
    cases = int(inside.sum())
    flipped = _turned(gaps).items() if cases else ()
    return {
        view: wilson_estimate(int(flags[inside].sum()) / cases, cases) for view, flags in flipped
    }


def accuracy_gap_bins(accuracy_gap: npt.ArrayLike, gaps: Gaps) -> list[dict[str, float | Estimate]]:
    """Return reversal rates by the size of the accuracy gap."""
    size = np.abs(np.asarray(accuracy_gap, dtype=np.float64))
    rows: list[dict[str, float | Estimate]] = []
    for low, high in pairwise(_GAP_EDGES):
        inside = (size >= low) & ((size < high) | (high == _GAP_EDGES[-1]))
        rows.append({"low": low, "high": high, "cases": int(inside.sum()), **_rates(gaps, inside)})
    return rows


def gap_quadrants(raw: npt.ArrayLike, aligned: npt.ArrayLike) -> dict[str, int]:
    """Count the quadrants of raw gap against aligned gap.

    Examples
    --------
    >>> gap_quadrants([1, 1, -1, 0], [1, -1, -1, 2])
    {'both prefer second': 1, 'both prefer first': 1, 'turned': 1, 'a gap of zero': 1}
    """
    x, y = (np.sign(np.asarray(gap, dtype=np.float64)) for gap in (raw, aligned))
    return {
        "both prefer second": int(((x > 0) & (y > 0)).sum()),
        "both prefer first": int(((x < 0) & (y < 0)).sum()),
        "turned": int((x * y < 0).sum()),
        "a gap of zero": int((x * y == 0).sum()),
    }


def gap_correlation(
    accuracy_gap: npt.ArrayLike, gap: npt.ArrayLike, *, centred: bool = True, level: float = 0.95
) -> Estimate:
    """Return the correlation of accuracy gap and calibration gap over cases (Fisher interval).

    Parameters
    ----------
    accuracy_gap, gap
        First minus second model, per case.
    centred
        Pearson's correlation, as in the paper. The sign of a case depends on which model is named
        first, and so does Pearson's; about the origin it is the same whichever way round each pair
        is written.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (accuracy_gap, gap))
    n = x.size
    if centred and n:
        x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    if n < 4 or norm == 0:
        return Estimate(float("nan"), float("nan"), float("nan"), n, level, interval="fisher")
    r = float(x @ y) / norm
    reach = normal_quantile(level) / np.sqrt(n - (3 if centred else 2))
    bounded = min(max(r, -1 + 1e-15), 1 - 1e-15)
    low, high = np.tanh(np.arctanh(bounded) + np.array([-reach, reach]))
    return Estimate(r, float(low), float(high), n, level, interval="fisher")


def pair_kind(first: str, second: str) -> str:
    """Return how two models are related, read from their names.

    ``think`` (one thinks before it answers), ``size`` (they differ in the number of parameters or
    in a word such as mini), ``family`` (they share the first part of their name), ``other``.

    Examples
    --------
    >>> pair_kind("Qwen3-8B", "Qwen3-8B-think"), pair_kind("Qwen3-8B", "Qwen3-14B")
    ('think', 'size')
    >>> pair_kind("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"), pair_kind("gpt-4o", "phi-4")
    ('size', 'other')
    """
    plain = [_THINK.sub("", _DATE.sub("", name.lower())).strip("-_ ") for name in (first, second)]
    thinks = [bool(_THINK.search(name.lower())) for name in (first, second)]
    if plain[0] == plain[1] and thinks[0] != thinks[1]:
        return "think"
    sizes = [_SIZE.sub("", name).strip("-_ ") for name in plain]
    if thinks[0] == thinks[1] and sizes[0] == sizes[1] and plain[0] != plain[1]:
        return "size"
    heads = [re.split(r"[-_/ .:]|(?<=[a-z])(?=\d)", name)[0] for name in plain]
    return "family" if heads[0] == heads[1] else "other"


def rates_by(kinds: Sequence[str], gaps: Gaps) -> list[dict[str, str | int | Estimate]]:
    """Return reversal rates per kind of case, the most frequent kind first.

    Examples
    --------
    >>> rates_by(["x", "y", "x"], {"raw": [1, 1, -1], "da": [-1, 1, -1]})[0]["cases"]
    2
    """
    counts = Counter(kinds)
    rows: list[dict[str, str | int | Estimate]] = []
    for kind in sorted(counts, key=lambda name: (-counts[name], name)):
        inside = np.array([name == kind for name in kinds])
        rows.append({"kind": kind, "cases": counts[kind], **_rates(gaps, inside)})
    return rows


def summary_of_pairs(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put all pairs together: how often the views of the literature turn the raw order round."""
    paper = [view for view in PAPER if all(view in pair["reversal"] for pair in pairs)]
    views = [*paper, *FAIR]
    difference = [
        {view: pair["gaps"][view]["ece"].value for view in (*views, "raw")} for pair in pairs
    ]
    defined = [all(map(math.isfinite, gaps.values())) for gaps in difference]
    if not any(defined):
        return {"cases": 0}
    selection = [*compress(pairs, defined)]
    gaps = {
        view: np.array([part[view] for part in compress(difference, defined)])
        for view in difference[0]
    }
    accuracy = np.array([pair["accuracy_gap"].value for pair in selection])
    return {
        **reversal_summary(gaps),
        "undefined": len(pairs) - len(selection),
        # Counted once all pairs are known, see `decide_document`.
        "resolved_reversals": dict.fromkeys(paper, 0),
        "ties": {
            view: sum(pair["ties"][view]["ece"] for pair in pairs) for view in ("raw", *paper)
        },
        "by_accuracy_gap": accuracy_gap_bins(accuracy, gaps),
        "by_kind": rates_by([pair_kind(pair["a"], pair["b"]) for pair in selection], gaps),
        "quadrants": {view: gap_quadrants(gaps["raw"], gaps[view]) for view in views},
        "correlation": {view: gap_correlation(accuracy, gaps[view]) for view in gaps},
        "correlation_origin": {
            view: gap_correlation(accuracy, gaps[view], centred=False) for view in gaps
        },
    }
