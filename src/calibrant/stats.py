"""The old name of `calibrant.metrics.stats`, until the release."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("calibrant.metrics.stats")
