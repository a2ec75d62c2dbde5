"""Alarms of rows that keep coming, said at once."""

from __future__ import annotations

import sys
from typing import Any

from calibrant.claims.monitor import announcement
from calibrant.core.errors import printable


def announce(alarm: dict[str, Any]) -> None:
    """Say on standard error that calibration has changed, or that a promise is broken."""
    sys.stderr.write(printable(announcement(alarm)) + "\n")
    sys.stderr.flush()
