"""Worst-case rates beyond one model as one document, and the steepness of a gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from msgspec import Struct, structs
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.findings.verification import SlopeEntry, VerificationBlock
from calibrant.labels import formulas
from calibrant.labels.plan import Goal
from calibrant.labels.published import (
    PublishedScore,
    effective_labels,
    general_floor,
    published_pairs,
)
from calibrant.labels.published import scaling_labels as scaling
from calibrant.metrics.stats.binning import width_index
from calibrant.metrics.stats.floors import LIPSCHITZ_CAP, optimal_bins, passive_floor

_BINS = 20
_FEWEST, _SHARE = 10, 0.01
_ASSUMED = 1.0
_NOTE = "by the paper's script: bins of 10 labels or 1 % of them, bins between two passed over"


class PublishedSteepness(Struct, frozen=True):
    """The estimate, between how many pairs of bins, and the ECE at the bins it is best at."""

    value: float
    pairs: int
    capped: bool
    ece: float


def published_steepness(confidence: ArrayLike, correct: ArrayLike) -> PublishedSteepness:
    """Return the Lipschitz constant of the gap by the rule that printed Table 4.

    Of 20 equal-width bins those take part that hold at least ``max(10, N / 100)`` labels; the gap
    is taken at the bin's centre, the slope between one such bin and the next, however far apart.
    The estimate is the 75th percentile of the slopes, at most 5, and 1 where only one bin is
    left. The text of the paper says 30 labels a bin, which gives other numbers.

    Parameters
    ----------
    confidence, correct
        Confidences in [0, 1] and outcomes of one model.

    References
    ----------
    The Verification Tax, Table 4, Appendix S, and the numbers its author published beside it.

    Examples
    --------
    >>> said = np.repeat([0.62, 0.97], 50)
    >>> found = published_steepness(said, np.r_[np.ones(20), np.zeros(30), np.ones(50)])
    >>> round(found.value, 2), found.pairs
    (0.71, 1)
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1 or not p.size:
        raise InputError("confidence and correct are vectors of one length, at least one row long")
    count, hits, _ = _sums(p, y, _BINS)
    used = np.flatnonzero(count >= max(_FEWEST, _SHARE * p.size))
    centre = (used + 0.5) / _BINS
    gap = hits[used] / count[used] - centre
    slopes = np.abs(np.diff(gap) / np.diff(centre))
    raw = float(np.quantile(slopes, 0.75)) if slopes.size else _ASSUMED
    value = min(raw, LIPSCHITZ_CAP)
    wrong = float(1.0 - y.mean())
    best = optimal_bins(error_rate=wrong, labels=p.size, lipschitz=value) if value * wrong else 1
    count, hits, confidences = _sums(p, y, best)
    ece = float(np.abs(hits - confidences).sum() / p.size)
    return PublishedSteepness(value, int(slopes.size), raw > LIPSCHITZ_CAP, ece)


def _sums(p: Floats, y: Floats, bins: int) -> tuple[Floats, Floats, Floats]:
    """Return rows, right answers and summed confidence by bin of equal width."""
    place = np.empty(p.size, np.intp)
    width_index(bins)(p, place, np.empty(p.size))
    place = np.minimum(place, bins - 1)
    weights: tuple[Floats | None, ...] = (None, y, p)
    sums = (np.bincount(place, weights=w, minlength=bins).astype(np.float64) for w in weights)
    count, hits, confidence = sums
    return count, hits, confidence


def with_published_steepness(
    block: VerificationBlock, confidence: ArrayLike, correct: ArrayLike
) -> VerificationBlock:
    """Return what labels show with the steepness of the paper's script in place of ours.

    It has no interval; that of the floor is the error rate's alone.
    """
    result, labels = published_steepness(confidence, correct), block.labels
    steep = Estimate(result.value, math.nan, math.nan, n=labels, interval="none published")
    rates = (block.error_rate.value, block.error_rate.low, block.error_rate.high)
    floor, low, high = (
        passive_floor(error_rate=rate, labels=labels, lipschitz=result.value) for rate in rates
    )
    bins = None
    if rates[0] and result.value:
        bins = optimal_bins(error_rate=rates[0], labels=labels, lipschitz=result.value)
    return structs.replace(
        block,
        lipschitz=steep,
        lipschitz_resolutions=[SlopeEntry(_BINS, steep, result.pairs, result.capped)],
        lipschitz_note=_NOTE,
        passive_floor=Estimate(floor, low, high, n=labels, interval="that of the error rate"),
        optimal_bins=bins,
    )


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
