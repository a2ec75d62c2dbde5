"""What the machine offers."""

from __future__ import annotations

import math
import os
from pathlib import Path

# Where a container is told its share of the cores: microseconds in so many microseconds.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return how many cores this process may use; not every system can tell which those are.

    Examples
    --------
    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _quota())
    return os.cpu_count() or 1


def _quota() -> int:
    """Return how many cores a container may use at a time, where it has a limit."""
    try:
        most, period = _QUOTA.read_text(encoding="ascii").split()
        return max(math.ceil(int(most) / int(period)), 1)
    except (OSError, ValueError, ZeroDivisionError):
        # No container, or no limit: the first word is 'max'.
        return 1_000_000
