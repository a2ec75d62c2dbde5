"""The public name of what `calibrant.answers.semantics` holds."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("calibrant.answers.semantics")
