"""How far can you trust what a model says about its own certainty?"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_FUNCTIONS = {
    "audit": "calibrant.verbs.audit",
    "cascade": "calibrant.verbs.cascade",
    "compare": "calibrant.verbs.compare",
    "decide": "calibrant.verbs.decide",
    "grade": "calibrant.verbs.grade",
    "groups": "calibrant.verbs.groups",
    "import_logs": "calibrant.verbs.import_logs",
    "load_policy": "calibrant.epistemic",
    "monitor": "calibrant.verbs.monitor",
    "plan": "calibrant.verbs.plan",
    "run": "calibrant.workflows.run",
}
_MODULES = (
    "clients",
    "collect",
    "comparison",
    "confidence",
    "epistemic",
    "metrics",
    "planning",
    "records",
    "report",
    "semantics",
    "sources",
    "stats",
)

__all__ = ["__version__", *_FUNCTIONS, *_MODULES]


def __getattr__(name: str) -> Any:
    """Import on first use: auditing a table never loads code that talks to models."""
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"calibrant.{name}")
    raise AttributeError(f"module 'calibrant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
