"""An event loop for code that waits, beside that of a notebook, and the connections of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module, util
from typing import Any, TypeVar

T = TypeVar("T")


class _PromptLoop(asyncio.SelectorEventLoop):
    """A loop that is closed without waiting for its threads.

    They look up addresses, which takes a minute where a name server is silent; Ctrl-C must not
    wait for that.
    """

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Leave the threads alone; `close` tells them to begin nothing new."""


async def happens(event: asyncio.Event, *, within_s: float) -> bool:
    """Wait for an event, and return whether it has come in this time."""
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False


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


HEADER_S = 10.0
"""Seconds for the head of a request."""
MOST = 4096
LEAST = 16
BACKLOG = 32
"""Connections that are taken at once: their files are open before any of them is counted."""
QUEUE = 1024
_RESERVED = 64
"""Files of the program itself, and of connections to endpoints."""
_FILES = 65_536
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


def most_connections() -> int:
    """Return how many connections there are files for, half of them being for endpoints.

    The system's limit on files is raised first, as far as it may be.
    """
    if util.find_spec("resource") is None:
        return MOST
    resource = import_module("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite = resource.RLIM_INFINITY
    target = _FILES if hard == infinite else min(hard, _FILES)
    if soft != infinite and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == infinite else min(MOST, max(LEAST, (soft - _RESERVED - BACKLOG) // 2))


class Connections:
    """Counts connections, ends those that send no request, and makes room for new ones.

    Parameters
    ----------
    most
        Connections at a time. Beyond it the oldest without a request is closed; where all have
        one, the new one is answered 503.
    header_s
        Seconds for the head of a request.
    """

    def __init__(self, most: int | None = None, header_s: float = HEADER_S) -> None:
        self.most = most_connections() if most is None else most
        self.header_s = header_s
        self.refused = 0
        self._open: dict[int, _Connection] = {}
        self._idle: dict[int, _Connection] = {}

    def __len__(self) -> int:
        return len(self._open)

    def protocol(self, inner: Callable[[], Any]) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of a connection around the server's own."""
        return lambda: _Connection(self, inner())

    def enter(self, connection: _Connection) -> bool:
        """Count a new connection; return whether there is room for it."""
        if len(self._open) >= self.most:
            oldest = next(iter(self._idle.values()), None)
            if oldest is None:
                self.refused += 1
                return False
            oldest.abort()
            self.leave(oldest)
        self._open[connection.id] = self._idle[connection.id] = connection
        return True

    def leave(self, connection: _Connection) -> None:
        """Count it no more."""
        self._open.pop(connection.id, None)
        self._idle.pop(connection.id, None)

    def begin(self, inner: object) -> None:
        """Note that the head of a request is there."""
        if (connection := self._open.get(id(inner))) is not None:
            connection.stop_waiting()
            self._idle.pop(connection.id, None)

    def end(self, inner: object) -> None:
        """Note that a request is answered."""
        if (connection := self._open.get(id(inner))) is not None:
            self._idle[connection.id] = connection


class _Connection(asyncio.Protocol):
    """Hands everything on to the server's own protocol, and watches when a request begins."""

    def __init__(self, all_: Connections, inner: Any) -> None:
        self._all, self._inner, self.id = all_, inner, id(inner)
        self._transport: Any = None
        self._waits: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Close it at once."""
        self.stop_waiting()
        self._transport.abort()

    def stop_waiting(self) -> None:
        """Give it the time that it wants."""
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    def _wait(self) -> None:
        self._waits = asyncio.get_running_loop().call_later(self._all.header_s, self.abort)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if not self._all.enter(self):
            transport.write(_BUSY)
            transport.close()
            self._inner = asyncio.Protocol()  # nobody hears what still comes
            return
        self._inner.connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self._waits is None and self.id in self._all._idle:
            self._wait()
        self._inner.data_received(data)

    def eof_received(self) -> Any:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.stop_waiting()
        self._all.leave(self)
        self._inner.connection_lost(error)
