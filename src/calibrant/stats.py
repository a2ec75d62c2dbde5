"""The old name of `calibrant.metrics.stats`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.metrics.stats"]
