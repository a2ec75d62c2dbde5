"""The old name of `calibrant.models.study`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.models.study"]
