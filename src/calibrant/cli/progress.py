"""What a command gives to its verb: a progress bar, alarms said at once, a question."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from calibrant.claims.monitor import announcement
from calibrant.core.errors import printable

_SHOWN_AFTER_S = 1.0


class RunBar:
    """A progress bar on standard error: draws, rate, cost, time left.

    It is drawn from the first model on: until then the terminal belongs to what is asked and said
    before anything is sent. What a waiting user must know, a dead endpoint or what is tried next,
    has a line of its own, also where there is no terminal for a bar.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._speaks = enabled
        console = Console(stderr=True)
        self._progress = Progress(
            # A model's name in brackets is no style.
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[cost]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not enabled or not console.is_terminal,
        )
        self._task: Any = None
        self._priced = False
        self._arrived: dict[Any, int] = {}

    @property
    def arrived(self) -> int | None:
        """How many answers there are by now; None before any model was asked."""
        return sum(self._arrived.values()) if self._arrived else None

    def __enter__(self) -> RunBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def start(self, model: str, draws: int, *, priced: bool) -> None:
        """Begin a line for a model."""
        self._progress.start()
        self._priced = priced
        self._task = self._progress.add_task(printable(model), total=draws, rate="", cost="")
        self._arrived[self._task] = 0

    def update(self, progress: Any) -> None:
        """Show the counts, and the notice where there is one."""
        seconds = max(progress.elapsed_s, 1e-9)
        rate = f"{progress.draws_new / seconds:.1f} draws/s"
        if progress.retries:
            rate += f", {progress.retries:,} retries"
        self._arrived[self._task] = progress.draws_new + progress.draws_cached
        self._progress.update(
            self._task,
            completed=self._arrived[self._task],
            rate=rate,
            cost=f"${progress.cost:.4f}" if self._priced else "price unknown",
        )
        if progress.notice is not None and self._speaks:
            self._progress.console.print(printable(progress.notice), markup=False, highlight=False)


class StepBar:
    """A bar on standard error for work that takes a while; it is gone when the work is done."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> StepBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how much is done; what ends at once is not shown at all."""
        if self._task is None and time.monotonic() - self._began > _SHOWN_AFTER_S:
            self._progress.start()
            self._task = self._progress.add_task(what, total=total)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total)


def announce(alarm: dict[str, Any]) -> None:
    """Say on standard error that calibration has changed, or that a promise is broken."""
    sys.stderr.write(printable(announcement(alarm)) + "\n")
    sys.stderr.flush()


def agreed(question: str) -> bool:
    """Ask on the terminal whether to go on; where there is no terminal, nobody agrees.

    Parameters
    ----------
    question
        What is about to happen, and whether it should.
    """
    # Not sys.stderr: a progress bar holds back what does not end with a line.
    terminal = sys.__stderr__
    if terminal is None or not (sys.stdin.isatty() and terminal.isatty()):
        return False
    terminal.write(f"{question} [y/N] ")
    terminal.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
