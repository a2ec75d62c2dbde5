"""`run` inside programs that have an event loop already: notebooks, servers, agents."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from calibrant.report.typed import RunResult

__all__ = ["arun", "run_to_end"]

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


async def arun(study: str | Path, **options: Any) -> RunResult:
    """Run a study without holding up the event loop; the options are those of `run`.

    The study is asked, graded and audited in a thread. Cancelling the wait does not stop the
    thread; what was answered is in the ledger either way.

    Parameters
    ----------
    study
        Folder that holds ``study.toml``, or that file.
    **options
        See `calibrant.run`.

    Returns
    -------
    RunResult
        Document ``calibrant.run/1``.
    """
    from calibrant.workflows.run import run

    return await asyncio.to_thread(run, study, **options)
