"""The one list of metrics: whatever names, computes, titles or explains them reads it."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import MaybeArray
from calibrant.core.errors import require_known
from calibrant.core.names import data_beside
from calibrant.metrics import named, scoring
from calibrant.metrics.binned import ece, over_confidence, under_confidence
from calibrant.metrics.blocks import families, grid
from calibrant.metrics.blocks.cell_error import error
from calibrant.metrics.blocks.families import Metric, MetricFamily, mean_of, ranking_of
from calibrant.metrics.corp import dsc, mcb, unc
from calibrant.metrics.intervals.gap_model import ece_debiased
from calibrant.metrics.selective import accuracy_at_coverage, aurc, e_aurc
from calibrant.metrics.smooth import smooth_ece


def _gap(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return mean confidence minus accuracy; `confidence_gap` has it with its interval."""
    confidences = scoring.mean_confidence(confidence, correct, weights=weights)
    return confidences - scoring.accuracy(confidence, correct, weights=weights)


# What computes a metric's value, and with its interval from rows and from cells.
_COMPUTED: dict[str, tuple[Callable[..., float], MetricFamily | None]] = {
    "error": (error, MetricFamily(families.cell_error, grid.of_cells)),
    "ece": (ece, MetricFamily(families.binned_error, grid.of_place)),
    "ece_debiased": (ece_debiased, MetricFamily(families.debiased_error, grid.of_place)),
    "smooth_ece": (smooth_ece, MetricFamily(families.smooth_error, grid.of_smooth)),
    "brier": (scoring.brier, mean_of(lambda c, y: np.square(c - y), bend=(2.0, 2.0))),
    "log_loss": (
        scoring.log_loss,
        mean_of(scoring.log_loss_rows, cells=families.log_loss_of_cells, bound=grid.of_log_loss),
    ),
    "auroc": (scoring.auroc, ranking_of("auroc", families.area_under_roc, grid.of_area)),
    "auprc": (
        scoring.auprc,
        ranking_of("auprc", families.average_precision, grid.of_precision),
    ),
    "aurc": (aurc, ranking_of("aurc", families.average_risk, grid.of_risk)),
    "e_aurc": (e_aurc, ranking_of("e_aurc", families.excess_risk, grid.of_risk)),
    "accuracy": (
        scoring.accuracy,
        mean_of(lambda c, y: y + 0.0 * c, interval=families.wilson_share, bound=grid.nothing),
    ),
    "mean_confidence": (
        scoring.mean_confidence,
        mean_of(lambda c, y: c + 0.0 * y, interval=families.student_mean, bound=grid.of_place),
    ),
    "over_confidence": (over_confidence, MetricFamily(families.over_half, grid.of_place)),
    "under_confidence": (under_confidence, MetricFamily(families.under_half, grid.of_place)),
    "mcb": (mcb, MetricFamily(families.miscalibration, grid.of_miscalibration)),
    "dsc": (dsc, MetricFamily(families.discrimination, grid.of_discrimination)),
    "unc": (unc, MetricFamily(families.uncertainty, grid.nothing)),
    "confidence_gap": (_gap, MetricFamily(families.mean_gap, grid.of_place)),
    "rms_calibration_error": (named.rms_calibration_error, None),
    "mce": (named.mce, None),
    "adaptive_ece": (named.adaptive_ece, None),
    "ks_calibration_error": (named.ks_calibration_error, None),
    "log_loss_calibration": (named.log_loss_calibration, None),
    "log_loss_refinement": (named.log_loss_refinement, None),
    "accuracy_at_coverage": (accuracy_at_coverage, None),
}


def _metrics() -> Iterator[Metric]:
    for name, facts in data_beside(__file__, "metrics.toml").items():
        facts |= {key: " ".join(facts.get(key, "").split()) for key in ("words", "formula")}
        facts["range"] = tuple(facts.get("range", (0.0, 1.0)))
        value, family = _COMPUTED[name]
        yield Metric(name=name, value=value, family=family, **facts)


METRICS: dict[str, Metric] = {metric.name: metric for metric in _metrics()}
"""Every metric by name, those of every audit first, in the order of a document."""


def audited() -> tuple[str, ...]:
    """Return the names of the metrics that every audit has.

    Examples
    --------
    >>> audited()[:3]
    ('error', 'ece', 'ece_debiased')
    """
    return tuple(name for name, metric in METRICS.items() if metric.audit == "always")


def named_metric(name: str) -> Metric:
    """Return a metric, or say which names are near."""
    require_known([name], METRICS, "there is no metric {}")
    return METRICS[name]
