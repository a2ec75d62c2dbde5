"""What every other package stands on, and which knows none of them.

Start with `errors.InputError` (what a person is told: file, row, rule, way out), `verb.verb` (one
declaration per verb, for shell, Python and app) and `hints.Call` (a next step that can be typed).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.core.arrays import Estimate as Estimate
    from calibrant.core.arrays import RngLike as RngLike
    from calibrant.core.arrays import as_generator as as_generator
    from calibrant.core.arrays import named_stream as named_stream
    from calibrant.core.errors import CalibrantError as CalibrantError
    from calibrant.core.errors import ClaimFailed as ClaimFailed
    from calibrant.core.errors import InputError as InputError
    from calibrant.core.errors import MissingDependencyError as MissingDependencyError
    from calibrant.core.errors import UndefinedMetricWarning as UndefinedMetricWarning
    from calibrant.core.names import Registry as Registry
else:
    # Loaded when asked for: an error needs no numpy, and neither does --help.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
