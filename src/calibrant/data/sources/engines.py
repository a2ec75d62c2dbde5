"""Engines: where the parts of a job run, and in which order results come back."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import IO, Any, Protocol, TypeVar

from calibrant.core.errors import InputError, MissingDependencyError
from calibrant.core.hints import Hint
from calibrant.core.machine import usable_cores
from calibrant.core.names import optional_import

Item = TypeVar("Item")
Value = TypeVar("Value")
# A part that was lost with its machine is read again at most so often.
RETRIES = 5
WAIT_S = 10.0
_START_HINT = Hint("start a cluster (ray start), set RAY_ADDRESS, or use {engine}", engine="local")


class Engine(Protocol):
    """Runs a function on every part."""

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Yield function(item) for every item, in order; few results are held at a time."""
        ...


def _ahead(begun: Iterable[Item], most: int) -> Iterator[Item]:
    """Yield what is begun, in order, so many of them ahead of the one that is waited for."""
    waiting: deque[Item] = deque()
    for item in begun:
        waiting.append(item)
        if len(waiting) > most:
            yield waiting.popleft()
    yield from waiting


class LocalEngine:
    """Threads of this process; reading and counting let go of the interpreter's lock.

    Examples
    --------
    >>> list(LocalEngine(threads=2).map(lambda part: part * part, range(5)))
    [0, 1, 4, 9, 16]
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or usable_cores()

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Yield function(item) for every item, in order."""
        pool = ThreadPoolExecutor(self.threads)
        try:
            submitted = (pool.submit(function, item) for item in items)
            yield from (future.result() for future in _ahead(submitted, self.threads + 1))
        finally:
            # After an error in one part the others are of no use.
            pool.shutdown(wait=True, cancel_futures=True)


class RayEngine:
    """Tasks on a Ray cluster that is already running and sees the same files.

    Parameters
    ----------
    address
        ``auto`` (the cluster of this machine or of ``RAY_ADDRESS``) or ``ray://HOST:PORT``.
    """

    def __init__(self, address: str = "auto") -> None:
        self.address = address

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Yield function(item) for every item, in order; parts of a lost machine run again."""
        ray = self._connected()
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_applied)
        shared = ray.put(function)
        window = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        for reference in _ahead((task.remote(shared, item) for item in items), window):
            yield self._result(ray, reference)

    def _connected(self) -> Any:
        ray = optional_import("ray", extra="ray", purpose="running on a Ray cluster")
        if ray.is_initialized():
            return ray
        # Ray itself waits minutes for a cluster that is not there: the door is tried first.
        value = os.environ.get("RAY_ADDRESS", "") if self.address == "auto" else self.address
        host, _, port = value.removeprefix("ray://").rpartition(":")
        try:
            if port.isdigit():
                socket.create_connection((host, int(port)), timeout=WAIT_S).close()
        except OSError as error:
            raise InputError(
                f"there is no Ray cluster at {value}: {_in_short(error)}", hint=_START_HINT
            ) from None
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, OSError, ValueError) as error:
            raise InputError(
                f"there is no Ray cluster at {self.address}: {_in_short(error)}",
                hint=_START_HINT,
            ) from None
        except ImportError as error:
            raise MissingDependencyError(
                f"{_in_short(error)}\n  -> pip install 'calibrant[ray]'"
            ) from None
        return ray

    @staticmethod
    def _result(ray: Any, reference: Any) -> Any:
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            # An error of the data reads the same wherever the part ran.
            if isinstance(cause, Exception):
                raise cause from None
            raise
        except ray.exceptions.RayError as error:
            raise InputError(
                f"a part could not be computed on the Ray cluster: {_in_short(error)}",
                hint=f"each part was tried {RETRIES + 1} times; look at the state of the cluster "
                "with `ray status`",
            ) from None


def _applied(function: Callable[[Item], Value], item: Item) -> Value:
    return function(item)


def _in_short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else type(error).__name__


def engine_named(name: str | None) -> Engine:
    """Return the engine: ``local`` (the default), ``ray`` or ``ray://HOST:PORT``.

    Examples
    --------
    >>> engine_named("ray://head:10001").address
    'ray://head:10001'
    >>> engine_named("spark")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: engine is local, ray or ray://HOST:PORT, got 'spark'
    """
    if name is None or name == "local":
        return LocalEngine()
    if name == "ray":
        return RayEngine()
    if name.startswith("ray://"):
        return RayEngine(name)
    raise InputError(f"engine is local, ray or ray://HOST:PORT, got {name!r}")


# Modules are found where this process finds them, and not in the folder that it happens to be in.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from calibrant.data.sources.engines import serve; serve()"
)


class NotDoneError(Exception):
    """A part was not done elsewhere, for whatever reason."""


class Helper:
    """One other process, started when it is first asked.

    Parameters
    ----------
    function
        What it does with each part.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        # A thread may be about to start the process while another one ends it.
        self._lock = Lock()

    def ask(self, part: Any) -> Any:
        """Return what the function gives for a part."""
        try:
            values, out = self.start()
            _send(values, part)
            # Nothing but what this package sent comes through these pipes.
            finished, value = pickle.load(out)  # noqa: S301
        except Exception as error:
            self.end()
            raise NotDoneError from error
        if not finished:
            raise NotDoneError
        return value

    def start(self) -> tuple[IO[bytes], IO[bytes]]:
        """Start the process ahead of its first part, and return the ways to it and back."""
        if self._process is None:
            with self._lock:
                if self._ended:
                    raise NotDoneError
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", _START, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            assert self._process.stdin is not None
            _send(self._process.stdin, self._function)
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
    values, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answers.
    os.dup2(2, 1)
    # Whoever stops the caller stops this one too, by its pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, pickle.UnpicklingError):
        function = pickle.load(values)  # noqa: S301
        # Objects are looked through for cycles once a part, those of the libraries never: a part
        # makes a great many objects and hardly a cycle.
        gc.freeze()
        gc.disable()
        while True:
            part = pickle.load(values)  # noqa: S301
            try:
                answer = True, function(part)
            except Exception:  # noqa: BLE001, the caller finds it out again
                answer = False, None
            _send(out, answer)
            del part, answer
            gc.collect()


def _send(pipe: IO[bytes], message: Any) -> None:
    # At once: what cannot be sent must not leave a half behind.
    pipe.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
    pipe.flush()
