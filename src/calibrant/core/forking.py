"""A forked process that would hang is told so: the threads of the table library are not copied."""

from __future__ import annotations

import os

from calibrant.core.errors import InputError


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
