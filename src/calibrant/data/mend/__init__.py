"""What does a stated confidence mean here? Maps with a promise, saved as plain data."""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.data.mend.estimator import Mend as Mend
    from calibrant.data.mend.recalibration_map import RecalibrationMap as RecalibrationMap
    from calibrant.data.mend.recalibration_map import load_mend as load_mend
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
