"""Groups where a confidence is off: found on one part of the rows, tested on another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import false_discovery_control, norm

from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.epistemic.checks import checked_pair
from calibrant.epistemic.features import FeatureEncoder, as_frame
from calibrant.epistemic.recalibrators import fit_recalibrator
from calibrant.epistemic.rules import leaf_rules, readable_thresholds
from calibrant.epistemic.splits import SHARES, three_parts
from calibrant.epistemic.tree import grow_tree
from calibrant.metrics.recalibration import Calibrator
from calibrant.stats.multiplicity import holm

__all__ = ["CONTROLS", "ConfidenceGroups", "Group", "adjusted", "gap_test"]

Floats = npt.NDArray[np.float64]
CONTROLS = ("holm", "bh")

# Features with this few values are looked at value by value, as categories are.
_FEW_VALUES = 10


@dataclass(frozen=True, slots=True)
class Group:
    """A group of held-out rows: where to look, not whom to blame.

    Parameters
    ----------
    rule
        Who belongs to it.
    kind
        ``"region"`` (a leaf of the tree; regions do not overlap) or ``"value"`` (one value of
        one feature).
    n
        Held-out rows.
    mean_confidence, rate
        Mean confidence and observed rate.
    rate_interval
        Wilson interval of the rate.
    gap
        Mean confidence minus rate: above 0 is over-confident.
    gap_interval
        Normal interval of the gap, for this group alone.
    gap_recalibrated
        The gap that is left after recalibration over all rows.
    p_value, p_adjusted
        Of no gap; adjusted for the number of groups tested.
    flagged
        Whether the adjusted p value is at most alpha.
    confidence_range
        The 5 % and 95 % quantile of the confidence in the group.
    """

    rule: str
    kind: str
    n: int
    mean_confidence: float
    rate: float
    rate_interval: tuple[float, float]
    gap: float
    gap_interval: tuple[float, float]
    gap_recalibrated: float
    p_value: float
    p_adjusted: float
    flagged: bool
    confidence_range: tuple[float, float]

    @property
    def direction(self) -> str:
        """Over-confident or under-confident."""
        return "over-confident" if self.gap > 0 else "under-confident"


def gap_test(confidence: Floats, correct: Floats) -> tuple[float, float, float]:
    """Return gap, standard error and two-sided p value of 'confidence equals rate'.

    The standard error is the larger of two: the one seen in the rows, and the one that outcomes
    drawn from the confidence would have. The first alone is 0 where a rare outcome is absent
    by chance; the second alone is 0 where the confidence is 1.

    Examples
    --------
    >>> gap, error, p = gap_test(np.full(100, 0.9), np.r_[np.ones(70), np.zeros(30)])
    >>> round(gap, 3), p < 1e-4
    (0.2, True)
    """
    difference = confidence - correct
    n = len(difference)
    seen = float(np.var(difference, ddof=1)) if n > 1 else 0.0
    drawn = float(np.mean(confidence * (1 - confidence)))
    error = math.sqrt(max(seen, drawn) / n)
    gap = float(np.mean(difference))
    if error == 0.0:
        return gap, error, 1.0 if gap == 0.0 else 0.0
    return gap, error, float(2 * norm.sf(abs(gap) / error))


def adjusted(p_values: Sequence[float], control: str) -> Floats:
    """Return p values adjusted for their number.

    ``"holm"`` bounds the chance of any false flag, ``"bh"`` the expected share of false flags
    among all flags.

    Examples
    --------
    >>> adjusted([0.01, 0.04, 0.5], "holm").tolist()
    [0.03, 0.08, 0.5]
    """
    if control not in CONTROLS:
        raise InputError(f"control must be one of {', '.join(CONTROLS)}, got {control!r}")
    p = np.asarray(p_values, dtype=np.float64)
    if len(p) == 0:
        return p
    if control == "bh":
        return np.asarray(false_discovery_control(p, method="bh"), dtype=np.float64)
    return holm(p)


class ConfidenceGroups:
    """Find groups where the confidence is off and test them on rows kept apart.

    Groups are the leaves of a small tree on the residuals (fitting part) and the single values
    of categorical features; gaps are measured and tested on the evaluation part only.

    Parameters
    ----------
    max_groups, max_conditions
        Leaves of the tree, and conditions that lead to one.
    min_group
        Rows that a group must have, in the fitting part for leaves and in the evaluation part
        for a test.
    alpha, control
        Level and kind of the control for the number of groups: ``"holm"`` or ``"bh"``.
    recalibration, shares, splits, level, seed
        As in `GroupingLoss`.

    Attributes
    ----------
    groups_ : list of Group
        Flagged ones first, by what they add to the Brier score (rows times squared gap).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.choice(["a", "b"], size=4000)
    >>> y = rng.random(4000) < np.where(x == "a", 0.9, 0.5)
    >>> found = ConfidenceGroups().fit({"x": x}, np.full(4000, 0.7), y).groups_
    >>> [(g.rule, g.kind, g.flagged, round(g.gap, 1)) for g in found]
    [('x = a', 'region', True, -0.2), ('x = b', 'region', True, 0.2)]
    """

    groups_: list[Group]
    recalibrator_: Calibrator

    def __init__(
        self,
        *,
        max_groups: int = 12,
        max_conditions: int = 3,
        min_group: int = 50,
        alpha: float = 0.05,
        control: str = "holm",
        recalibration: str = "platt",
        shares: Sequence[float] = SHARES,
        splits: str = "auto",
        level: float = 0.95,
        seed: int = 0,
    ) -> None:
        self.max_groups = max_groups
        self.max_conditions = max_conditions
        self.min_group = min_group
        self.alpha = alpha
        self.control = control
        self.recalibration = recalibration
        self.shares = shares
        self.splits = splits
        self.level = level
        self.seed = seed

    def fit(
        self,
        features: Any,
        confidence: npt.ArrayLike,
        correct: npt.ArrayLike,
        *,
        units: npt.NDArray[np.int64] | None = None,
    ) -> ConfidenceGroups:
        """Find the groups on the fitting part and test them on the evaluation part."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        calibration, fitting, evaluation = three_parts(
            y,
            named_stream(self.seed, "grouping loss", 0),
            shares=self.shares,
            min_samples_leaf=min(self.min_group, 15),
            units=units,
        )
        self.recalibrator_ = fit_recalibrator(self.recalibration, f[calibration], y[calibration])
        c = self.recalibrator_.transform(f)
        members = self._regions(frame, (y - c), fitting, evaluation)
        members += self._values(frame[evaluation], {rule for rule, _, _ in members})
        fe, ce, ye = f[evaluation], c[evaluation], y[evaluation]
        tested = [(rule, kind, rows) for rule, kind, rows in members if len(rows) >= self.min_group]
        self.untested_ = len(members) - len(tested)
        tests = [gap_test(fe[rows], ye[rows]) for _, _, rows in tested]
        p_adjusted = adjusted([p for _, _, p in tests], self.control)
        groups = [
            self._group(rule, kind, test, float(p), fe[rows], ce[rows], ye[rows])
            for (rule, kind, rows), test, p in zip(tested, tests, p_adjusted, strict=True)
        ]
        self.groups_ = sorted(
            groups, key=lambda group: (not group.flagged, -group.n * group.gap**2)
        )
        return self

    def _regions(
        self,
        frame: pl.DataFrame,
        residual: Floats,
        fitting: npt.NDArray[np.int64],
        evaluation: npt.NDArray[np.int64],
    ) -> list[tuple[str, str, npt.NDArray[np.int64]]]:
        encoder = FeatureEncoder(unseen="calibration").fit(frame[fitting], residual[fitting])
        matrix = encoder.transform(frame[fitting])
        tree = grow_tree(
            matrix,
            residual[fitting],
            splits=self.splits,
            min_samples_leaf=min(self.min_group, len(fitting) // 2),
            max_leaf_nodes=max(self.max_groups, 2),
            max_depth=self.max_conditions,
            seed=self.seed,
        )
        tree = readable_thresholds(tree, matrix)
        rules = leaf_rules(tree, encoder.features_, _whole_features(frame))
        leaves = tree.apply(encoder.transform(frame[evaluation]))
        return [(rule, "region", np.flatnonzero(leaves == leaf)) for leaf, rule in enumerate(rules)]

    def _values(
        self, frame: pl.DataFrame, taken: set[str]
    ) -> list[tuple[str, str, npt.NDArray[np.int64]]]:
        found = []
        for column in frame.get_columns():
            if column.dtype.is_numeric() and column.n_unique() > _FEW_VALUES:
                continue
            for value in column.unique().sort().to_list():
                rule = f"{column.name} = {_value_text(value)}"
                if rule not in taken:
                    rows = (column == value).arg_true().to_numpy().astype(np.int64)
                    found.append((rule, "value", rows))
        return found

    def _group(
        self,
        rule: str,
        kind: str,
        test: tuple[float, float, float],
        p_adjusted: float,
        f: Floats,
        c: Floats,
        y: Floats,
    ) -> Group:
        gap, error, p = test
        z = float(norm.ppf(0.5 + self.level / 2))
        n, rate = len(y), float(np.mean(y))
        low, high = np.quantile(f, [0.05, 0.95])
        return Group(
            rule=rule,
            kind=kind,
            n=n,
            mean_confidence=float(np.mean(f)),
            rate=rate,
            rate_interval=_wilson(rate, n, z),
            gap=gap,
            gap_interval=(gap - z * error, gap + z * error),
            gap_recalibrated=float(np.mean(c - y)),
            p_value=p,
            p_adjusted=p_adjusted,
            flagged=p_adjusted <= self.alpha,
            confidence_range=(float(low), float(high)),
        )


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _wilson(rate: float, n: int, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def _whole_features(frame: pl.DataFrame) -> frozenset[str]:
    """Return the numeric features that hold whole numbers only."""
    return frozenset(
        column.name
        for column in frame.get_columns()
        if column.dtype.is_integer()
        or (column.dtype.is_float() and bool((column == column.round()).all()))
    )
