"""What every layer stands on: errors, estimates, seeds, registry, optional imports."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

if TYPE_CHECKING:
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
else:
    # Loaded when asked for: an error needs no numpy, and neither does --help.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".errors": (
                "CalibrantError",
                "ClaimFailed",
                "InputError",
                "MissingDependencyError",
                "UndefinedMetricWarning",
            ),
            ".estimate": ("Estimate",),
            ".registry": ("Registry",),
            ".rng": ("RngLike", "as_generator", "named_stream"),
        },
    )

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
