"""The groups, losses and risks of one block of rows as a plain document, and of many."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.estimate import Estimate
from calibrant.epistemic.loss.binned import BinnedGroupingLoss
from calibrant.epistemic.loss.decision import DecisionRisk
from calibrant.epistemic.loss.grouping import GroupingLoss, mean_error
from calibrant.epistemic.loss.tree_loss import TreeGroupingLoss
from calibrant.epistemic.segments import confidence_groups
from calibrant.epistemic.segments.group import Group
from calibrant.records.features import as_frame

_CURVE_POINTS = 101
_GROUPS_SHOWN = 200
_REGIONS_DRAWN = 24


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Options of the audit; see `GroupingLoss`, `ConfidenceGroups` and `DecisionRisk`."""

    group: tuple[str, ...] = ()
    min_group: int = 50
    alpha: float = 0.05
    costs: Any = None
    threshold: float | None = None
    level: float = 0.95
    seed: int = 0
    estimator: str = "boosting"


def groups_entry(
    features: pl.DataFrame,
    confidence: Array,
    correct: Array,
    *,
    options: GroupOptions,
    units: Ints | None = None,
    numbers: Sequence[str] = (),
) -> tuple[dict[str, Any], confidence_groups.GroupCorrector]:
    """Return the entry of one block, and the corrected confidence it leads to.

    Parameters
    ----------
    features
        Columns that describe a group, and those in `numbers`.
    confidence, correct
        Confidence and outcome per row.
    options
        Options.
    units
        Code of the question, where a question has several rows.
    numbers
        Columns that serve the losses alone: components of an embedding tell a person nothing.
    """
    f, y = confidence.astype(np.float64), correct.astype(np.float64)
    shared: dict[str, Any] = {"level": options.level, "seed": options.seed}
    readable = as_frame(features).drop(list(numbers))
    found = confidence_groups.ConfidenceGroups(
        min_group=options.min_group, alpha=options.alpha, named=options.group, **shared
    ).fit(readable, f, y, units=units)
    loss = GroupingLoss(**shared).fit(features, f, y, units=units)
    risk = DecisionRisk(costs=options.costs, threshold=options.threshold, **shared)
    risk.measure(f, y, loss.fit_, units)
    groups = found.groups_[:_GROUPS_SHOWN]
    corrected = loss.fit_.corrected
    return {
        "n": len(f),
        "n_evaluated": len(f) - found.left_out_,
        "mean_confidence": float(f.mean()),
        "rate": float(y.mean()),
        "overall_gap": _mean(f - y, units, options.level),
        **_losses(loss),
        **_published(features, f, y, options, units),
        "decision": _decision(risk),
        "multiplicity": {
            "control": "largest of all rules",
            "alpha": options.alpha,
            "tested": found.tested_,
            "critical": found.search_.critical,
            "pairs_left_out": found.pairs_dropped_,
            "rows_left_out": found.left_out_,
            "min_group": options.min_group,
        },
        "groups": [_group(group, readable, (f, y, corrected), units, risk) for group in groups],
        "groups_not_shown": len(found.groups_) - len(groups),
        "differences": [pair.to_dict() for pair in found.differences_],
        "reliability": _reliability(found, readable, f, y),
    }, found.corrector_


def _mean(values: Floats, units: Ints | None, level: float) -> Estimate:
    from calibrant.stats.intervals import normal_quantile

    mean, n = float(values.mean()), len(values)
    if units is not None:
        units = np.unique(units, return_inverse=True)[1]
        n = int(units.max()) + 1
    half = normal_quantile(level) * mean_error(values, units) if n > 1 else math.inf
    return Estimate(mean, mean - half, mean + half, n=n, level=level, interval="normal")


def _losses(loss: GroupingLoss) -> dict[str, Any]:
    """Return the parts of the Brier score; low ends are what is shown at least."""
    brier, calibration, grouping = loss.brier_, loss.calibration_, loss.estimate_
    epistemic = calibration.value + grouping.value
    shown = max(calibration.low, 0.0) + grouping.low
    rest = brier.value - epistemic
    return {
        "grouping_loss": grouping,
        "grouping_loss_at_least": loss.lower_,
        "grouping_loss_p": loss.p_value_,
        "copy_check": {"at_least": loss.copy_, "passed": loss.copy_ == 0.0, "knots": loss.knots_},
        "calibration_loss": calibration,
        "epistemic_loss": Estimate(epistemic, shown, brier.high, n=brier.n, level=brier.level),
        "brier": brier,
        "rest": Estimate(rest, 0.0, max(brier.high - shown, rest), n=brier.n, level=brier.level),
    }


def _published(
    features: pl.DataFrame, f: Floats, y: Floats, options: GroupOptions, units: Ints | None
) -> dict[str, Any]:
    """Return the grouping loss by an estimator of the literature, where one is asked for.

    It stands beside the default and feeds no claim: what Platt scaling misfits counts in it.
    """
    if options.estimator == "tree":
        tree = TreeGroupingLoss(level=options.level, seed=options.seed)
        found = tree.fit(features, f, y, units=units)
        value, ends = found.value_, found.interval_
    elif options.estimator == "binned":
        value = BinnedGroupingLoss(seed=options.seed).fit(features, f, y).value_
        ends = (math.nan, math.nan)
    else:
        return {}
    return {"published_loss": Estimate(value, *ends, n=len(f), level=options.level)}


def _decision(risk: DecisionRisk) -> dict[str, Any]:
    return {
        "costs": risk.costs.to_dict(),
        "optimal_threshold": risk.costs.threshold,
        "threshold": risk.at,
        "total": risk.saved_,
        "calibration": risk.recalibrated_,
        "grouping": risk.beyond_,
        "saved": risk.saved_,
        "today": risk.today_,
        "changed": risk.changed_,
    }


def _group(
    group: Group,
    frame: pl.DataFrame,
    columns: tuple[Floats, Floats, Floats],
    units: Ints | None,
    risk: DecisionRisk,
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "rule": group.rule,
        "kind": group.kind,
        "n": group.n,
        "mean_confidence": group.mean_confidence,
        "rate": group.rate,
        "rate_interval": dict(zip(("low", "high"), group.rate_interval, strict=True)),
        "gap": group.gap,
        "gap_interval": dict(zip(("low", "high"), group.gap_interval, strict=True)),
        "gap_recalibrated": group.gap_recalibrated,
        "beyond": group.beyond,
        "direction": group.direction,
        "p_value": group.p_value,
        "p_adjusted": group.p_adjusted,
        "flagged": group.flagged,
        "echo_of": group.echo_of,
    }
    if (group.flagged or group.kind == "named") and group.conditions is not None:
        # The corrected confidence of each row was learned without that row.
        inside = group.conditions.mask(frame)
        f, y, corrected = (values[inside] for values in columns)
        own = None if units is None else units[inside]
        entry["cost"] = _mean(risk.spent(f, y), own, risk.level)
        entry["saved"] = _mean(risk.savings(f, y, corrected), own, risk.level)
    return entry


def _reliability(
    found: confidence_groups.ConfidenceGroups, frame: pl.DataFrame, f: Floats, y: Floats
) -> dict[str, Any]:
    """Return the recalibration curve and its shift in each group that stands out."""
    grid = np.linspace(float(f.min()), float(f.max()), _CURVE_POINTS)
    drawn = []
    for group in found.groups_[:_REGIONS_DRAWN]:
        if not group.flagged or group.conditions is None:
            continue
        inside = f[group.conditions.mask(frame)]
        drawn.append(
            {
                "rule": group.rule,
                "n": group.n,
                "shift": -group.gap_recalibrated,
                "confidence_low": float(inside.min()),
                "confidence_high": float(inside.max()),
                "flagged": group.flagged,
            }
        )
    # For everyone: fitted without the groups, whose shifts the corrector has taken out of it.
    recalibrated = confidence_groups.fit_corrector((), frame, f, y).recalibrated(grid)
    return {"confidence": grid, "recalibrated": recalibrated, "regions": drawn}


def across_models(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return, per flagged rule, how many models it stands out for and by how much.

    Parameters
    ----------
    entries
        Entries of a groups document, one per model and method, each with ``groups``.

    Examples
    --------
    >>> flagged = {"rule": "topic = law", "flagged": True, "gap_recalibrated": 0.2}
    >>> rows = across_models([{"model": "a", "groups": [flagged]}, {"model": "b", "groups": []}])
    >>> rows[0]["models"], rows[0]["of"], rows[0]["over_confident"]
    (['a'], 2, 1)
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        for group in entry["groups"]:
            if group["flagged"]:
                name = str(entry.get("model", ""))
                found.setdefault(group["rule"], []).append((name, group["gap_recalibrated"]))
    rows = [
        {
            "rule": rule,
            "models": [name for name, _ in hits],
            "of": len(entries),
            "over_confident": sum(gap > 0 for _, gap in hits),
            "mean_gap": float(np.mean([gap for _, gap in hits])),
        }
        for rule, hits in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row["models"]), -abs(row["mean_gap"]), row["rule"]))
