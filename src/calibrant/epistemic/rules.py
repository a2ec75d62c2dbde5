"""Regions of a tree as readable rules."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.epistemic.features import Feature
from calibrant.epistemic.tree import Tree

__all__ = ["leaf_rules", "readable_thresholds", "short_decimal"]

Floats = npt.NDArray[np.float64]

_MANY_LEVELS = 6


def short_decimal(low: float, high: float) -> float:
    """Return the number with the fewest digits in [low, high).

    Examples
    --------
    >>> short_decimal(24.0, 25.0), short_decimal(0.12345, 0.12712)
    (24.0, 0.124)
    """
    for digits in range(-12, 16):
        step = 10.0**-digits
        candidate = round(math.ceil(low / step) * step, max(digits, 0))
        if low <= candidate < high:
            return candidate
    return low


def readable_thresholds(tree: Tree, matrix: Floats) -> Tree:
    """Return the tree with every threshold moved to the shortest number between two values.

    The rows of `matrix` keep their leaves; a printed rule is then exactly what is computed.
    """
    threshold = tree.threshold.copy()
    columns = {
        int(position): np.unique(matrix[:, position])
        for position in np.unique(tree.feature[tree.feature >= 0])
    }
    for node in np.flatnonzero(tree.feature >= 0):
        values = columns[int(tree.feature[node])]
        after = int(np.searchsorted(values, threshold[node], side="right"))
        if 0 < after < len(values):
            threshold[node] = short_decimal(float(values[after - 1]), float(values[after]))
    return Tree(tree.feature, threshold, tree.left, tree.right, tree.value)


def leaf_rules(tree: Tree, features: tuple[Feature, ...], whole: frozenset[str]) -> list[str]:
    """Return one rule per leaf, in the order of leaf numbers.

    Parameters
    ----------
    tree
        The regions.
    features
        The features the tree was grown on.
    whole
        Names of features that hold whole numbers only: 'age > 24' is written 'age >= 25'.
    """
    rules: list[str] = []
    stack: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while stack:
        node, bounds = stack.pop()
        position = int(tree.feature[node])
        if position < 0:
            rules.append(_rule(bounds, features, whole))
            continue
        low, high = bounds.get(position, (-math.inf, math.inf))
        cut = float(tree.threshold[node])
        stack.append((int(tree.right[node]), {**bounds, position: (max(low, cut), high)}))
        stack.append((int(tree.left[node]), {**bounds, position: (low, min(high, cut))}))
    return rules


def _rule(
    bounds: dict[int, tuple[float, float]], features: tuple[Feature, ...], whole: frozenset[str]
) -> str:
    parts = []
    for position, (low, high) in bounds.items():
        feature = features[position]
        if feature.levels is None:
            parts.append(_interval(feature.name, low, high, whole=feature.name in whole))
        else:
            codes = range(len(feature.levels))
            chosen = [feature.levels[code] for code in codes if low < code <= high]
            parts.append(_set(feature.name, chosen, feature.levels))
    return " and ".join(parts) or "all rows"


def _interval(name: str, low: float, high: float, *, whole: bool) -> str:
    if whole:
        first = math.floor(low) + 1 if math.isfinite(low) else None
        last = math.floor(high) if math.isfinite(high) else None
        if first is not None and first == last:
            return f"{name} = {first}"
        ends = [f"{name} >= {first}"] if first is not None else []
        ends += [f"{name} <= {last}"] if last is not None else []
        return " and ".join(ends)
    ends = [f"{name} > {low:.10g}"] if math.isfinite(low) else []
    ends += [f"{name} <= {high:.10g}"] if math.isfinite(high) else []
    return " and ".join(ends)


def _set(name: str, chosen: list[str], levels: tuple[str, ...]) -> str:
    if len(chosen) == 1:
        return f"{name} = {chosen[0]}"
    others = sorted(set(levels) - set(chosen))
    if len(others) == 1:
        return f"{name} != {others[0]}"
    if len(others) < len(chosen) and len(chosen) > _MANY_LEVELS:
        return f"{name} not in {{{', '.join(others)}}}"
    return f"{name} in {{{', '.join(sorted(chosen))}}}"
