"""The old name of `calibrant.data.mend`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.data.mend"]
