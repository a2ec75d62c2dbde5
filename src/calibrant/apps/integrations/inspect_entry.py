"""What Inspect loads: importing this module registers calibrant's scorers and metrics with it.

Task files import them from here:
``from calibrant.apps.integrations.inspect_entry import verbalised, ece``. Where
Inspect is not installed, nothing is registered and the names say what to install.
"""

import importlib.util
from typing import Any

from calibrant.apps.integrations.inspect_extension import METRICS, SCORERS, register

_registered: dict[str, Any] = register() if importlib.util.find_spec("inspect_ai") else {}


def __getattr__(name: str) -> Any:
    if name not in METRICS and name not in SCORERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _registered[name] if _registered else register()[name]
