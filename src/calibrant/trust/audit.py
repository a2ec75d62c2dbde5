"""The groups, losses and risks of one block of rows as a plain document, and of many."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from calibrant.core.arrays import Array, Estimate, Floats, Ints
from calibrant.data.features import as_frame
from calibrant.findings.documents import groups
from calibrant.trust import confidence_groups
from calibrant.trust.decision_risk import DecisionRisk
from calibrant.trust.grouping_loss import GroupingLoss, unit_mean
from calibrant.trust.tree_loss import BinnedGroupingLoss, TreeGroupingLoss

_CURVE_POINTS = 101
_GROUPS_SHOWN = 200
_REGIONS_DRAWN = 24


class GroupOptions(Struct, frozen=True):
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
    keys: Mapping[str, str],
    features: pl.DataFrame,
    confidence: Array,
    correct: Array,
    *,
    options: GroupOptions,
    units: Ints | None = None,
    numbers: Sequence[str] = (),
) -> tuple[groups.GroupsEntry, confidence_groups.GroupCorrector]:
    """Return the entry of one block, and the corrected confidence it leads to.

    Parameters
    ----------
    keys
        Model and method.
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
    level, seed = options.level, options.seed
    readable = as_frame(features).drop(list(numbers))
    finder = confidence_groups.ConfidenceGroups(
        min_group=options.min_group,
        alpha=options.alpha,
        named=options.group,
        level=level,
        seed=seed,
    ).fit(readable, f, y, units=units)
    loss = GroupingLoss(level=level, seed=seed).fit(features, f, y, units=units)
    risk = DecisionRisk(costs=options.costs, threshold=options.threshold, level=level, seed=seed)
    risk.measure(f, y, loss.fit_, units)
    brier, calibration, grouping = loss.brier_, loss.calibration_, loss.estimate_
    epistemic = calibration.value + grouping.value
    # Low ends are what is shown at least.
    display, remainder = max(calibration.low, 0.0) + grouping.low, brier.value - epistemic
    return groups.GroupsEntry(
        model=keys["model"],
        method=keys["method"],
        n=len(f),
        n_evaluated=len(f) - finder.left_out_,
        mean_confidence=float(f.mean()),
        rate=float(y.mean()),
        overall_gap=unit_mean(f - y, units, level),
        grouping_loss=grouping,
        grouping_loss_at_least=loss.lower_,
        grouping_loss_p=loss.p_value_,
        copy_check=groups.CopyCheck(
            at_least=loss.copy_, passed=loss.copy_ == 0.0, knots=loss.knots_
        ),
        calibration_loss=calibration,
        epistemic_loss=Estimate(epistemic, display, brier.high, n=brier.n, level=level),
        brier=brier,
        rest=Estimate(remainder, 0.0, max(brier.high - display, remainder), n=brier.n, level=level),
        published_loss=_published(features, f, y, options, units),
        decision=groups.GroupDecision(
            costs=risk.costs.to_dict(),
            optimal_threshold=risk.costs.threshold,
            threshold=risk.at,
            total=risk.saved_,
            calibration=risk.recalibrated_,
            grouping=risk.beyond_,
            saved=risk.saved_,
            today=risk.today_,
            changed=risk.changed_,
        ),
        multiplicity=groups.RulesTested(
            control="largest of all rules",
            alpha=finder.alpha,
            tested=finder.tested_,
            critical=finder.search_.redrawn.critical,
            pairs_left_out=finder.pairs_dropped_,
            rows_left_out=finder.left_out_,
            min_group=finder.min_group,
        ),
        groups=[*_groups(finder, readable, (f, y, loss.fit_.corrected), units, risk)],
        stretches=finder.stretches_,
        groups_not_shown=max(len(finder.groups_) - _GROUPS_SHOWN, 0),
        differences=finder.differences_,
        reliability=_reliability(finder, readable, f, y),
    ), finder.corrector_


def _published(
    features: pl.DataFrame, f: Floats, y: Floats, options: GroupOptions, units: Ints | None
) -> Estimate | UnsetType:
    """Return the grouping loss by an estimator of the literature, where one is asked for.

    It stands beside the default and feeds no claim: what Platt scaling misfits counts in it.
    """
    if options.estimator == "tree":
        tree = TreeGroupingLoss(level=options.level, seed=options.seed)
        loss = tree.fit(features, f, y, units=units)
        value, ends = loss.value_, loss.interval_
    elif options.estimator == "binned":
        value = BinnedGroupingLoss(seed=options.seed).fit(features, f, y).value_
        ends = (math.nan, math.nan)
    else:
        return UNSET
    return Estimate(value, *ends, n=len(f), level=options.level)


def _groups(
    finder: confidence_groups.ConfidenceGroups,
    frame: pl.DataFrame,
    columns: tuple[Floats, Floats, Floats],
    units: Ints | None,
    risk: DecisionRisk,
) -> Iterator[groups.GroupEntry]:
    """Yield the groups; what decisions cost in those that stand out, or were named."""
    for group, rule in zip(finder.groups_[:_GROUPS_SHOWN], finder.rules_, strict=False):
        if group.flagged or group.kind == "named":
            # The corrected confidence of each row was learned without that row.
            inside = rule.mask(frame)
            f, y, corrected = (values[inside] for values in columns)
            questions = None if units is None else units[inside]
            cost = unit_mean(risk.spent(f, y), questions, risk.level)
            saved = unit_mean(risk.savings(f, y, corrected), questions, risk.level)
            group = replace(group, cost=cost, saved=saved)
        yield group


def _reliability(
    finder: confidence_groups.ConfidenceGroups, frame: pl.DataFrame, f: Floats, y: Floats
) -> groups.GroupReliability:
    """Return the recalibration curve and its shift in each group that stands out."""
    grid = np.linspace(float(f.min()), float(f.max()), _CURVE_POINTS)
    draws = []
    for group, rule in zip(finder.groups_[:_REGIONS_DRAWN], finder.rules_, strict=False):
        if group.flagged:
            inside = f[rule.mask(frame)]
            draws.append(
                groups.GroupShift(
                    rule=group.rule,
                    n=group.n,
                    shift=-group.gap_recalibrated,
                    confidence_low=float(inside.min()),
                    confidence_high=float(inside.max()),
                    flagged=True,
                )
            )
    # For everyone: fitted without the groups, whose shifts the corrector has taken out of it.
    recalibrated = confidence_groups.fit_corrector((), frame, f, y).recalibrated(grid)
    return groups.GroupReliability(
        confidence=grid.tolist(), recalibrated=recalibrated.tolist(), regions=draws
    )


def across_models(entries: Sequence[groups.GroupsEntry]) -> list[groups.GroupAcross]:
    """Return, per flagged rule, how many models it stands out for and by how much."""
    by_rule: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        for group in entry.groups:
            if group.flagged:
                by_rule.setdefault(group.rule, []).append((entry.model, group.gap_recalibrated))
    rows = [
        groups.GroupAcross(
            rule=rule,
            models=[name for name, _ in hits],
            of=len(entries),
            over_confident=sum(gap > 0 for _, gap in hits),
            mean_gap=float(np.mean([gap for _, gap in hits])),
        )
        for rule, hits in by_rule.items()
    ]
    return sorted(rows, key=lambda row: (-len(row.models), -abs(row.mean_gap), row.rule))
