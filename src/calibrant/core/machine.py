"""What the machine offers this process, and a fork that would hang."""

import math
import os
from pathlib import Path

from calibrant.core.errors import InputError

# Where a container is told its share of the cores: microseconds in so many microseconds.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return how many cores this process may use; not every system can tell which those are.

    Examples
    --------
    >>> usable_cores() >= 1
    True
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0))
    try:
        most, period = _QUOTA.read_text(encoding="ascii").split()
        return min(cores, max(math.ceil(int(most) / int(period)), 1))
    except (OSError, ValueError, ZeroDivisionError):
        # No container, or no limit: the first word is 'max'.
        return cores


class _State:
    """Whether this process has used calibrant, and whether it was forked from one that had."""

    used = False
    forked = False


def _in_child() -> None:
    _State.forked = _State.used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def check_not_forked() -> None:
    """Refuse to begin in a fork of a process that has used calibrant before.

    A fork copies memory and the calling thread alone. Whoever waits there for one of the other
    threads waits for ever.
    """
    if _State.forked:
        raise InputError(
            "this process was forked from one that had used calibrant already: the threads that "
            "read tables do not exist here, and it would wait for them for ever",
            hint='start processes with multiprocessing.get_context("spawn"), or fork before the '
            "first call",
        )
    _State.used = True
