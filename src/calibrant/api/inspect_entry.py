"""Old address of `calibrant.integrations.inspect_entry`, kept until version 0.3."""

import sys
import warnings

from calibrant.integrations import inspect_entry

warnings.warn(
    "calibrant.api.inspect_entry has moved to calibrant.integrations.inspect_entry",
    DeprecationWarning,
    stacklevel=2,
)
sys.modules[__name__] = inspect_entry
