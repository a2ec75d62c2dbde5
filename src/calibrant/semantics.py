"""The old name of `calibrant.answers.semantics`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.answers.semantics"]
