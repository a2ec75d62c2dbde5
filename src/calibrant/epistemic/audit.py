"""The confidence audit of one block of rows as a plain document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.estimate import Estimate
from calibrant.epistemic.decision_risk import DecisionRisk
from calibrant.epistemic.grouping_loss import GroupingLoss
from calibrant.epistemic.groups import ConfidenceGroups, Group
from calibrant.epistemic.honest import HonestTree
from calibrant.metrics.recalibration import Calibrator

__all__ = ["GroupOptions", "groups_entry"]

_CURVE_POINTS = 101
_GROUPS_SHOWN = 200
_REGIONS_DRAWN = 24


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Options of the audit; see `GroupingLoss`, `ConfidenceGroups` and `DecisionRisk`."""

    recalibration: str = "platt"
    residuals: str = "tree"
    splits: str = "auto"
    repeats: int = 5
    min_samples_leaf: int = 15
    max_groups: int = 12
    max_conditions: int = 3
    min_group: int = 50
    alpha: float = 0.05
    control: str = "holm"
    costs: Any = None
    threshold: float | None = None
    level: float = 0.95
    seed: int = 0


def groups_entry(
    features: pl.DataFrame,
    confidence: npt.NDArray[Any],
    correct: npt.NDArray[Any],
    *,
    options: GroupOptions,
    units: npt.NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """Return grouping loss, decomposition, decision risk and groups of one block."""
    f, y = confidence.astype(np.float64), correct.astype(np.float64)
    loss, risk, found = _estimators(options)
    for estimator in (loss, risk, found):
        estimator.fit(features, f, y, units=units)
    parts = loss.decomposition_
    return {
        "n": len(f),
        "n_evaluated": parts.grouping.n,
        "mean_confidence": float(f.mean()),
        "rate": float(y.mean()),
        "grouping_loss": parts.grouping,
        "calibration_loss": parts.calibration,
        "epistemic_loss": parts.epistemic,
        "brier": parts.brier,
        "rest": parts.rest,
        "splits": {"repeats": options.repeats, "spread": loss.spread_},
        "regions": _regions(loss),
        "decision": _decision(risk),
        "multiplicity": {
            "control": options.control,
            "alpha": options.alpha,
            "tested": len(found.groups_),
            "too_small": found.untested_,
            "min_group": options.min_group,
        },
        "groups": [_group(group) for group in found.groups_[:_GROUPS_SHOWN]],
        "groups_not_shown": max(0, len(found.groups_) - _GROUPS_SHOWN),
        "reliability": _reliability(found.recalibrator_, f, found.groups_),
    }


def _estimators(options: GroupOptions) -> tuple[GroupingLoss, DecisionRisk, ConfidenceGroups]:
    """Return the three unfitted estimators; with one seed they split the rows alike."""
    shared: dict[str, Any] = {
        "recalibration": options.recalibration,
        "splits": options.splits,
        "level": options.level,
        "seed": options.seed,
    }
    model: dict[str, Any] = {
        "min_samples_leaf": options.min_samples_leaf,
        "model": options.residuals,
    }
    return (
        GroupingLoss(repeats=options.repeats, **model, **shared),
        DecisionRisk(costs=options.costs, threshold=options.threshold, **model, **shared),
        ConfidenceGroups(
            max_groups=options.max_groups,
            max_conditions=options.max_conditions,
            min_group=options.min_group,
            alpha=options.alpha,
            control=options.control,
            **shared,
        ),
    )


def _regions(loss: GroupingLoss) -> dict[str, Any]:
    """Describe the partition of the first split."""
    first = loss.fits_[0]
    if not isinstance(first.model, HonestTree):
        return {"model": loss.model, "too_few": loss.too_few_}
    return {
        "model": loss.model,
        "leaves": first.model.tree_.n_leaves,
        "with_rows": first.grouping.regions,
        "empty": first.grouping.empty,
        "pooled_rows": first.grouping.pooled,
        "gain_of_last_doubling": loss.gain_,
        "still_rising": loss.still_rising_,
        "too_few": loss.too_few_,
    }


def _decision(risk: DecisionRisk) -> dict[str, Any]:
    at = risk.costs.threshold if risk.threshold is None else risk.threshold
    estimates: dict[str, Estimate] = {
        "total": risk.total_,
        "calibration": risk.calibration_,
        "grouping": risk.grouping_,
        "saved": risk.saved_,
    }
    return {
        "costs": risk.costs.to_dict(),
        "optimal_threshold": risk.costs.threshold,
        "threshold": at,
        **estimates,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "rule": group.rule,
        "kind": group.kind,
        "n": group.n,
        "mean_confidence": group.mean_confidence,
        "rate": group.rate,
        "rate_interval": dict(zip(("low", "high"), group.rate_interval, strict=True)),
        "gap": group.gap,
        "gap_interval": dict(zip(("low", "high"), group.gap_interval, strict=True)),
        "gap_recalibrated": group.gap_recalibrated,
        "direction": group.direction,
        "p_value": group.p_value,
        "p_adjusted": group.p_adjusted,
        "flagged": group.flagged,
    }


def _reliability(
    recalibrator: Calibrator, f: npt.NDArray[np.float64], groups: list[Group]
) -> dict[str, Any]:
    """Return the recalibration curve and its shift in each region, over the region's range."""
    grid = np.linspace(float(f.min()), float(f.max()), _CURVE_POINTS)
    regions = [group for group in groups if group.kind == "region"]
    return {
        "confidence": grid,
        "recalibrated": recalibrator.transform(grid),
        "regions": [
            {
                "rule": group.rule,
                "n": group.n,
                "shift": -group.gap_recalibrated,
                "confidence_low": group.confidence_range[0],
                "confidence_high": group.confidence_range[1],
                "flagged": group.flagged,
            }
            for group in regions[:_REGIONS_DRAWN]
        ],
    }
