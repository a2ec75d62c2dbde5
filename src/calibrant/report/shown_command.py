"""A command as a page or a terminal shows it: without folders, on lines that can be copied."""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from calibrant.core.document import given_places


def without_folders(command: str, document: Mapping[str, Any]) -> str:
    """Return the command with the bare names of its files: a page shows no place of a machine.

    Examples
    --------
    >>> without_folders("calibrant audit '/me/my s.csv' --by a/b", {"source": "/me/my s.csv"})
    "calibrant audit 'my s.csv' --by a/b"
    """
    entries = [e for e in document.get("results") or () if isinstance(e, Mapping)]
    text = [document.get("batch") or {}, *(entry.get("policy") or entry for entry in entries)]
    companion = (document.get("samples") or {}).get("references_file")
    places = [*given_places(document), *(part.get("path") for part in text), companion]
    for place in filter(None, map(str, filter(None, places))):
        bare = PurePath(place.replace("\\", "/")).name
        command = command.replace(shlex.quote(place), shlex.quote(bare))
    return command


def broken_command(command: str, width: int) -> list[str]:
    r"""Return a command on lines that fit and that can be copied as they stand.

    Examples
    --------
    >>> print(*broken_command("calibrant audit a.csv --confidence p --correct y", 34), sep="\n")
    calibrant audit a.csv \
      --confidence p --correct y
    >>> print(*broken_command('calibrant.audit(table, confidence="p", correct="y")', 40), sep="\n")
    calibrant.audit(table, confidence="p",
      correct="y")
    """
    python = command.startswith("calibrant.")
    parts = re.split(r"(?<=,) " if python else r" (?=--)", command)
    end = "" if python else " \\"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(f"{lines[-1]} {part}{end}") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(f"  {part}")
    return lines
