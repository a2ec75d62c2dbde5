"""The old name of `calibrant.models`, until the release."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("calibrant.models")
