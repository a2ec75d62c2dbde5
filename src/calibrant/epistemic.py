"""The old name of `calibrant.trust`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.trust"]
