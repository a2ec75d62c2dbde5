"""Places to write to: refused with a reason before the work is done, not after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError


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
            raise _refusal(target, "the file may not be changed", "name another place")
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
    """Refuse to write over a file that is read: what a user gave is never changed.

    Parameters
    ----------
    read, written
        What the arguments hold: a path, several, or anything that is none.
    """
    inputs = [path for value in read for path in _files(value)]
    for path in (path for value in written for path in _files(value)):
        if any(os.path.samefile(path, kept) for kept in inputs):
            raise _refusal(
                path, "it is an input, which is never written over", "name another place"
            )


def _files(value: Any) -> list[Path]:
    several = value if isinstance(value, list | tuple) else [value]
    paths = [Path(item) for item in several if isinstance(item, str | Path) and str(item) != "-"]
    try:
        return [path for path in paths if path.is_file()]
    except (OSError, ValueError):
        return []  # a name that no system takes is refused where it is opened


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn what the system says against a write into a message that names the place.

    Examples
    --------
    >>> with writing("/dev/full"):
    ...     _ = Path("/dev/full").write_text("x")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: /dev/full: cannot be written: No space left on device
      -> name another place
    """
    try:
        yield
    except OSError as error:
        check_output(path)
        raise _refusal(Path(path), error.strerror or str(error), "name another place") from None


def _exists(path: Path) -> bool:
    """Return whether there is such a place; a name that no system takes is refused."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal(path, reason, "name another place") from None
    return True


def _check_folder(folder: Path, *, of: Path) -> None:
    if not folder.exists():
        raise _refusal(
            of,
            f"there is no folder {folder}",
            f"create it (mkdir -p {folder}), or name another place",
        )
    if not folder.is_dir():
        raise _refusal(of, f"{folder} is a file, not a folder", "name another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(of, f"the folder {folder} may not be written to", "name another place")


def _refusal(path: Path, reason: str, hint: str) -> InputError:
    return InputError(f"cannot be written: {reason}", source=str(path), hint=hint)
