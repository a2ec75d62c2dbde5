"""The old name of `calibrant.models`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.models"]
