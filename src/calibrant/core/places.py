"""Places to read from and to write to, refused by name before the work is done; whole writes."""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, util
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any

from calibrant.core.errors import InputError

_PARQUET = b"PAR1"
# Head, length of the footer, tail.
_LEAST_PARQUET = 12
_SUFFIXES = {".csv", ".parquet", ".json", ".jsonl", ".ndjson", ".eval", ".tsv", ".gz", ".zst"}


def bare_name(place: str) -> str:
    """Return the name of a file without its folder and the endings of a table.

    Examples
    --------
    >>> bare_name("runs/draws.jsonl.gz"), bare_name("llama-3.1.csv")
    ('draws', 'llama-3.1')
    """
    path = PurePath(place.replace("\\", "/"))
    while path.suffix.lower() in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def check_input(path: str | Path) -> None:
    """Refuse a path that is empty, a pipe or cannot be opened, and parquet data that was cut off.

    A path that is not there is left to the reader, who knows whether it may be a pattern, a URL
    or a stream.

    Examples
    --------
    >>> check_input("")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: the path of an input is empty
      -> name a file or a folder; . is the folder you are in
    """
    if not str(path):
        hint = "name a file or a folder; . is the folder you are in"
        raise InputError("the path of an input is empty", hint=hint)
    try:
        place = Path(path)
        mode = place.stat().st_mode
        if stat.S_ISREG(mode):
            _check_parquet(place)
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # Nobody may ever write to it, and what is in it can be read only once.
            raise InputError(
                "this is a pipe, not a file",
                source=_shown(path),
                hint="give what comes out of it as standard input, -, or save it as a file first",
            )
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return
        raise InputError(f"cannot be read: {error.strerror}", source=_shown(path)) from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"cannot be read: {error}", source=_shown(path)) from None


def _check_parquet(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) != _PARQUET:
            return
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        tail = file.read()
    footer = int.from_bytes(tail[:4], "little")
    if size < _LEAST_PARQUET or tail[4:] != _PARQUET or footer > size - _LEAST_PARQUET:
        rule = "the parquet data is cut off or damaged: its end does not hold"
        raise InputError(rule, source=str(path), hint="write or copy the file again")


def _shown(path: str | Path) -> str:
    text = repr(str(path))[1:-1]
    return text if len(text) <= 120 else text[:120] + " ..."


def check_output(path: str | Path, *, makes_folders: bool = False) -> None:
    """Refuse a file that could not be written: no folder, no permission, or a folder itself.

    Parameters
    ----------
    path
        The file.
    makes_folders
        Whether the writer creates folders that are missing above the file.

    Examples
    --------
    >>> check_output("no/such/folder/report.html")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: no/such/folder/report.html: cannot be written: there is \
no folder no/such/folder
      -> create it (mkdir -p no/such/folder), or name another place
    """
    target = Path(path)
    if _exists(target):
        if target.is_dir():
            raise _refusal(target, "it is a folder", "name a file in it")
        if not os.access(target, os.W_OK):
            raise _refusal(target, "the file may not be changed")
    elif makes_folders:
        check_output_folder(target.parent, of=target)
    else:
        _check_folder(target.parent, of=target)


def check_output_folder(path: str | Path, *, of: Path | None = None) -> None:
    """Refuse a folder that could neither be used nor be created."""
    folder = Path(path)
    while not _exists(folder) and folder != folder.parent:
        folder = folder.parent
    _check_folder(folder, of=of or Path(path))


def check_kept(read: Iterable[Any], written: Iterable[Any]) -> None:
    """Refuse to write over a file that is read, and one file for two results.

    Parameters
    ----------
    read, written
        What the arguments hold: a path, several, or anything that is none.

    Examples
    --------
    >>> check_kept([], ["map.json", "./map.json"])
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: map.json: cannot be written: two results would go there
      -> name another place
    """
    inputs = [path for value in read for path in _paths(value) if os.path.isfile(path)]
    results: list[Path] = []
    for path in (path for value in written for path in _paths(value)):
        if any(_is_same(path, selection) for selection in inputs):
            raise _refusal(path, "it is an input, which is never written over")
        if any(_is_same(path, selection) for selection in results):
            raise _refusal(path, "two results would go there")
        results.append(path)


def _paths(value: Any) -> list[Path]:
    several = value if isinstance(value, list | tuple) else [value]
    return [Path(item) for item in several if isinstance(item, str | Path) and str(item) != "-"]


def _is_same(a: Path, b: Path) -> bool:
    """Return whether both name one file, or will; a device takes what several write."""
    if os.path.isfile(a) and os.path.isfile(b):
        return os.path.samefile(a, b)
    return os.path.abspath(a) == os.path.abspath(b) and not os.path.exists(a)


def free_name(name: str) -> str:
    """Return a name, with a number where a file has it already."""
    place = Path(name)
    numbered = (place.with_stem(f"{place.stem}{number}") for number in count(2))
    return str(next(path for path in chain([place], numbered) if not path.exists()))


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Turn what the system says against a write into a message that names the place.

    What is written to the place that it yields is there as a whole, or what was there before is.

    Examples
    --------
    >>> with writing("/dev/full"):
    ...     _ = Path("/dev/full").write_text("x")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: /dev/full: cannot be written: No space left on device
      -> name another place
    """
    place = Path(os.path.realpath(path))
    # A device or a pipe is written to; a file where no other may be made is written over.
    whole = not os.path.exists(place)
    whole |= os.path.isfile(place) and os.access(place.parent, os.W_OK)
    fresh = place.with_name(f".{os.urandom(8).hex()}.new") if whole else place
    try:
        yield fresh
        if whole and fresh.exists():
            with suppress(FileNotFoundError):
                shutil.copymode(place, fresh)
            os.replace(fresh, place)
    except OSError as error:
        check_output(path)
        raise _refusal(Path(path), error.strerror or str(error)) from None
    finally:
        if whole:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)


def _exists(path: Path) -> bool:
    """Return whether there is such a place; a name that no system takes is refused."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise _refusal(path, getattr(error, "strerror", None) or str(error)) from None
    return True


def _check_folder(folder: Path, *, of: Path) -> None:
    if not folder.exists():
        make = f"create it (mkdir -p {folder}), or name another place"
        raise _refusal(of, f"there is no folder {folder}", make)
    if not folder.is_dir():
        raise _refusal(of, f"{folder} is a file, not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(of, f"the folder {folder} may not be written to")


def _refusal(path: Path, reason: str, hint: str = "name another place") -> InputError:
    return InputError(f"cannot be written: {reason}", source=str(path), hint=hint)


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


def statements(script: str) -> Iterator[str]:
    """Split a script at the semicolons that end a statement (a trigger has inner ones)."""
    import sqlite3  # most work needs no database

    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
