"""The public name of what `calibrant.labels` holds."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("calibrant.labels")
