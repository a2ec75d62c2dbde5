"""Costs of verification beyond one model: pipelines, groups, growth, drift, transfer.

All are worst-case rates with constant 1. Symbols: error rate eps, labels M, Lipschitz constant
L, precision d. Where the prose of the paper and its own formula disagree, the formula is taken.

References
----------
The Verification Tax, Sections 6 and 7, Appendices D, G, J, O and T.
"""

import datetime as dt
import math
from collections.abc import Sequence
from statistics import NormalDist

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.findings.documents.plans import Dynamics
from calibrant.metrics.stats.floors import ceil, require_positive, require_rate

# More than anybody can give; a number beyond it is a slip of the precision.
_MOST_LABELS = 1e18


def pipeline_lipschitz(stages: Sequence[float]) -> float:
    """Return the bound ``prod L_k + 1`` on the steepness of a pipeline's gap.

    A discontinuous stage (retrieval, tool use) has ``inf``, and then the pipeline has too.

    Examples
    --------
    >>> pipeline_lipschitz([2.0, 2.0]), pipeline_lipschitz([3.0, 3.0, 3.0])
    (5.0, 28.0)
    """
    if not stages:
        raise InputError("a pipeline has at least one stage")
    return math.prod(require_positive(stage, "the Lipschitz constant") for stage in stages) + 1.0


def pipeline_labels(precision: float, *, error_rate: float, stages: Sequence[float]) -> float:
    """Return the labels for a pipeline, ``L_sys eps / d^3``; infinite for a discontinuous stage.

    Examples
    --------
    >>> pipeline_labels(0.01, error_rate=0.05, stages=[2.0, 2.0])
    250000.0
    >>> pipeline_labels(0.01, error_rate=0.05, stages=[2.0, float("inf")])
    inf
    """
    steepness = pipeline_lipschitz(stages)
    if math.isinf(steepness):
        return math.inf
    return _labels(steepness * require_rate(error_rate) / _cube(precision))


def deepest_pipeline(precision: float, *, error_rate: float, labels: float, stage: float) -> int:
    """Return the deepest pipeline that `labels` verify, ``floor(log_L(M d^3 / eps))``, from 0.

    Examples
    --------
    >>> deepest_pipeline(0.05, error_rate=0.1, labels=10_000, stage=2.0)
    3
    """
    if not stage > 1.0:
        raise InputError(
            f"the depth is bounded only for stages with a Lipschitz constant above 1, got {stage}"
        )
    if math.isinf(stage):
        return 0
    eps = require_positive(require_rate(error_rate), "error_rate")
    budget = require_positive(labels, "labels") * _cube(precision) / eps
    return max(0, _floor(math.log(budget) / math.log(stage)))


def group_labels(
    precision: float,
    *,
    error_rate: float,
    smallest_share: float,
    groups: int = 1,
    lipschitz: float = 1.0,
    active: bool = False,
) -> int:
    """Return the labels that verify every group to `precision`.

    ``K L eps / (pi_min d^3)`` passively, ``K eps / (pi_min d^2)`` actively.

    Parameters
    ----------
    precision
        Wanted precision d within each group.
    error_rate, lipschitz
        eps and L.
    smallest_share
        Share of the smallest group, pi_min.
    groups
        Number of groups, K.
    active
        Whether the labels are asked for actively.

    Examples
    --------
    >>> group_labels(0.02, error_rate=0.05, smallest_share=0.05, groups=10)
    1250000
    """
    share = require_positive(require_rate(smallest_share, "smallest_share"), "smallest_share")
    if groups < 1:
        raise InputError(f"the number of groups is at least 1, got {groups}")
    eps = require_rate(error_rate) * groups / share
    if active:
        return int(_labels(eps / require_positive(precision, "precision") ** 2))
    return int(_labels(require_positive(lipschitz, "lipschitz") * eps / _cube(precision)))


def verification_horizon(
    *,
    labels: float,
    exponent: float = 0.5,
    scale: float = 1.0,
    lipschitz: float = 1.0,
    active: bool = False,
) -> float:
    """Return the model size beyond which `labels` verify nothing, for ``eps(N) = c0 N^-alpha``.

    ``(c0^2 M / L)^(1 / (2 alpha))`` passively, ``(c0 M)^(1 / alpha)`` actively.

    Examples
    --------
    >>> round(verification_horizon(labels=14_000))
    14000
    >>> round(verification_horizon(labels=14_000, active=True))
    196000000
    """
    m, c0 = require_positive(labels, "labels"), require_positive(scale, "scale")
    alpha = require_positive(exponent, "exponent")
    if active:
        return float((c0 * m) ** (1 / alpha))
    return float((c0**2 * m / require_positive(lipschitz, "lipschitz")) ** (1 / (2 * alpha)))


def verification_dynamics(
    *, decay: float, rate: float, scale: float = 1.0, lipschitz: float = 1.0, active: bool = False
) -> Dynamics:
    """Say when the floor is below the error rate ``eps(t) = c0 t^-beta`` of a deployed model.

    Parameters
    ----------
    decay
        Exponent beta: how quickly the error rate falls.
    rate
        Labels per unit of time, r.
    scale
        c0, the error rate at time 1.
    lipschitz
        L; it plays no part in active verification.
    active
        Active labels: the critical exponent is then 1 in place of 1/2.

    Examples
    --------
    >>> verification_dynamics(decay=0.25, rate=100.0, scale=0.1).outcome
    'from'
    >>> verification_dynamics(decay=0.75, rate=100.0, scale=0.1, active=True).critical_exponent
    1.0
    """
    r, c0 = require_positive(rate, "rate"), require_positive(scale, "scale")
    if active:
        critical, threshold, power = 1.0, 1.0 / (r * c0), 1.0 - decay
    else:
        critical = 0.5
        threshold = require_positive(lipschitz, "lipschitz") / (r * c0**2)
        power = 1.0 - 2.0 * decay
    if math.isclose(power, 0.0, abs_tol=1e-12):
        outcome = "always" if threshold < 1.0 else "never"
        return Dynamics(critical_exponent=critical, outcome=outcome, time=math.nan)
    time = float(threshold ** (1.0 / power))
    outcome = "from" if power > 0.0 else "until"
    return Dynamics(critical_exponent=critical, outcome=outcome, time=time)


def recalibration_rounds(
    *, labels: float, error_rate: float, initial_ece: float, shrinkage: float
) -> int:
    """Return the rounds of recalibration whose progress `labels` can show.

    With ``ECE_K = g^K ECE_0``: ``floor(log(M (1 - g)^2 ECE_0^2 / eps) / (2 log(1 / g)))``,
    at least 0.

    Examples
    --------
    >>> recalibration_rounds(labels=14_000, error_rate=0.05, initial_ece=0.1, shrinkage=0.5)
    4
    """
    if not 0.0 < shrinkage < 1.0:
        raise InputError(f"shrinkage lies strictly between 0 and 1, got {shrinkage}")
    eps = require_positive(require_rate(error_rate), "error_rate")
    start = require_positive(initial_ece, "initial_ece")
    signal = require_positive(labels, "labels") * (1 - shrinkage) ** 2 * start**2 / eps
    return max(0, _floor(math.log(signal) / (2 * math.log(1 / shrinkage))))


def two_phase(*, labels: float, error_rate: float, lipschitz: float = 1.0) -> dict[str, float]:
    """Return the published two-phase audit: levels of confidence, labels at each, labels left.

    ``N = L sqrt(m / eps)`` levels share half of the labels; the rest goes where the sign of the
    gap is known. On real confidences it is worse than random labels (docs/findings.md, 7).

    Examples
    --------
    >>> two_phase(labels=10_000, error_rate=0.16, lipschitz=2.5)
    {'levels': 625, 'per_level': 8.0, 'left': 5000}
    """
    m, eps = require_positive(labels, "labels"), require_positive(require_rate(error_rate), "eps")
    levels = math.ceil(require_positive(lipschitz, "lipschitz") * math.sqrt(m / eps))
    return {"levels": levels, "per_level": m / (2 * levels), "left": int(m // 2)}


def half_life(precision: float, *, drift: float) -> float:
    """Return how long a verification to `precision` holds: ``d / lambda``, in units of time.

    Examples
    --------
    >>> half_life(0.02, drift=0.01)
    2.0
    """
    return require_positive(precision, "precision") / require_positive(drift, "drift")


def last_day(start: dt.date | None, days: float) -> str | None:
    """Return the day so many days later; None without a start, and beyond the calendar.

    Examples
    --------
    >>> last_day(dt.date(2026, 1, 30), 2.5)
    '2026-02-01'
    """
    if start is None or not days < (dt.date.max - start).days:
        return None
    return (start + dt.timedelta(days=math.floor(days))).isoformat()


def data_rate(
    precision: float, *, error_rate: float, drift: float, lipschitz: float = 1.0
) -> float:
    """Return the labels per unit of time that keep it verified: ``L eps lambda / d^4``.

    Examples
    --------
    >>> round(data_rate(0.02, error_rate=0.05, drift=0.01))
    3125
    """
    steepness = require_positive(lipschitz, "lipschitz")
    decay = require_positive(drift, "drift")
    return steepness * require_rate(error_rate) * decay / (_cube(precision) * precision)


def transfer_labels(shift: float, *, error_rate: float, shift_lipschitz: float = 1.0) -> int:
    """Return the labels to see a change of the gap of size `shift` after fine-tuning.

    ``L_h eps / d_ft^3``, where L_h is the Lipschitz constant of the change. As printed in the
    paper the labels grow as the shift shrinks: a small shift is hard to see, and nothing is saved
    by it. What saves labels is a smooth change: a precision d then takes ``L_h eps / d^3`` in
    place of ``L eps / d^3``.

    Examples
    --------
    >>> transfer_labels(0.05, error_rate=0.05)
    400
    """
    steepness = require_positive(shift_lipschitz, "shift_lipschitz")
    return int(_labels(steepness * require_rate(error_rate) / _cube(shift)))


def grouping_labels(loss: float, *, noise: float, above: float = 0.0, power: float = 0.8) -> int:
    """Return the labels that show a grouping loss, for whoever knows what the columns say.

    ``((z_0.95 + z_power) sqrt(noise) / (sqrt(loss) - sqrt(above)))^2``: with the true residual as
    direction the mean of its product with the outcomes is ``loss``, with variance
    ``loss * noise`` per label. Who must learn the direction first needs more.

    Parameters
    ----------
    loss
        True grouping loss.
    noise
        Mean of p (1 - p) over the true chances p: at most e (1 - e) at an error rate e.
    above
        The loss is shown to be above this.
    power
        Chance of showing it, by a one-sided test at 5 %.

    Examples
    --------
    >>> grouping_labels(0.01, noise=0.2)
    124
    """
    if not 0 <= above < loss <= 0.25:
        rule = "a grouping loss is above {0} and at most 0.25, got {1}"
        raise InputError(Hint(rule, f"{above:g}", f"{loss:g}"))
    if not 0.05 < power < 1:
        raise InputError(f"a power is between 0.05 and 1, got {power:g}")
    reach = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(power)
    spread = require_positive(require_rate(noise, "noise"), "noise")
    return int(_labels(reach**2 * spread / (math.sqrt(loss) - math.sqrt(above)) ** 2))


def _cube(precision: float) -> float:
    cube = require_positive(precision, "precision") ** 3
    if cube == 0:
        raise InputError(f"a precision of {precision!r} is too small to plan for")
    return cube


def _labels(value: float) -> float:
    if value > _MOST_LABELS:
        raise InputError(f"that would take {value:.0e} labels", hint="ask for less")
    return float(max(1, ceil(value)))


def _floor(value: float) -> int:
    return math.floor(value + 1e-9)
