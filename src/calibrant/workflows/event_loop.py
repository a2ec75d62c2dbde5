"""`run` inside programs that have an event loop already: notebooks, servers, agents."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, also where this thread runs an event loop.

    Such a loop (that of a notebook) cannot be entered twice: the work gets a loop and a thread
    of its own, and the caller waits for it.

    Examples
    --------
    >>> async def double(number):
    ...     return 2 * number
    >>> async def inside():
    ...     return run_to_end(double(4))
    >>> run_to_end(double(3)), asyncio.run(inside())
    (6, 8)
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="calibrant-run") as pool:
        return pool.submit(asyncio.run, work).result()
