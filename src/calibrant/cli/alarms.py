"""Alarms of rows that keep coming, said at once."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["announce"]


def announce(alarm: dict[str, Any]) -> None:
    """Say on standard error that calibration has changed."""
    where = "overall" if alarm["bin"] is None else f"confidence {alarm['bin']}"
    sys.stderr.write(
        f"ALARM {alarm['model']} / {alarm['method']} at {alarm['when']}: {alarm['direction']} "
        f"({where}), since about {alarm['since']}\n"
    )
    sys.stderr.flush()
