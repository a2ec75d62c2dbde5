"""The one way in which lines are put behind a file: whole ones, also beside other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, util
from pathlib import Path

_LINE = b"\n"
_MODE = 0o644


class AppendOnly:
    r"""A file of lines that only grows.

    A line is there as a whole or not at all: what a full disk cuts off is taken away again, and
    behind a line that a kill has torn a new one begins.

    Parameters
    ----------
    path
        The file; it is created with the first line.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> _ = path.write_bytes(b'{"torn')
    >>> AppendOnly(path).append(b'{"a": 1}', b'{"a": 2}')
    >>> path.read_bytes()
    b'{"torn\n{"a": 1}\n{"a": 2}\n'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *lines: bytes) -> None:
        """Add the lines, all of them or none; OSError says why none could be added."""
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _MODE)
        try:
            with locked(file):
                size = os.fstat(file).st_size
                torn = size and os.pread(file, 1, size - 1) != _LINE
                data = (_LINE if torn else b"") + b"".join(line + _LINE for line in lines)
                try:
                    write_whole(file, data)
                except OSError:
                    # If this fails as well, the next line begins behind the torn one.
                    with suppress(OSError):
                        os.ftruncate(file, size)
                    raise
        finally:
            os.close(file)


def write_whole(file: int, data: bytes) -> None:
    """Write all of the data, in as many pieces as the system takes them."""
    remainder = memoryview(data)
    while remainder:
        with suppress(InterruptedError):
            remainder = remainder[os.write(file, remainder) :]


def replace_file(path: Path, data: bytes) -> None:
    """Put the data in place of what a file holds: who reads it sees all of the old or the new."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
    try:
        try:
            write_whole(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(fresh, path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


@contextmanager
def locked_beside(path: Path) -> Iterator[None]:
    """Keep other processes from a file that is replaced as a whole, by one beside it."""
    file = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, _MODE)
    try:
        with locked(file):
            yield
    finally:
        os.close(file)


@contextmanager
def locked(file: int) -> Iterator[None]:
    """Keep other processes from the file meanwhile, where the system can."""
    if util.find_spec("fcntl") is None:
        yield
        return
    fcntl = import_module("fcntl")
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
