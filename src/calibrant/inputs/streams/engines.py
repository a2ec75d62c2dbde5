"""Engines: where the parts of a job run. Results come back in the order of the parts.

An engine maps a function over independent parts. What a part gives must not depend on where or
when it runs; then every engine gives the same document, byte for byte.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from calibrant.core.errors import InputError, MissingDependencyError
from calibrant.core.hints import Hint
from calibrant.core.machine import usable_cores
from calibrant.core.optional import optional_import

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
        waiting: deque[Future[Value]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > self.threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
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
        waiting: deque[Any] = deque()
        window = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        for item in items:
            waiting.append(task.remote(shared, item))
            if len(waiting) > window:
                yield self._result(ray, waiting.popleft())
        while waiting:
            yield self._result(ray, waiting.popleft())

    def _connected(self) -> Any:
        ray = optional_import("ray", extra="ray", purpose="running on a Ray cluster")
        if ray.is_initialized():
            return ray
        _require_answer(self.address)
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


def _require_answer(address: str) -> None:
    """Try the door first: Ray itself waits minutes for a cluster that is not there."""
    given = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = given.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=WAIT_S).close()
    except OSError as error:
        raise InputError(
            f"there is no Ray cluster at {given}: {_in_short(error)}", hint=_START_HINT
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
