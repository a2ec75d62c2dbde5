"""The garbage collector while calls are made."""

from __future__ import annotations

import gc

NEW_OBJECTS = 10_000


class CalmCollector:
    """Lets the collector look for cycles less often while anybody is inside.

    Hundreds of calls under way are tens of thousands of objects that come and go, none of them in
    a cycle. Python's own threshold of 700 new objects makes the collector visit them again and
    again, for an eighth of all time. A threshold that is higher already, or off, is left alone.

    Examples
    --------
    >>> before = gc.get_threshold()
    >>> CalmCollector.enter()
    >>> gc.get_threshold()[0] >= 10_000
    True
    >>> CalmCollector.leave()
    >>> gc.get_threshold() == before
    True
    """

    _inside = 0
    _before: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def enter(cls) -> None:
        """Begin; the first one sets the threshold."""
        cls._inside += 1
        if cls._inside > 1:
            return
        cls._before = gc.get_threshold()
        if 0 < cls._before[0] < NEW_OBJECTS:
            gc.set_threshold(NEW_OBJECTS, *cls._before[1:])

    @classmethod
    def leave(cls) -> None:
        """End; the last one puts the threshold back."""
        cls._inside -= 1
        if cls._inside == 0:
            gc.set_threshold(*cls._before)
