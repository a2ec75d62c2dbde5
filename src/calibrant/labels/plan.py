"""Label plans: labels for a precision and precision for labels, as one document."""

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.names import Registry
from calibrant.findings.documents.plans import PlanExpiry, PlanStep
from calibrant.labels.formulas import data_rate, half_life, last_day, pipeline_lipschitz
from calibrant.metrics.stats import floors

_UNIT_DAYS = {"hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25}
_CURVE_POINTS = 33
CAVEAT = (
    "Floors are worst-case rates with constant 1: they order plans and rule out claims; what one "
    "data set resolves is shown by its audit. The active rate is a bound from theory: on real "
    "confidences, which crowd near 1, no choice by confidence alone comes close to it."
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be verified.

    Parameters
    ----------
    error_rate, lipschitz
        eps, and L of the gap (of each stage's map where `stages` is given, unused then).
    precision, labels
        The precision wanted, or the labels at hand; at least one of them.
    models
        2 for a comparison: every question is labelled once per model.
    groups, smallest_share
        Groups that must each be verified, and the share of the smallest.
    stages
        Lipschitz constants of a pipeline's stages; ``inf`` for a discontinuous one.
    drift, per, start
        Drift of the ECE per unit of time, the unit, and the day of the verification.
    """

    error_rate: float
    lipschitz: float = 1.0
    precision: float | None = None
    labels: int | None = None
    models: int = 1
    groups: int = 1
    smallest_share: float = 1.0
    stages: tuple[float, ...] = ()
    drift: float | None = None
    per: str = "month"
    start: dt.date | None = None

    @property
    def steepness(self) -> float:
        """The Lipschitz constant of the whole, after composition."""
        return pipeline_lipschitz(self.stages) if self.stages else self.lipschitz

    @property
    def multiplier(self) -> float:
        """How many labels one label's worth of information costs: models, groups, shares."""
        return self.models * self.groups / self.smallest_share


def plan_document(goal: Goal, *, preset: str | None = None) -> dict[str, Any]:
    """Return the plan as a document: one table of rows and the data of one figure.

    Examples
    --------
    >>> plan = plan_document(Goal(error_rate=0.05, precision=0.01))
    >>> plan["passive_labels"], plan["active_labels"]
    (50000, 500)
    """
    framework = PRESETS[preset] if preset is not None else None
    if framework is not None:
        goal = replace(
            goal,
            error_rate=framework.error_rate,
            precision=goal.precision or framework.precision,
            groups=framework.groups,
            smallest_share=framework.smallest_share,
        )
    _check(goal)
    costs = _costs(goal)
    entry: dict[str, object] = {
        "error_rate": goal.error_rate,
        "lipschitz": None if math.isinf(goal.steepness) else goal.steepness,
        "precision": goal.precision,
        "labels": goal.labels,
        **costs,
        "phase_transition_labels": _phase(goal),
        "expiry": _expiry(goal),
        "notes": list(_notes(goal)),
    }
    if framework is not None:
        labels_needed, available = costs["passive_labels"], framework.available
        gap = None if labels_needed is None else labels_needed / available
        names = {"name": preset, "title": framework.title}
        entry["preset"] = {**names, "available": available, "gap": gap}
    return {
        "schema": "calibrant.plan/1",
        "passive_labels": costs["passive_labels"],
        "active_labels": costs["active_labels"],
        "results": [entry],
        "rows": _rows(goal),
        "curve": _curve(goal),
        "caveat": CAVEAT,
    }


def _check(goal: Goal) -> None:
    if goal.precision is None and goal.labels is None:
        hint = Hint("give {precision} for labels, or {labels} for the precision they reach")
        raise InputError("a plan needs a precision or a number of labels", hint=hint)
    floors.require_rate(goal.error_rate)
    floors.require_positive(goal.lipschitz, "lipschitz")
    floors.require_positive(
        floors.require_rate(goal.smallest_share, "smallest_share"), "smallest_share"
    )
    for name in ("precision", "labels", "models", "groups"):
        value = getattr(goal, name)
        if value is not None:
            floors.require_positive(value, name)
    if goal.groups * goal.smallest_share > 1.0 + 1e-9:
        raise InputError(
            f"{goal.groups} groups cannot each hold at least {goal.smallest_share} of the data"
        )
    if goal.per not in _UNIT_DAYS:
        raise InputError(f"the unit of time is one of {', '.join(_UNIT_DAYS)}, got {goal.per!r}")


def _labels(goal: Goal, precision: float) -> dict[str, float | None]:
    """Return the labels for a precision; None where no number of passive ones reaches it."""
    passive = None
    if not math.isinf(goal.steepness):
        raw = goal.steepness * goal.error_rate * goal.multiplier / precision**3
        passive = max(1, floors.ceil(raw))
    active = max(1, floors.ceil(goal.error_rate * goal.multiplier / precision**2))
    return {"passive_labels": passive, "active_labels": active}


def _costs(goal: Goal) -> dict[str, float | None]:
    """Return the labels for a precision, and the precision of labels; None where none is asked."""
    d, eps = goal.precision, goal.error_rate
    costs: dict[str, float | None] = dict.fromkeys(PlanStep.__struct_fields__[1:])
    if d is not None:
        costs |= _labels(goal, d)
        if 0.0 < eps < 1.0:
            observed = goal.multiplier * floors.detection_labels(d, error_rate=eps)
            costs["detection_labels"] = floors.ceil(observed)
    if goal.labels is not None:
        labels = goal.labels / goal.multiplier
        if not math.isinf(goal.steepness):
            costs["passive_precision"] = floors.passive_floor(
                error_rate=eps, labels=labels, lipschitz=goal.steepness
            )
        costs["active_precision"] = floors.active_floor(error_rate=eps, labels=labels)
        costs["accuracy_floor"] = floors.accuracy_floor(error_rate=eps, labels=labels)
    return costs


def _phase(goal: Goal) -> int | None:
    if goal.error_rate == 0.0:
        return None
    return max(1, floors.ceil(goal.multiplier / goal.error_rate))


def _rows(goal: Goal) -> list[dict[str, str | float | None]]:
    """Build the plan up step by step, so that each cost can be seen."""
    growth = replace(goal, models=1, groups=1, smallest_share=1.0, stages=())
    steps = [("one model", growth)]
    if goal.stages:
        growth = replace(growth, stages=goal.stages)
        listed = " x ".join(f"{stage:g}" for stage in goal.stages)
        steps.append((f"pipeline {listed}", growth))
    if goal.groups > 1 or goal.smallest_share < 1.0:
        growth = replace(growth, groups=goal.groups, smallest_share=goal.smallest_share)
        word = "a group" if goal.groups == 1 else f"{goal.groups} groups"
        steps.append((f"{word}, from {goal.smallest_share:.3g} of all", growth))
    if goal.models > 1:
        growth = replace(growth, models=goal.models)
        steps.append((f"{goal.models} models compared", growth))
    return [{"step": name, **_costs(step)} for name, step in steps]


def _curve(goal: Goal) -> list[dict[str, float | None]]:
    centre = goal.precision or 0.02
    grid = np.geomspace(centre / 10, min(centre * 10, 0.5), _CURVE_POINTS).tolist()
    return [{"precision": d, **_labels(goal, d)} for d in grid]


def _expiry(goal: Goal) -> PlanExpiry | None:
    if goal.drift is None:
        return None
    precision = goal.precision
    if precision is None:
        precision = _costs(goal)["passive_precision"]
        if precision is None:
            return None
    life = half_life(precision, drift=goal.drift)
    days = life * _UNIT_DAYS[goal.per]
    rate = None
    if not math.isinf(goal.steepness):
        rate = goal.multiplier * data_rate(
            precision, error_rate=goal.error_rate, drift=goal.drift, lipschitz=goal.steepness
        )
    return PlanExpiry(
        drift=goal.drift,
        per=goal.per,
        half_life=life,
        days=days,
        date=last_day(goal.start, days),
        labels_per_unit=rate,
    )


def _notes(goal: Goal) -> Iterator[str]:
    if math.isinf(goal.steepness):
        yield (
            "a discontinuous stage makes passive verification of the whole pipeline impossible "
            "at any number of labels: verify the stages one by one, or actively"
        )
    if goal.models > 1:
        yield (
            "a comparison takes one label per question and model; should the errors of the "
            "models add up instead of cancelling, it takes 8 times the labels (4 times actively)"
        )
    if goal.error_rate == 0.0:
        yield "an error rate of 0 is a wish: give the upper end of its interval"
    phase = _phase(goal)
    if goal.labels is not None and phase is not None and goal.labels < phase:
        yield (
            f"{goal.labels:,} labels lie below the phase transition ({phase:,} labels, m eps = 1): "
            "miscalibration of the size of the error rate cannot be detected by any method"
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """What a framework would ask for.

    Parameters
    ----------
    title
        Name of the framework.
    groups, smallest_share
        Number of groups and share of the smallest.
    precision, error_rate
        Wanted precision within each group, and the error rate assumed.
    available
        Labels thought to exist.
    """

    title: str
    groups: int
    smallest_share: float
    precision: float
    error_rate: float
    available: int


PRESETS: Registry[Preset] = Registry("preset")
PRESETS.add("eu-ai-act", Preset("EU AI Act Annex III", 10, 0.05, 0.02, 0.05, 707_000))
PRESETS.add("nist-ai-rmf", Preset("NIST AI RMF", 5, 0.10, 0.01, 0.03, 500_000))
PRESETS.add("fda-samd", Preset("FDA SaMD", 8, 0.05, 0.01, 0.02, 707_000))
