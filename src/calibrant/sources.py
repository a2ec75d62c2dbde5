"""The old name of `calibrant.data.questions`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.data.questions"]
