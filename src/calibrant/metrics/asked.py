"""Metrics asked for by name in an audit, beside what a calibrated model would show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.core import InputError
from calibrant.core.registry import did_you_mean
from calibrant.metrics.registry import METRICS
from calibrant.metrics.row_block import RowBlock

_DRAWS = 200


def check_named(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of metrics.

    Examples
    --------
    >>> check_named(["mce"])
    ('mce',)
    """
    known = [name for name, metric in METRICS.items() if metric.audit == "asked"]
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no metric {name!r} to add",
                hint=f"{did_you_mean(name, known)}; those of every audit need no name",
            )
    return tuple(names)


def named_values(
    block: RowBlock, names: Sequence[str], rng: np.random.Generator
) -> dict[str, dict[str, float | None]]:
    """Return each metric, and where it would lie if the confidences were right.

    All of these are above 0 on finite data even for a calibrated model, so a value alone says
    little. ``calibrated_mean`` and ``calibrated_high`` are mean and upper end (of the audit's
    level, one-sided) over outcomes drawn from the confidences themselves. They are None where
    rows depend on each other or are grades, since such outcomes cannot be drawn so.
    """
    confidence, correct = block.given
    probability = confidence.astype(np.float64)
    drawn = [rng.random(block.n) < probability for _ in range(_DRAWS if block.independent else 0)]
    found = {}
    for name in names:
        options: dict[str, Any] = {"bins": block.bins} if METRICS[name].binned else {}
        options["weights"] = block.given_weights
        metric = METRICS[name]
        values = np.array([metric(confidence, outcome, **options) for outcome in drawn])
        usable = values.size > 0 and bool(np.isfinite(values).all())
        value = metric(confidence, correct, **options)
        found[name] = {
            "value": value if math.isfinite(value) else None,
            "n": block.n,
            "calibrated_mean": float(values.mean()) if usable else None,
            "calibrated_high": float(np.quantile(values, block.level)) if usable else None,
        }
    return found
