"""The old name of `calibrant.labels`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.labels"]
