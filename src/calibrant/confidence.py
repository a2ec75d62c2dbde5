"""The old name of `calibrant.answers.confidence`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.answers.confidence"]
