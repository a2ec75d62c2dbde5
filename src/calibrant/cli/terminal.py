"""What a command shows: a progress bar, alarms said at once, a question, and its result."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from rich.console import Console

from calibrant.core.document import dump_document
from calibrant.core.errors import printable
from calibrant.findings.claims.labels import announcement

if TYPE_CHECKING:
    from rich.progress import Progress

    from calibrant.report.result import Result

_SHOWN_AFTER_S = 1.5


def _bar(*fields: str, enabled: bool = True, counts: bool = True, **options: Any) -> Progress:
    """Return a bar on standard error; nothing is drawn where that is no terminal."""
    # Loaded here: most work ends before a bar is shown.
    from rich import progress

    console = Console(stderr=True)
    left = progress.MofNCompleteColumn(), progress.TimeRemainingColumn(compact=True)
    return progress.Progress(
        # A model's name in brackets is no style.
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        *left[:counts],
        *(progress.TextColumn(f"{{task.fields[{name}]}}") for name in fields),
        left[1] if counts else progress.TimeElapsedColumn(),
        console=console,
        disable=not enabled or not console.is_terminal,
        **options,
    )


class RunBar:
    """A progress bar on standard error: draws, rate, cost, time left.

    It is drawn from the first model on: until then the terminal belongs to what is asked and said
    before anything is sent. What a waiting user must know, a dead endpoint or what is tried next,
    has a line of its own, also where there is no terminal for a bar.
    """

    def __init__(self, *, enabled: bool, before: StepBar) -> None:
        self._speaks = enabled
        self._before = before
        self._progress = _bar("rate", "cost", enabled=enabled)
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
        self._before.stop()
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
    """A bar on standard error for work that takes a while; it is gone when the work is done.

    It moves while nobody knows how much is left, and counts once the verb tells its steps. For work
    that ends at once nothing is shown, nor where standard error is no terminal.
    """

    def __init__(self, words: str) -> None:
        self._words = words
        self._progress: Progress | None = None
        self._task: Any = None
        self._step: tuple[str, int, int] | None = None
        self._stopped = False
        self._lock = Lock()
        self._timer = Timer(_SHOWN_AFTER_S, self._show)
        self._timer.daemon = True

    def __enter__(self) -> StepBar:
        is_screen = sys.stderr is not None and sys.stderr.isatty()
        if is_screen and os.environ.get("TERM") != "dumb":
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away; it does not come back."""
        self._timer.cancel()
        with self._lock:
            self._stopped = True
            if self._progress is not None:
                self._progress.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how much is done."""
        with self._lock:
            is_first, self._step = self._step is None, (what, done, total)
            if self._progress is not None:
                if is_first:
                    self._draw()
                self._progress.update(self._task, completed=done, total=total)

    def _show(self) -> None:
        with self._lock:
            if not self._stopped:
                self._draw()

    def _draw(self) -> None:
        """Begin a bar that moves, or in its place one that counts."""
        if self._progress is not None:
            self._progress.stop()
        what, done, total = self._step or (self._words, 0, None)
        self._progress = _bar(counts=total is not None, transient=True)
        self._task = self._progress.add_task(what, completed=done, total=total)
        self._progress.start()


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


_VIEW = ("full", "top", "sort")
_MORE = {"full": "--full", "html": "--html page.html", "json": "--json out.json"}


class _Console(Console):
    """A terminal; whoever stops reading it (`| head -1`) is dealt with where the program ends."""

    def on_broken_pipe(self) -> None:
        """Pass it on: the library would end the program as if a check had failed."""
        raise BrokenPipeError


def emit(result: Result, outputs: Mapping[str, Any], *, available: Collection[str]) -> None:
    """Do what the output options say, and print the result where JSON does not go there.

    Parameters
    ----------
    result
        What the verb returned.
    outputs
        The output options given: json, html, junit, fail_if; full, top and sort are handed to
        the tables as they are.
    available
        The output options that the command has: no other is offered.
    """
    # Loaded here: by then the verb has read, and whatever it refuses is refused already.
    from calibrant.report import print_block, terminal_blocks
    from calibrant.report.terminal import LEAST_WIDTH

    json, html, junit = (outputs.get(name) for name in ("json", "html", "junit"))
    if html is not None:
        result.to_html(html)
    if junit is not None:
        from calibrant.report.exports import to_junit

        undecided = bool(outputs.get("allow_undecided"))
        to_junit(result, outputs.get("fail_if") or [], junit, allow_undecided=undecided)
    if json == "-":
        sys.stdout.buffer.write(dump_document(result.to_dict()))
        sys.stdout.buffer.flush()
        return
    if json is not None:
        result.to_json(json)
    console = _Console()
    console.width = max(console.width, LEAST_WIDTH)
    view = {name: outputs[name] for name in _VIEW if name in outputs}
    more = "   ".join(words for name, words in _MORE.items() if name in available)
    for block in terminal_blocks(result.to_dict(), width=console.width, more=more, **view):
        print_block(console, block)
    data = result.get("data")
    files = dict(data.get("written", {})) if isinstance(data, Mapping) else {}
    files |= {path: "" for path in (json, html) if path is not None}
    for path, words in files.items():
        # A name in brackets is no style.
        text = f"written: {path} ({words})" if words else f"written: {path}"
        console.print(printable(text), highlight=False, markup=False)
