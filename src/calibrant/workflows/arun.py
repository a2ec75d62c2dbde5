"""`run` for programs that must not wait: the event loop of a server or a notebook goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.workflows.run import run

if TYPE_CHECKING:
    from calibrant.report.typed import RunResult


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
    return await asyncio.to_thread(run, study, **options)
