"""Other processes of this machine, for work that holds the interpreter's lock.

They are started anew and talk through pipes: a calling script needs no guard, no thread is copied,
and a process ends with the pipe of the one that started it, however that ended.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock
from typing import IO, Any, TypeVar

from calibrant.core.machine import usable_cores

Item = TypeVar("Item")
Value = TypeVar("Value")
# Modules are found where this process finds them, and not in the folder that it happens to be in.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from calibrant.inputs.streams.processes import serve; serve()"
)
# Each has one core to itself.
_ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
}
_SIZE_BYTES = 8
# Each holds the libraries in memory, about 150 MB.
_MOST = 8


class ProcessEngine:
    """Runs a function on every part in other processes, one per core, up to eight.

    What a part gives must not depend on where it runs. Where no process can be started, where one
    ends, and where a part fails, that part runs in this process: so an error has its own traceback.

    Examples
    --------
    >>> list(ProcessEngine(processes=2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or min(usable_cores(), _MOST)

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Yield function(item) for every item, in order."""
        parts = list(items)
        helpers = [_Helper(function) for _ in range(min(self.processes, len(parts)))]
        if len(helpers) < 2:
            yield from map(function, parts)
            return
        free: SimpleQueue[_Helper] = SimpleQueue()
        for helper in helpers:
            free.put(helper)

        def asked(part: Item) -> Value:
            helper = free.get()
            try:
                return helper.ask(part)  # type: ignore[no-any-return]
            finally:
                free.put(helper)

        pool = ThreadPoolExecutor(len(helpers))
        try:
            for part, future in [(part, pool.submit(asked, part)) for part in parts]:
                try:
                    value = future.result()
                except _NotDoneError:
                    value = function(part)
                yield value
        finally:
            for helper in helpers:
                helper.end()
            pool.shutdown(cancel_futures=True)


class _NotDoneError(Exception):
    """A part was not done elsewhere, for whatever reason."""


class _Helper:
    """One other process, started when it is first asked."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        # A thread may be about to start the process while another one ends it.
        self._lock = Lock()

    def ask(self, part: Any) -> Any:
        """Return what the function gives for a part."""
        try:
            given, out = self._pipes()
            _send(given, pickle.dumps(part, protocol=pickle.HIGHEST_PROTOCOL))
            done, value = _received(out)
        except Exception as error:
            self.end()
            raise _NotDoneError from error
        if not done:
            raise _NotDoneError
        return value

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            function = pickle.dumps(self._function, protocol=pickle.HIGHEST_PROTOCOL)
            with self._lock:
                if self._ended:
                    raise _NotDoneError
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", _START, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | _ONE_THREAD,
                )
            assert self._process.stdin is not None
            _send(self._process.stdin, function)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def end(self) -> None:
        """End the process; it is not started again."""
        with self._lock:
            process, self._process, self._ended = self._process, None, True
        if process is not None:
            process.kill()
            # Closes the pipes, too; what was not written is of no use.
            with suppress(OSError):
                process.communicate()


def serve() -> None:
    """Work on what comes through the standard input until it ends."""
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answers.
    os.dup2(2, 1)
    # Whoever stops the caller stops this one too, by its pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError):
        function = _received(given)
        # Objects are looked through for cycles once a part, those of the libraries never: a part
        # makes a great many objects and hardly a cycle.
        gc.freeze()
        gc.disable()
        while True:
            part = _received(given)
            try:
                answer = True, function(part)
            except Exception:  # noqa: BLE001, the caller finds it out again
                answer = False, None
            _send(out, pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))
            del part, answer
            gc.collect()


def _send(pipe: IO[bytes], sent: bytes) -> None:
    pipe.write(len(sent).to_bytes(_SIZE_BYTES, "big"))
    pipe.write(sent)
    pipe.flush()


def _received(pipe: IO[bytes]) -> Any:
    """Return what comes next; nothing but what this package sent comes through these pipes."""
    size = int.from_bytes(_exactly(pipe, _SIZE_BYTES), "big")
    return pickle.loads(_exactly(pipe, size))  # noqa: S301


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    found = pipe.read(size)
    if len(found) < size:
        raise EOFError
    return found
