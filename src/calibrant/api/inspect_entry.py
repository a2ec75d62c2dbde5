"""Old address of `calibrant.integrations.inspect_entry`, kept until version 0.3."""

import sys

from calibrant.integrations import inspect_entry

sys.modules[__name__] = inspect_entry
