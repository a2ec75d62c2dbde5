"""Everything below a folder: in time that is bounded, and past what the system will not show."""

from __future__ import annotations

import os
from pathlib import Path

from calibrant.core.errors import InputError

MOST_ENTRIES = 200_000
"""So many files and folders are looked through; the home of a user or `/proc` has more."""


def entries_below(folder: str | Path, ending: str = "") -> list[Path]:
    """Return the files and folders below a folder in order, or its files with an ending.

    Folders that cannot be opened are passed over, links to folders are not followed.

    Examples
    --------
    >>> entries_below("no/such/folder")
    []
    """
    found: list[Path] = []
    seen = 0
    for place, folders, files in os.walk(folder):
        names = files if ending else [*folders, *files]
        seen += len(folders) + len(files)
        if seen > MOST_ENTRIES:
            raise InputError(
                f"the folder holds more than {MOST_ENTRIES:,} files",
                source=str(folder),
                hint="name the folder in which the logs or tables are",
            )
        found += [Path(place, name) for name in names if name.endswith(ending)]
    return sorted(found)
