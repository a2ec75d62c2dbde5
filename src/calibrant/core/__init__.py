"""What every layer stands on: errors, estimates, seeds, registry, optional imports."""

from calibrant.core.errors import (
    CalibrantError,
    ClaimFailed,
    InputError,
    MissingDependencyError,
    UndefinedMetricWarning,
)
from calibrant.core.estimate import Estimate
from calibrant.core.registry import Registry
from calibrant.core.rng import RngLike, as_generator, named_stream

__all__ = [
    "CalibrantError",
    "ClaimFailed",
    "Estimate",
    "InputError",
    "MissingDependencyError",
    "Registry",
    "RngLike",
    "UndefinedMetricWarning",
    "as_generator",
    "named_stream",
]
