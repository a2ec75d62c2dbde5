"""An event loop for code that waits: beside the loop of a notebook, and quick to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class _PromptLoop(asyncio.SelectorEventLoop):
    """A loop that is closed without waiting for its threads.

    They look up addresses, which takes a minute where a name server is silent; Ctrl-C must not
    wait for that.
    """

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Leave the threads alone; `close` tells them to begin nothing new."""


class OwnLoop:
    """One event loop for several pieces of work: connections that one opened serve the next.

    Ctrl-C cancels the work, which may then put its things in order, and raises KeyboardInterrupt.

    Examples
    --------
    >>> async def double(number):
    ...     return 2 * number
    >>> with OwnLoop() as loop:
    ...     loop.run(double(3)), loop.run(double(4))
    (6, 8)
    >>> async def inside():
    ...     with OwnLoop() as loop:
    ...         return loop.run(double(5))
    >>> asyncio.run(inside())
    10
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=_PromptLoop)

    def __enter__(self) -> OwnLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work returns, also where this thread runs an event loop already.

        Such a loop (that of a notebook) cannot be entered twice: the work is done in a thread,
        and the caller waits for it.
        """
        return _apart(lambda: self._runner.run(work), stop=self._cancel)

    def close(self) -> None:
        """Close the loop."""
        _apart(self._runner.close)

    def _cancel(self) -> None:
        loop = self._runner.get_loop()
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])


def _apart(work: Callable[[], T], stop: Callable[[], object] = lambda: None) -> T:
    """Do the work here, or in a thread where this one runs an event loop; then Ctrl-C stops it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, thread_name_prefix="calibrant") as pool:
        begun = pool.submit(work)
        try:
            return begun.result()
        except KeyboardInterrupt:
            stop()
            raise
