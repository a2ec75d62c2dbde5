"""The old name of `calibrant.findings.documents`, for one release."""

import sys

sys.modules[__name__] = sys.modules["calibrant.findings.documents"]
