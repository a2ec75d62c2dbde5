"""The old name of `calibrant.answers.semantics`, until the release."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("calibrant.answers.semantics")
