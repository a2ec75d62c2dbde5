"""Worst-case rates beyond one model as one document: growth, dynamics, depth, transfer, noise."""

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.planning import formulas
from calibrant.planning.published import effective_labels, general_floor, published_difference
from calibrant.planning.published import scaling_labels as scaling


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
        Accuracies on the same questions: can their differences be real?
    rounds
        Calibration error now, and what one recalibration leaves of it: rounds one can verify.
    two_phase
        Whether to lay out the published two-phase audit.
    """

    growth: float | None = None
    size: float | None = None
    decay: float | None = None
    label_rate: float | None = None
    transfer: float | None = None
    correlation: float | None = None
    perturbed_error: float | None = None
    published: tuple[float, ...] = ()
    rounds: tuple[float, ...] = ()
    two_phase: bool = False


def theory_document(
    theory: Theory,
    *,
    error_rate: float | None,
    lipschitz: float,
    precision: float | None,
    labels: int | None,
    stages: tuple[float, ...] = (),
) -> dict[str, Any] | None:
    """Return everything that was asked for, or None where nothing was.

    Examples
    --------
    >>> found = theory_document(Theory(growth=0.5), error_rate=0.1, lipschitz=1.0,
    ...                         precision=None, labels=14_000)
    >>> round(found["horizon"]["passive"])
    14000
    """
    found: dict[str, Any] = {}
    if theory.growth is not None:
        found |= _growth(theory, theory.growth, lipschitz, _need(labels, "labels", "growth"))
    if theory.decay is not None:
        rate = _need(theory.label_rate, "label_rate", "decay")
        found["dynamics"] = {
            name: asdict(
                formulas.verification_dynamics(
                    decay=theory.decay,
                    rate=rate,
                    scale=error_rate or 1.0,
                    lipschitz=lipschitz,
                    active=name == "active",
                )
            )
            for name in ("passive", "active")
        }
    if theory.transfer is not None:
        eps = _need(error_rate, "error_rate", "transfer")
        found["transfer"] = {
            "shift": theory.transfer,
            "labels": formulas.transfer_labels(
                theory.transfer, error_rate=eps, shift_lipschitz=lipschitz
            ),
        }
    found |= _floors(theory, lipschitz, labels)
    if theory.two_phase:
        found["two_phase"] = formulas.two_phase(
            labels=_need(labels, "labels", "two_phase"),
            error_rate=_need(error_rate, "error_rate", "two_phase"),
            lipschitz=lipschitz,
        )
    if theory.rounds:
        if len(theory.rounds) != 2:
            raise InputError(f"rounds takes an error and a share, got {len(theory.rounds)} numbers")
        found["rounds"] = formulas.recalibration_rounds(
            labels=_need(labels, "labels", "rounds"),
            error_rate=_need(error_rate, "error_rate", "rounds"),
            initial_ece=theory.rounds[0],
            shrinkage=theory.rounds[1],
        )
    steep = [stage for stage in stages if stage > 1.0]
    if steep and precision is not None and labels is not None and error_rate:
        found["depth"] = {
            "stage": max(steep),
            "deepest": formulas.deepest_pipeline(
                precision, error_rate=error_rate, labels=labels, stage=max(steep)
            ),
        }
    return found or None


def _growth(theory: Theory, exponent: float, lipschitz: float, labels: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "horizon": {
            name: formulas.verification_horizon(
                labels=labels, exponent=exponent, lipschitz=lipschitz, active=name == "active"
            )
            for name in ("passive", "active")
        }
    }
    if theory.size is not None:
        found["scaling"] = {"size": theory.size, "labels": scaling(theory.size, exponent=exponent)}
    return found


def _floors(theory: Theory, lipschitz: float, labels: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if theory.correlation is not None:
        made = _need(labels, "labels", "correlation")
        found["effective_labels"] = effective_labels(made, correlation=theory.correlation)
    if theory.perturbed_error is not None:
        made = _need(labels, "labels", "perturbed_error")
        found["robustness_floor"] = {
            name: general_floor(
                noise=theory.perturbed_error,
                labels=made,
                lipschitz=lipschitz,
                active=name == "active",
            )
            for name in ("passive", "active")
        }
    if theory.published:
        if len(theory.published) < 2:
            raise InputError(f"published takes two accuracies or more, got {theory.published[0]}")
        made = int(_need(labels, "labels", "published"))
        pairs = [
            {"a": a, "b": b, **published_difference(a, b, labels=made)}
            for a, b in combinations(theory.published, 2)
        ]
        found["published"] = {k: v for k, v in pairs[0].items() if k not in "ab"}
        if len(pairs) > 1:
            found["published_pairs"] = pairs
            del found["published"]
    return found


def _need(value: float | None, name: str, asking: str) -> float:
    if value is None:
        raise InputError(
            f"{asking} is given without {name}", hint=Hint("give {" + name + "} as well")
        )
    return float(value)
