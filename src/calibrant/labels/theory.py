"""Worst-case rates beyond one model as one document: growth, dynamics, depth, transfer, noise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.labels import formulas
from calibrant.labels.plan import Goal
from calibrant.labels.published import (
    PublishedScore,
    effective_labels,
    general_floor,
    published_pairs,
)
from calibrant.labels.published import scaling_labels as scaling


@dataclass(frozen=True, slots=True)
class Theory:
    """What else to compute.

    Parameters
    ----------
    growth
        Exponent alpha of ``eps(N) = N^-alpha``: the horizon of verification.
    size
        Size N of a model, for the labels of the scaling duality.
    decay, label_rate
        Exponent beta of ``eps(t) = t^-beta`` and labels per unit of time: does verification keep
        up with a model that improves?
    transfer
        Largest change of the gap by fine-tuning.
    correlation
        Correlation of neighbouring labels.
    perturbed_error
        Error rate under perturbation: the floor of a robustness claim.
    published
        Published accuracies, see `calibrant.labels.published_scores`: can they differ?
    rounds
        Calibration error now, and what one recalibration leaves of it: rounds one can verify.
    two_phase
        Whether to lay out the published two-phase audit.
    grouping_loss, noise
        A grouping loss to be shown, and the mean of p (1 - p); by default the most that the
        error rate allows.
    """

    growth: float | None = None
    size: float | None = None
    decay: float | None = None
    label_rate: float | None = None
    transfer: float | None = None
    correlation: float | None = None
    perturbed_error: float | None = None
    published: tuple[PublishedScore, ...] = ()
    rounds: tuple[float, ...] = ()
    two_phase: bool = False
    grouping_loss: float | None = None
    noise: float | None = None


Value = TypeVar("Value")


def _both(formula: Callable[..., Value], **given: float) -> dict[str, Value]:
    """Return what a formula says of passive and of active labels."""
    return {"passive": formula(**given), "active": formula(**given, active=True)}


def theory_document(theory: Theory, goal: Goal, error_rate: float | None) -> dict[str, object]:
    """Return everything that was asked for beside a goal; `error_rate` is None where not known.

    Examples
    --------
    >>> found = theory_document(Theory(growth=0.5), Goal(error_rate=0.1, labels=14_000), 0.1)
    >>> round(found["horizon"]["passive"])
    14000
    """
    rates = [*_over_time(theory, goal, error_rate), *_floors(theory, goal, error_rate)]
    return dict([*rates, *_audits(theory, goal, error_rate)])


def grouping_floor(loss: float, noise: float | None, error_rate: float | None) -> dict[str, float]:
    """Return the labels that show a grouping loss to whoever knows the groups."""
    eps = _need(error_rate, "error_rate", "grouping_loss")
    spread = eps * (1 - eps) if noise is None else min(noise, eps * (1 - eps))
    labels = formulas.grouping_labels(loss, noise=spread)
    return {"loss": loss, "noise": spread, "labels": labels}


def _over_time(
    theory: Theory, goal: Goal, error_rate: float | None
) -> Iterator[tuple[str, object]]:
    if theory.growth is not None:
        values = {"labels": _need(goal.labels, "labels", "growth"), "exponent": theory.growth}
        yield "horizon", _both(formulas.verification_horizon, **values, lipschitz=goal.lipschitz)
        if theory.size is not None:
            labels = scaling(theory.size, exponent=theory.growth)
            yield "scaling", {"size": theory.size, "labels": labels}
    if theory.decay is not None:
        rate = _need(theory.label_rate, "label_rate", "decay")
        values = {"decay": theory.decay, "rate": rate, "scale": error_rate or 1.0}
        yield "dynamics", _both(formulas.verification_dynamics, **values, lipschitz=goal.lipschitz)
    if theory.transfer is not None:
        eps = _need(error_rate, "error_rate", "transfer")
        shift, steepness = theory.transfer, goal.lipschitz
        labels_needed = formulas.transfer_labels(shift, error_rate=eps, shift_lipschitz=steepness)
        yield "transfer", {"shift": shift, "labels": labels_needed}


def _floors(theory: Theory, goal: Goal, error_rate: float | None) -> Iterator[tuple[str, object]]:
    if theory.correlation is not None:
        count = _need(goal.labels, "labels", "correlation")
        yield "effective_labels", effective_labels(count, correlation=theory.correlation)
    if theory.perturbed_error is not None:
        count, noise = _need(goal.labels, "labels", "perturbed_error"), theory.perturbed_error
        floors = _both(general_floor, noise=noise, labels=count, lipschitz=goal.lipschitz)
        yield "robustness_floor", floors
    if theory.grouping_loss is not None:
        yield "grouping", grouping_floor(theory.grouping_loss, theory.noise, error_rate)
    if theory.published:
        pairs = published_pairs(theory.published)
        one = len(pairs) == 1
        yield ("published", pairs[0]) if one else ("published_pairs", pairs)


def _audits(theory: Theory, goal: Goal, error_rate: float | None) -> Iterator[tuple[str, object]]:
    if theory.two_phase:
        values = _labels_at(goal, error_rate, "two_phase")
        yield "two_phase", formulas.two_phase(**values, lipschitz=goal.lipschitz)
    if theory.rounds:
        if len(theory.rounds) != 2:
            raise InputError(f"rounds takes an error and a share, got {len(theory.rounds)} numbers")
        values, (start, left) = _labels_at(goal, error_rate, "rounds"), theory.rounds
        display = formulas.recalibration_rounds(**values, initial_ece=start, shrinkage=left)
        yield "rounds", display
    steepest = max(goal.stages, default=0.0)
    if steepest > 1.0 and goal.precision is not None and goal.labels is not None and error_rate:
        deepest = formulas.deepest_pipeline(
            goal.precision, error_rate=error_rate, labels=goal.labels, stage=steepest
        )
        yield "depth", {"stage": steepest, "deepest": deepest}


def _labels_at(goal: Goal, error_rate: float | None, asking: str) -> dict[str, float]:
    """Return the labels at hand and the error rate, both of which are asked for."""
    labels = _need(goal.labels, "labels", asking)
    return {"labels": labels, "error_rate": _need(error_rate, "error_rate", asking)}


def _need(value: float | None, name: str, asking: str) -> float:
    if value is None:
        hint = Hint("give {" + name + "} as well")
        raise InputError(f"{asking} is given without {name}", hint=hint)
    return float(value)
